//! Caches plans for further requests: a loop over arrays of one kind plans and writes its kernel's text once.
//!
//! A plan depends on types, shapes, strides and where addresses lie within 16 bytes; addresses and numbers are
//! arguments. Properties of the addresses themselves, such as a partial overlap of arrays, are checked each time.

use std::hash::{Hash, Hasher};
use std::ptr;
use std::sync::Arc;

use crate::dtype::DType;
use crate::expression::{CallError, Expr, Number};
use crate::layout::aliases;
use crate::memo::{Memo, hashed};
use crate::parse::{ParseError, function, parse};
use crate::plan::{Argument, Plan, PlanError, Tensor, Which, WriteMode};
use crate::shape::{check, span};
use crate::value::{Value, number_argument};

/// The longest text that is kept, in bytes. Few programs have many longer ones, except those that generate them.
const LONGEST: usize = 16 << 10;

/// Like [`parse`], but returns the same object for a text that was parsed before.
///
/// # Errors
///
/// As [`parse`].
pub fn parsed(text: &str) -> Result<Expr, ParseError> {
    static KNOWN: Memo<String, Expr> = Memo::new();
    if text.len() > LONGEST {
        return parse(text);
    }
    let hash = hashed(|mut hasher| text.hash(&mut hasher));
    if let Some(known) = KNOWN.get(hash, |key| key == text) {
        return Ok(known);
    }
    let made = parse(text)?;
    KNOWN.put(hash, text.to_owned(), made.clone());
    Ok(made)
}

/// The call of a function with these names as arguments. A repeated request gets the same object.
///
/// # Errors
///
/// As [`function`].
pub fn function_of(name: &str, names: &[&str]) -> Result<Expr, CallError> {
    static KNOWN: Memo<(String, Vec<String>), Expr> = Memo::new();
    let hash = hashed(|mut hasher| (name, names).hash(&mut hasher));
    let is = |(theirs, their_names): &(String, Vec<String>)| theirs == name && their_names == names;
    if let Some(known) = KNOWN.get(hash, is) {
        return Ok(known);
    }
    let all = names.iter().map(|name| Expr::name(name)).collect();
    let made = function(name, all)?;
    let owned = names.iter().map(|name| (*name).to_owned()).collect();
    KNOWN.put(hash, (name.to_owned(), owned), made.clone());
    Ok(made)
}

/// The property of a number on which a kernel depends. A whole number must fit the type of the values it is used with.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum NumberKey {
    Int(i64),
    Float,
}

impl From<Number> for NumberKey {
    fn from(number: Number) -> Self {
        match number {
            Number::Int(value) => Self::Int(value),
            Number::Float(_) => Self::Float,
        }
    }
}

/// An array as far as something depends on it.
trait Aspect {
    fn from_tensor(tensor: &Tensor) -> Self;
    fn feed(tensor: &Tensor, hasher: &mut dyn Hasher);
    fn is(&self, tensor: &Tensor) -> bool;
}

impl Aspect for DType {
    fn from_tensor(tensor: &Tensor) -> Self {
        tensor.dtype
    }

    fn feed(tensor: &Tensor, mut hasher: &mut dyn Hasher) {
        tensor.dtype.hash(&mut hasher);
    }

    fn is(&self, tensor: &Tensor) -> bool {
        *self == tensor.dtype
    }
}

/// Everything about an array on which a plan depends. Of the address, this is the place within 16 bytes, the widest
/// access.
struct TensorKey(Tensor);

impl Aspect for TensorKey {
    fn from_tensor(tensor: &Tensor) -> Self {
        Self(tensor.clone())
    }

    fn feed(tensor: &Tensor, mut hasher: &mut dyn Hasher) {
        tensor.dtype.hash(&mut hasher);
        tensor.shape.hash(&mut hasher);
        tensor.strides.hash(&mut hasher);
        hasher.write_u64(tensor.address % 16);
    }

    fn is(&self, tensor: &Tensor) -> bool {
        are_alike(&self.0, tensor) && self.0.address % 16 == tensor.address % 16
    }
}

fn are_alike(one: &Tensor, other: &Tensor) -> bool {
    one.dtype == other.dtype && one.shape == other.shape && one.strides == other.strides
}

/// An expression and what was given by name. The expression is held, so that no other gets its address: the same object is
/// meant, not an equal one.
struct BoundExpr<T> {
    expr: Expr,
    values: Vec<(String, Result<T, NumberKey>)>,
}

