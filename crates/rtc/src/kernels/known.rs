//! What was planned before and is asked for again: a loop over arrays of one kind plans and writes its kernel's text once.
//!
//! A plan depends on types, shapes, steps and where addresses lie within 16 bytes; addresses and numbers are arguments.
//! What depends on the addresses themselves, whether arrays lie askew on each other, is looked at each time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use super::dtype::DType;
use super::elementwise::{Value, arguments, arrays};
use super::expression::{CallError, Expr, Node, Number};
use super::layout::aliases;
use super::parse::{ParseError, parse};
use super::plan::{Argument, Launch, Plan, PlanError, Request, Tensor, Which, check};

/// How many of each kind are kept. With more, all are made anew.
const MOST: usize = 512;
/// Bytes of a text that is kept: nobody has so many longer ones, and some generate them.
const LONGEST: usize = 16 << 10;

/// Things by what they were made of.
struct Shelf<K, V>(Mutex<Option<HashMap<K, V>>>);

impl<K: Hash + Eq, V: Clone> Shelf<K, V> {
    const fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn get(&self, key: &K) -> Option<V> {
        let shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.as_ref()?.get(key).cloned()
    }

    fn put(&self, key: K, value: V) {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shelf = shelf.get_or_insert_default();
        if shelf.len() >= MOST {
            shelf.clear();
        }
        shelf.insert(key, value);
    }

    /// What is there, else what `make` makes of it.
    fn or<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        if let Some(found) = self.get(&key) {
            return Ok(found);
        }
        let made = make()?;
        self.put(key, made.clone());
        Ok(made)
    }
}

/// As [`parse`], and the same object for a text that was read before.
///
/// # Errors
///
/// As [`parse`].
pub fn parsed(text: &str) -> Result<Expr, ParseError> {
    static SHELF: Shelf<String, Expr> = Shelf::new();
    if text.len() > LONGEST {
        return parse(text);
    }
    SHELF.or(text.to_owned(), || parse(text))
}

/// A function of names, and the same object if it was asked for before.
///
/// # Errors
///
/// As [`Expr::call`].
pub fn function_of(function: &str, names: &[&str]) -> Result<Expr, CallError> {
    static SHELF: Shelf<(String, Vec<String>), Expr> = Shelf::new();
    let owned = names.iter().map(|name| (*name).to_owned()).collect();
    SHELF.or((function.to_owned(), owned), || {
        Expr::call(
            function,
            names.iter().map(|name| Expr::name(name)).collect(),
        )
    })
}

/// One expression: the same object, not only an equal one, which it holds so that no other gets its address.
#[derive(Clone)]
struct One(Expr);

impl PartialEq for One {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0.0, &other.0.0)
    }
}

impl Eq for One {}

impl Hash for One {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        std::ptr::hash::<Node, H>(Arc::as_ptr(&self.0.0), state);
    }
}

/// A number as far as a kernel depends on it. A whole one has to fit what it is used with.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Int(i64),
    Float,
}

impl From<Number> for Kind {
    fn from(number: Number) -> Self {
        match number {
            Number::Int(value) => Self::Int(value),
            Number::Float(_) => Self::Float,
        }
    }
}

/// An array as far as a plan depends on it.
#[derive(PartialEq, Eq, Hash)]
struct Form {
    dtype: DType,
    shape: Vec<u64>,
    strides: Option<Vec<i64>>,
    /// The address within 16 bytes, the widest access.
    off: u64,
}

impl From<&Tensor> for Form {
    fn from(tensor: &Tensor) -> Self {
        Self {
            dtype: tensor.dtype,
            shape: tensor.shape.clone(),
            strides: tensor.strides.clone(),
            off: tensor.address % 16,
        }
    }
}

type Named<T> = Vec<(String, Result<T, Kind>)>;

fn named<T>(values: &[(&str, Value<'_>)], of: impl Fn(&Tensor) -> T) -> Named<T> {
    let all = values.iter().map(|(name, value)| {
        let value = match value {
            Value::Tensor(tensor) => Ok(of(tensor)),
            Value::Number(number) => Err(Kind::from(*number)),
        };
        ((*name).to_owned(), value)
    });
    all.collect()
}

/// The type of an expression's result, which `find` finds.
pub(super) fn result_type(
    expr: &Expr,
    values: &[(&str, Value<'_>)],
    find: impl FnOnce() -> Result<DType, PlanError>,
) -> Result<DType, PlanError> {
    static SHELF: Shelf<(One, Named<DType>), DType> = Shelf::new();
    let key = (One(expr.clone()), named(values, |tensor| tensor.dtype));
    SHELF.or(key, find)
}

/// The plan of an expression, which `make` makes.
pub(super) fn plan(
    expr: &Expr,
    values: &[(&str, Value<'_>)],
    output: &Tensor,
    request: Request,
    make: impl FnOnce() -> Result<Plan, PlanError>,
) -> Result<Plan, PlanError> {
    static SHELF: Shelf<(One, Named<Form>, Form, Request), Arc<Plan>> = Shelf::new();
    let forms = named(values, |tensor| tensor.into());
    let key = (One(expr.clone()), forms, output.into(), request);
    let Some(known) = SHELF.get(&key) else {
        return Ok(kept(&SHELF, key, make()?));
    };
    let mut inputs = Vec::new();
    let mut numbers = Vec::new();
    for &(name, value) in values {
        match value {
            Value::Tensor(tensor) => inputs.push((name, tensor)),
            Value::Number(number) => numbers.push(number),
        }
    }
    check(output, &Which::Output)?;
    for (name, input) in &inputs {
        check(input, &Which::Input((*name).to_owned()))?;
    }
    aliases(output, &inputs)?;
    let mut plan = Plan::clone(&known);
    let tensors = inputs.iter().map(|(_, tensor)| *tensor);
    for launch in &mut plan.launches {
        let fresh = arguments(output, tensors.clone(), &numbers);
        for (place, argument) in launch.arguments.iter_mut().zip(fresh) {
            *place = argument;
        }
    }
    plan.arrays = arrays(output, &inputs);
    Ok(plan)
}

/// A new plan, which is kept if it may be.
fn kept<K: Hash + Eq>(shelf: &Shelf<K, Arc<Plan>>, key: K, plan: Plan) -> Plan {
    // Of no elements, addresses are not looked at.
    let is_short = |launch: &Launch| launch.source.len() <= LONGEST;
    if !plan.launches.is_empty() && plan.launches.iter().all(is_short) {
        shelf.put(key, Arc::new(plan.clone()));
    }
    plan
}

/// The plan of a reduction, which `make` makes.
pub(super) fn reduction(
    of: &'static str,
    input: &Tensor,
    axes: Option<&[i64]>,
    output: &Tensor,
    request: Request,
    make: impl FnOnce() -> Result<Plan, PlanError>,
) -> Result<Plan, PlanError> {
    type Key = (&'static str, Form, Option<Vec<i64>>, Form, Request);
    static SHELF: Shelf<Key, Arc<Plan>> = Shelf::new();
    let axes = axes.map(<[i64]>::to_vec);
    let key = (of, input.into(), axes, output.into(), request);
    let Some(known) = SHELF.get(&key) else {
        return Ok(kept(&SHELF, key, make()?));
    };
    check(input, &Which::Input("x".to_owned()))?;
    check(output, &Which::Output)?;
    aliases(output, &[("x", input)])?;
    let mut plan = Plan::clone(&known);
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
    for (which, address) in &mut plan.arrays {
        *address = match which {
            Which::Input(_) => input.address,
            Which::Output => output.address,
        };
    }
    Ok(plan)
}
