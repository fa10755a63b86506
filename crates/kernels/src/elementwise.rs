//! Makes one kernel of an expression over arrays and numbers: it computes element by element, broadcasts, and writes or
//! adds.
//!
//! Arrays that the output runs through without a gap are one row of elements, read and written in
//! accesses of up to 16 bytes whatever their addresses: what stands before the output's first aligned
//! place and after its last one is done by element, and an input that is off against the output is
//! read in smaller accesses. An input whose neighbours are in another dimension than the output's (a transposed
//! matrix) is read along its own, and transposed in registers. All else finds each place by division, which is a multiplication here.

mod kernel;
mod row;
mod strided;
mod transposed;

use std::collections::HashMap;

use crate::dtype::DType;
use crate::expression::{Expr, Number};
use crate::infer::{NameType, body};
use crate::layout::broadcast;
use crate::plan::{Plan, PlanError, Tensor, Tuning, Which, WriteMode};
use crate::plan_cache::{self, function_of};
pub use crate::value::Value;

use kernel::ElementKernel;

/// A function of one array.
///
/// # Errors
///
/// As [`fused`].
pub fn unary(
    function: &str,
    x: &Tensor,
    output: &Tensor,
    mode: WriteMode,
) -> Result<Plan, PlanError> {
    let expr = function_of(function, &["x"])?;
    fused(&expr, &[("x", x.into())], output, mode)
}

/// A function of two arrays or of an array and a number.
///
/// # Errors
///
/// As [`fused`].
pub fn binary(
    function: &str,
    x: Value<'_>,
    y: Value<'_>,
    output: &Tensor,
    mode: WriteMode,
) -> Result<Plan, PlanError> {
    let expr = function_of(function, &["x", "y"])?;
    fused(&expr, &[("x", x), ("y", y)], output, mode)
}

/// An expression as one kernel.
///
/// # Errors
///
/// A name that is not given or not used, types that a function does not take, shapes that do not
/// broadcast to the output's, invalid addresses, an output whose elements overlap or that lies
/// partly on an input.
pub fn fused(
    expr: &Expr,
    values: &[(&str, Value<'_>)],
    output: &Tensor,
    mode: WriteMode,
) -> Result<Plan, PlanError> {
    plan_cache::plan(expr, values, output, mode, || {
        planned(expr, values, output, mode, None)
    })
}

/// As [`fused`], cut into blocks as `tuning` says.
///
/// # Errors
///
/// Those of [`fused`]; also a number of threads or accesses that no device has.
pub fn tuned(
    expr: &Expr,
    values: &[(&str, Value<'_>)],
    output: &Tensor,
    mode: WriteMode,
    tuning: Tuning,
) -> Result<Plan, PlanError> {
    if tuning.threads == 0 || !tuning.threads.is_multiple_of(32) || tuning.threads > 1024 {
        return Err(PlanError::Threads {
            given: tuning.threads,
        });
    }
    if !(1..=16).contains(&tuning.unroll) {
        return Err(PlanError::Unroll {
            given: tuning.unroll,
        });
    }
    planned(expr, values, output, mode, Some(tuning))
}

fn planned(
    expr: &Expr,
    values: &[(&str, Value<'_>)],
    output: &Tensor,
    mode: WriteMode,
    tuning: Option<Tuning>,
) -> Result<Plan, PlanError> {
    let (bound, inputs, numbers) = bind(expr, values)?;
    let body = body(expr, &bound)?;
    let Some(layout) = broadcast(output, &inputs)? else {
        return Ok(Plan::default());
    };
    let mut kernel = ElementKernel {
        body: &body,
        output,
        inputs: inputs.iter().map(|(_, tensor)| *tensor).collect(),
        numbers,
        mode,
        tuning: tuning.unwrap_or_default(),
        has_own_tuning: tuning.is_some(),
    };
    let launch = if row::is_row(&layout) {
        kernel.row(&layout)?
    } else if let Some(squares) = kernel.squares(&layout) {
        kernel.transposed(&squares)?
    } else {
        kernel.strided(&layout)?
    };
    Ok(Plan {
        launches: vec![launch],
        workspace: 0,
        arrays: arrays(output, &inputs),
    })
}

/// A plan's addresses, to be told by name.
fn arrays(output: &Tensor, inputs: &[(&str, &Tensor)]) -> Vec<(Which, u64)> {
    let inputs = inputs.iter();
    inputs
        .map(|(name, tensor)| (Which::Input((*name).into()), tensor.address))
        .chain([(Which::Output, output.address)])
        .collect()
}

/// The type to keep an expression's values in by default: that of its arrays, mixed, where it is
/// computed in theirs, otherwise the compute type. `relu` of half is half; a comparison gives bool.
///
/// # Errors
///
/// A name is not given or not used, or a function does not take the types.
pub fn result_type(expr: &Expr, values: &[(&str, Value<'_>)]) -> Result<DType, PlanError> {
    plan_cache::result_type(expr, values, || {
        let (bound, inputs, _) = bind(expr, values)?;
        let made = body(expr, &bound)?.dtype;
        let mixed = inputs
            .iter()
            .map(|(_, tensor)| tensor.dtype)
            .reduce(DType::mixed);
        Ok(mixed
            .filter(|mixed| mixed.compute() == made)
            .unwrap_or(made))
    })
}

type Bindings<'a> = (
    HashMap<&'a str, NameType>,
    Vec<(&'a str, &'a Tensor)>,
    Vec<Number>,
);

/// The names and what they refer to, arrays and numbers counted separately.
fn bind<'a>(expr: &Expr, values: &[(&'a str, Value<'a>)]) -> Result<Bindings<'a>, PlanError> {
    let used = expr.names();
    let mut bound = HashMap::new();
    let mut inputs = Vec::new();
    let mut numbers = Vec::new();
    for &(name, value) in values {
        let each = match value {
            Value::Tensor(tensor) => {
                inputs.push((name, tensor));
                NameType::Array(inputs.len() - 1, tensor.dtype)
            }
            Value::Number(number) => {
                numbers.push(number);
                NameType::Number(numbers.len() - 1, number)
            }
        };
        let twice = bound.insert(name, each).is_some();
        if twice || !used.contains(&name) {
            return Err(PlanError::Needless {
                name: name.to_owned(),
                twice,
            });
        }
    }
    Ok((bound, inputs, numbers))
}
