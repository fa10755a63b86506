//! The values that names in an expression refer to: arrays and numbers.

use crate::expression::Number;
use crate::plan::{Argument, Tensor};

/// The value that a name in an expression refers to.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// An array.
    Tensor(&'a Tensor),
    /// A number: an argument of the kernel, so that another value needs no other kernel.
    Number(Number),
}

impl<'a> From<&'a Tensor> for Value<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Self::Tensor(tensor)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Self::Number(Number::Float(number))
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Number(Number::Int(number))
    }
}

/// A number as an argument: all are 8 bytes, so that one kernel takes each.
pub(crate) fn number_argument(number: Number) -> Argument {
    Argument::Bytes(match number {
        Number::Int(value) => value.to_ne_bytes().into(),
        Number::Float(value) => value.to_ne_bytes().into(),
    })
}
