//! Turns an expression into steps: finds types, computes equal parts once, and gives numbers the types of the values
//! they are used with.

use std::collections::HashMap;
use std::sync::Arc;

use crate::dtype::{DType, Family};
use crate::expression::{Expr, Node, Number};
use crate::functions::DeviceFunction;
use crate::plan::PlanError;

/// The most different calls in one expression. With more, compiling takes long and the registers are not enough.
const LONGEST: usize = 4096;

/// The type of what a name refers to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NameType {
    /// The array of this number, with this type.
    Array(usize, DType),
    /// The index of this number among the kernel's arguments. It is an argument, so that another value needs no other
    /// kernel.
    Number(usize, Number),
}

/// A value in the kernel's text.
#[derive(Clone, Debug)]
struct TypedText {
    text: String,
    dtype: DType,
    /// A single number. It gets the type of the values that it is used with.
    loose: Option<Option<Number>>,
}

/// The body of a kernel: lines that compute, and the value that comes of them.
#[derive(Debug)]
pub(crate) struct Body {
    /// `const float t0 = warpcc::op::mul(x0, x1);`
    pub lines: Vec<String>,
    /// The value: `t3`.
    pub result: String,
    /// Its compute type.
    pub dtype: DType,
    /// A function of it takes as long as memory does.
    pub heavy: bool,
}

/// Finds every value's type and writes each once.
pub(crate) fn body(expr: &Expr, bound: &HashMap<&str, NameType>) -> Result<Body, PlanError> {
    let mut writer = Writer::default();
    // Each node, and whether its arguments are written.
    let mut left = vec![(expr, false)];
    while let Some((each, ready)) = left.pop() {
        if writer.places.contains_key(&Arc::as_ptr(&each.0)) {
            continue;
        }
        match &*each.0 {
            Node::Call(_, arguments) if !ready => {
                left.push((each, true));
                left.extend(arguments.iter().map(|argument| (argument, false)));
            }
            Node::Call(function, arguments) => writer.write_call(each, function, arguments)?,
            Node::Name(name) => writer.add(each, named(name, bound)?),
            Node::Number(number) => {
                let dtype = loose_type(*number);
                let value = TypedText {
                    text: literal(*number, dtype),
                    dtype,
                    loose: Some(Some(*number)),
                };
                writer.add(each, value);
            }
        }
    }
    Ok(writer.finish(expr))
}

/// The value that a name refers to.
fn named(name: &str, bound: &HashMap<&str, NameType>) -> Result<TypedText, PlanError> {
    match bound.get(name) {
        None => Err(PlanError::Unbound {
            name: name.to_owned(),
        }),
        Some(NameType::Array(index, dtype)) => Ok(TypedText {
            text: format!("x{index}"),
            dtype: dtype.compute(),
            loose: None,
        }),
        Some(NameType::Number(index, number)) => Ok(TypedText {
            text: format!("s{index}"),
            dtype: loose_type(*number),
            loose: Some(Some(*number)),
        }),
    }
}

/// The lines so far.
#[derive(Default)]
struct Writer {
    values: Vec<TypedText>,
    /// Each node's value.
    places: HashMap<*const Node, usize>,
    /// Each line's value, by what it computes.
    by_text: HashMap<String, usize>,
    lines: Vec<String>,
    heavy: bool,
}

impl Writer {
    fn add(&mut self, expr: &Expr, value: TypedText) {
        self.places.insert(Arc::as_ptr(&expr.0), self.values.len());
        self.values.push(value);
    }