impl<T: Aspect> BoundExpr<T> {
    fn new(expr: &Expr, values: &[(&str, Value<'_>)]) -> Self {
        let all = values.iter().map(|(name, value)| {
            let value = match value {
                Value::Tensor(tensor) => Ok(T::from_tensor(tensor)),
                Value::Number(number) => Err(NumberKey::from(*number)),
            };
            ((*name).to_owned(), value)
        });
        Self {
            expr: expr.clone(),
            values: all.collect(),
        }
    }

    fn feed(expr: &Expr, values: &[(&str, Value<'_>)], mut hasher: &mut dyn Hasher) {
        ptr::hash(Arc::as_ptr(&expr.0), &mut hasher);
        for (name, value) in values {
            name.hash(&mut hasher);
            match value {
                Value::Tensor(tensor) => T::feed(tensor, hasher),
                Value::Number(number) => NumberKey::from(*number).hash(&mut hasher),
            }
        }
    }

    fn is(&self, expr: &Expr, values: &[(&str, Value<'_>)]) -> bool {
        let mut pairs = self.values.iter().zip(values);
        Arc::ptr_eq(&self.expr.0, &expr.0)
            && self.values.len() == values.len()
            && pairs.all(|((name, known), (given, value))| {
                name == given
                    && match (known, value) {
                        (Ok(known), Value::Tensor(tensor)) => known.is(tensor),
                        (Err(known), Value::Number(number)) => *known == NumberKey::from(*number),
                        _ => false,
                    }
            })
    }
}

/// The type of an expression's result, which `find` finds.
pub(crate) fn result_type(
    expr: &Expr,
    values: &[(&str, Value<'_>)],
    find: impl FnOnce() -> Result<DType, PlanError>,
) -> Result<DType, PlanError> {
    static KNOWN: Memo<BoundExpr<DType>, DType> = Memo::new();
    let hash = hashed(|hasher| BoundExpr::<DType>::feed(expr, values, hasher));
    if let Some(known) = KNOWN.get(hash, |key| key.is(expr, values)) {
        return Ok(known);
    }
    let found = find()?;
    KNOWN.put(hash, BoundExpr::new(expr, values), found);
    Ok(found)
}

/// A plan, and where its arrays' elements lie.
struct CachedPlan {
    plan: Plan,
    /// The range of the output, then those of the inputs, in bytes from the address: the first byte, and the end.
    /// `None` for an array without elements.
    reaches: Vec<Option<(i128, i128)>>,
}

impl CachedPlan {
    /// The entry of a new plan. `None` for a plan that is long, or that has nothing to do: then no address is checked.
    fn from_plan(plan: &Plan, output: &Tensor, inputs: &[(&str, &Tensor)]) -> Option<Arc<Self>> {
        let is_short = |source: &str| source.len() <= LONGEST;
        if plan.launches.is_empty()
            || !plan
                .launches
                .iter()
                .all(|launch| is_short(launch.kernel.source()))
        {
            return None;
        }
        let tensors = [output]
            .into_iter()
            .chain(inputs.iter().map(|(_, tensor)| *tensor));
        let reaches = tensors.map(|tensor| {
            let (steps, elements) = check(tensor, &Which::Output).ok()?;
            let (low, high) = span(&tensor.shape, &steps).filter(|_| elements > 0)?;
            let size = i128::from(tensor.dtype.size());
            Some((i128::from(low) * size, (i128::from(high) + 1) * size))
        });
        let reaches = reaches.collect();
        Some(Arc::new(Self {
            plan: plan.clone(),
            reaches,
        }))
    }

    /// Whether the plan is valid for these addresses: none is null or outside the address space, and no input overlaps
    /// the output in part.
    fn holds(&self, output: &Tensor, inputs: &[(&str, &Tensor)]) -> bool {
        let place = |tensor: &Tensor, reach: Option<(i128, i128)>| {
            let at = i128::from(tensor.address);
            reach.map(|(low, high)| (at + low, at + high))
        };
        let is_there = |tensor: &Tensor, (first, end): (i128, i128)| {
            tensor.address != 0 && first >= 0 && end <= i128::from(u64::MAX)
        };
        let mut reaches = self.reaches.iter().copied();
        let Some(written) = place(output, reaches.next().flatten()) else {
            return false;
        };
        is_there(output, written)
            && inputs.iter().zip(reaches).all(|((_, input), reach)| {
                let Some(read) = place(input, reach) else {
                    return true;
                };
                let is_apart = read.0 >= written.1 || read.1 <= written.0;
                let is_same = input.address == output.address && are_alike(input, output);
                is_there(input, read) && (is_apart || is_same)
            })
    }

    /// The plan with other addresses.
    fn filled(&self, output: &Tensor, inputs: &[(&str, &Tensor)]) -> Result<Plan, PlanError> {
        if !self.holds(output, inputs) {
            // Says what is wrong, if anything is.
            check(output, &Which::Output)?;
            for (name, input) in inputs {
                check(input, &Which::Input((*name).into()))?;
            }
            aliases(output, inputs)?;
        }
        let mut plan = self.plan.clone();
        let mut read = inputs.iter().map(|(_, tensor)| tensor.address);
        for (which, address) in &mut plan.arrays {
            *address = match which {
                Which::Input(_) => read.next().unwrap_or(*address),
                Which::Output => output.address,
            };
        }
        Ok(plan)
    }
}

/// The plan of an expression, which `make` makes.
pub(crate) fn plan(
    expr: &Expr,
    values: &[(&str, Value<'_>)],
    output: &Tensor,
    mode: WriteMode,
    make: impl FnOnce() -> Result<Plan, PlanError>,
) -> Result<Plan, PlanError> {
    type Key = (BoundExpr<TensorKey>, TensorKey, WriteMode);
    static KNOWN: Memo<Key, Arc<CachedPlan>> = Memo::new();
    let inputs: Vec<(&str, &Tensor)> = values
        .iter()
        .filter_map(|(name, value)| match value {
            Value::Tensor(tensor) => Some((*name, *tensor)),
            Value::Number(_) => None,
        })
        .collect();
    let hash = hashed(|mut hasher| {
        BoundExpr::<TensorKey>::feed(expr, values, hasher);
        TensorKey::feed(output, hasher);
        mode.hash(&mut hasher);
    });
    let is =
        |(bound, form, theirs): &Key| bound.is(expr, values) && form.is(output) && *theirs == mode;
    let Some(known) = KNOWN.get(hash, is) else {
        let made = make()?;
        if let Some(known) = CachedPlan::from_plan(&made, output, &inputs) {
            KNOWN.put(
                hash,
                (
                    BoundExpr::new(expr, values),
                    TensorKey::from_tensor(output),
                    mode,
                ),
                known,
            );
        }
        return Ok(made);
    };
    let mut plan = known.filled(output, &inputs)?;
    for launch in &mut plan.launches {
        // First come the output, the inputs and the numbers. The other arguments depend on the shape only.
        let addresses = [output.address]
            .into_iter()
            .chain(inputs.iter().map(|(_, tensor)| tensor.address));
        let numbers = values.iter().filter_map(|(_, value)| match value {
            Value::Number(number) => Some(number_argument(*number)),
            Value::Tensor(_) => None,
        });
        let fresh = addresses.map(Argument::Address).chain(numbers);
        for (place, argument) in launch.arguments.iter_mut().zip(fresh) {
            *place = argument;
        }
    }
    Ok(plan)
}

/// The plan of a reduction, which `make` makes.
pub(crate) fn reduction(
    of: &'static str,
    input: &Tensor,
    axes: Option<&[i64]>,
    output: &Tensor,
    mode: WriteMode,
    make: impl FnOnce() -> Result<Plan, PlanError>,
) -> Result<Plan, PlanError> {
    type Key = (
        &'static str,
        TensorKey,
        Option<Vec<i64>>,
        TensorKey,
        WriteMode,
    );
    static KNOWN: Memo<Key, Arc<CachedPlan>> = Memo::new();
    let inputs = [("x", input)];
    let hash = hashed(|mut hasher| {
        (of, axes, mode).hash(&mut hasher);
        TensorKey::feed(input, hasher);
        TensorKey::feed(output, hasher);
    });
    let is = |(name, read, over, written, theirs): &Key| {
        *name == of
            && read.is(input)
            && over.as_deref() == axes
            && written.is(output)
            && *theirs == mode
    };
    let Some(known) = KNOWN.get(hash, is) else {
        let made = make()?;
        if let Some(known) = CachedPlan::from_plan(&made, output, &inputs) {
            let axes = axes.map(<[i64]>::to_vec);
            KNOWN.put(
                hash,
                (
                    of,
                    TensorKey::from_tensor(input),
                    axes,
                    TensorKey::from_tensor(output),
                    mode,
                ),
                known,
            );
        }
        return Ok(made);
    };
    let mut plan = known.filled(output, &inputs)?;
    for launch in &mut plan.launches {
        // The output's address comes first, the input's second; parts are in the workspace.
        let addresses = launch.arguments.iter_mut().filter_map(|each| match each {
            Argument::Address(address) => Some(address),
            _ => None,
        });
        for (place, address) in addresses.zip([output.address, input.address]) {
            *place = address;
        }
    }
    Ok(plan)
}
