//! The arguments of an operation: arrays and numbers, each with the name that errors give it.

use pyo3::prelude::*;
use warpcc_kernels::elementwise::Value;
use warpcc_kernels::expression::Number;
use warpcc_kernels::plan::Tensor;
use warpcc_kernels::shape;

use crate::arrays::Array;
use crate::errors;

/// An argument: what it is called, and an array or a number.
pub struct Input<'a, 'py> {
    pub name: &'a str,
    pub object: &'a Bound<'py, PyAny>,
    pub content: InputContent,
}

/// What was given.
pub enum InputContent {
    Array(Array),
    Number(Number),
}

impl Input<'_, '_> {
    /// The array; `None` for a number.
    pub fn tensor(&self) -> Option<&Tensor> {
        match &self.content {
            InputContent::Array(array) => Some(&array.tensor),
            InputContent::Number(_) => None,
        }
    }
}

/// The values by their names, as plans take them.
pub fn values_of<'a>(inputs: &'a [Input<'_, '_>]) -> Vec<(&'a str, Value<'a>)> {
    let all = inputs.iter().map(|input| {
        let value = match &input.content {
            InputContent::Array(array) => Value::Tensor(&array.tensor),
            InputContent::Number(number) => Value::Number(*number),
        };
        (input.name, value)
    });
    all.collect()
}

/// The shape that all arrays broadcast to.
pub fn broadcast(py: Python<'_>, inputs: &[Input<'_, '_>]) -> PyResult<Vec<u64>> {
    let arrays = inputs
        .iter()
        .filter_map(|input| Some((input.name, &input.tensor()?.shape[..])));
    shape::broadcast_shape(arrays).map_err(|error| errors::of_plan(py, &error))
}

/// The GPU that an array says it is on.
pub fn ordinal(array: &Array) -> Option<usize> {
    array.device.and_then(|device| usize::try_from(device).ok())
}

/// The GPU that all arrays are on.
pub fn one_device(py: Python<'_>, inputs: &[Input<'_, '_>]) -> PyResult<Option<usize>> {
    let mut first: Option<(&str, usize)> = None;
    for input in inputs {
        let (name, InputContent::Array(array)) = (input.name, &input.content) else {
            continue;
        };
        let Some(device) = ordinal(array) else {
            continue;
        };
        match first {
            None => first = Some((name, device)),
            Some((other, other_device)) if other_device != device => {
                let text = format!("{name} is on GPU {device}, and {other} on GPU {other_device}");
                return Err(errors::argument(py, text));
            }
            Some(_) => {}
        }
    }
    Ok(first.map(|(_, device)| device))
}