    /// A call whose arguments are written: a line, unless one computes the same.
    fn write_call(
        &mut self,
        expr: &Expr,
        function: &'static DeviceFunction,
        arguments: &[Expr],
    ) -> Result<(), PlanError> {
        let given: Vec<&TypedText> = arguments
            .iter()
            .filter_map(|argument| {
                self.values
                    .get(*self.places.get(&Arc::as_ptr(&argument.0))?)
            })
            .collect();
        let (text, dtype, loose) = call(function, &given)?;
        self.heavy |= function.is_heavy();
        if let Some(same) = self.by_text.get(&text) {
            self.places.insert(Arc::as_ptr(&expr.0), *same);
            return Ok(());
        }
        if self.lines.len() >= LONGEST {
            return Err(PlanError::TooLong { limit: LONGEST });
        }
        let name = format!("t{}", self.lines.len());
        self.lines
            .push(format!("const {} {name} = {text};", dtype_text(dtype)));
        self.by_text.insert(text, self.values.len());
        let value = TypedText {
            text: name,
            dtype,
            loose: loose.then_some(None),
        };
        self.add(expr, value);
        Ok(())
    }

    /// The body, whose value is that of `expr`, which was written last.
    fn finish(self, expr: &Expr) -> Body {
        let place = self.places.get(&Arc::as_ptr(&expr.0));
        let value = place.and_then(|place| self.values.get(*place));
        let (result, dtype) = match value {
            Some(value) => (value.text.clone(), value.dtype),
            // All were written before this was asked.
            None => ("0".to_owned(), DType::I64),
        };
        Body {
            lines: self.lines,
            result,
            dtype,
            heavy: self.heavy,
        }
    }
}

/// A call's text, type, and whether it is made of numbers alone.
fn call(
    function: &'static DeviceFunction,
    given: &[&TypedText],
) -> Result<(String, DType, bool), PlanError> {
    let firm: Option<DType> = given
        .iter()
        .filter(|value| value.loose.is_none())
        .map(|value| value.dtype)
        .reduce(DType::mixed);
    let mut types = Vec::new();
    let mut texts = Vec::new();
    for value in given {
        let (dtype, text) = match (firm, value.loose) {
            (Some(firm), Some(number)) => {
                let dtype = fitted(value.dtype, firm);
                if let Some(Number::Int(whole)) = number
                    && !dtype.holds(whole)
                {
                    return Err(PlanError::Number {
                        number: whole,
                        dtype,
                    });
                }
                (dtype, format!("({})({})", dtype_text(dtype), value.text))
            }
            _ => (value.dtype, value.text.clone()),
        };
        types.push(dtype);
        texts.push(text);
    }
    let dtype = function.value_of(&types).ok_or_else(|| PlanError::Type {
        function: function.name,
        given: types.clone(),
    })?;
    let text = format!("warpcc::op::{}({})", function.name, texts.join(", "));
    let loose = firm.is_none() && matches!(dtype, DType::I64 | DType::F64);
    Ok((text, dtype, loose))
}

/// The type of a number on its own.
fn loose_type(number: Number) -> DType {
    match number {
        Number::Int(_) => DType::I64,
        Number::Float(_) => DType::F64,
    }
}

/// The type that a number takes among values of a type.
fn fitted(number: DType, firm: DType) -> DType {
    match (number.family(), firm.family()) {
        (Family::Float, _) => firm.real(),
        // A bool among integers counts as one.
        (_, Family::Bool) => DType::I32,
        _ => firm,
    }
}

/// The device text's name of a compute type.
pub(crate) fn dtype_text(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        other => other.device(),
    }
}

/// A number as the device text writes it.
fn literal(number: Number, dtype: DType) -> String {
    match number {
        Number::Int(i64::MIN) => "(-9223372036854775807ll - 1)".to_owned(),
        Number::Int(value) if value < 0 => format!("({value}ll)"),
        Number::Int(value) => format!("{value}ll"),
        Number::Float(value) if value.is_finite() && dtype == DType::F64 => {
            if value.is_sign_negative() {
                format!("({value:e})")
            } else {
                // There is always an exponent, so that C++ reads a floating number.
                format!("{value:e}")
            }
        }
        Number::Float(value) => format!("warpcc::bit_copy<double>({:#x}ull)", value.to_bits()),
    }
}
