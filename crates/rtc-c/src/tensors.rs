//! Arrays and values in the form of C, converted to the form of plans.
#![expect(
    unsafe_code,
    reason = "C's calling convention; every pointer goes through ffi.rs, which says what is asked of it"
)]

use std::ffi::c_char;

use warpcc_kernels::dtype::DType;
use warpcc_kernels::elementwise::Value as RustValue;
use warpcc_kernels::plan::{Tensor as RustTensor, WriteMode};

use crate::error::Failure;
use crate::ffi::{given, list};

/// The type of an element. docs/kernels.md lists the type in which each is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Dtype {
    /// One byte: 0 is false, all else true.
    Bool = 0,
    /// 8 bits, signed.
    Int8 = 1,
    /// 8 bits, unsigned.
    Uint8 = 2,
    /// 16 bits, signed.
    Int16 = 3,
    /// 16 bits, unsigned.
    Uint16 = 4,
    /// 32 bits, signed.
    Int32 = 5,
    /// 32 bits, unsigned.
    Uint32 = 6,
    /// 64 bits, signed.
    Int64 = 7,
    /// 64 bits, unsigned.
    Uint64 = 8,
    /// IEEE binary16.
    Float16 = 9,
    /// The upper half of a binary32.
    Bfloat16 = 10,
    /// OCP 8-bit with 4 bits of exponent.
    Float8E4m3 = 11,
    /// OCP 8-bit with 5 bits of exponent.
    Float8E5m2 = 12,
    /// IEEE binary32.
    Float32 = 13,
    /// IEEE binary64.
    Float64 = 14,
}

/// How a result is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Write {
    /// It replaces the content of the output.
    Replace = 0,
    /// It is added to the content of the output.
    Add = 1,
}

/// An array on the device.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Tensor {
    /// The device address of the first element.
    pub address: u64,
    /// Its sizes, outermost first.
    pub shape: *const u64,
    /// Strides between neighbours in each dimension, in elements; null: contiguous rows.
    pub strides: *const i64,
    /// The number of sizes and strides; 0 for a single element.
    pub dimensions: u32,
    /// `warpcc_rtc_dtype`
    pub dtype: i32,
}

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum ValueKind {
    /// An array.
    Tensor = 0,
    /// A floating-point number.
    Float = 1,
    /// An integer.
    Int = 2,
}

/// The value of a name in an expression. A number is an argument of the kernel: another value needs no other kernel.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Value {
    /// The name in the expression; `warpcc_rtc_plan_binary` ignores it.
    pub name: *const c_char,
    /// The array, for `WARPCC_RTC_VALUE_KIND_TENSOR`.
    pub tensor: *const Tensor,
    /// The number, for `WARPCC_RTC_VALUE_KIND_FLOAT`.
    pub number: f64,
    /// The number, for `WARPCC_RTC_VALUE_KIND_INT`.
    pub integer: i64,
    /// `warpcc_rtc_value_kind`
    pub kind: i32,
}

/// # Safety
/// As for [`list`], for the shape and the strides.
pub(crate) unsafe fn tensor_of(
    tensor: Option<&Tensor>,
    argument: &'static str,
) -> Result<RustTensor, Failure> {
    let tensor = given(tensor, argument)?;
    let known = usize::try_from(tensor.dtype).ok();
    let dtype = known.and_then(|index| DType::ALL.get(index)).copied();
    let dtype = dtype.ok_or_else(|| {
        let problem = format!("dtype {} is not a warpcc_rtc_dtype", tensor.dtype);
        Failure::invalid(argument, problem)
    })?;
    let dimensions = usize::try_from(tensor.dimensions).unwrap_or(usize::MAX);
    if dimensions > 64 {
        return Err(Failure::invalid(
            argument,
            format!("{dimensions} dimensions: at most 64 were expected"),
        ));
    }
    if dimensions > 0 && tensor.shape.is_null() {
        return Err(Failure::invalid(argument, "its shape is a null pointer"));
    }
    // SAFETY: as the caller says.
    let shape = unsafe { list(tensor.shape, dimensions, argument) }?;
    let made = RustTensor::new(dtype, shape, tensor.address);
    if tensor.strides.is_null() {
        return Ok(made);
    }
    // SAFETY: likewise.
    let strides = unsafe { list(tensor.strides, dimensions, argument) }?;
    Ok(made.with_strides(strides))
}

/// A value with its array next to it, which must outlive it.
pub(crate) enum OwnedValue {
    Tensor(RustTensor),
    Float(f64),
    Int(i64),
}

impl OwnedValue {
    /// # Safety
    /// As [`tensor_of`].
    pub(crate) unsafe fn from_value(
        value: Option<&Value>,
        argument: &'static str,
    ) -> Result<Self, Failure> {
        let value = given(value, argument)?;
        match value.kind {
            kind if kind == ValueKind::Tensor as i32 => {
                // SAFETY: as the caller says.
                let tensor = unsafe { list(value.tensor, 1, argument) }?;
                // SAFETY: likewise.
                Ok(Self::Tensor(unsafe {
                    tensor_of(tensor.first(), argument)
                }?))
            }
            kind if kind == ValueKind::Float as i32 => Ok(Self::Float(value.number)),
            kind if kind == ValueKind::Int as i32 => Ok(Self::Int(value.integer)),
            kind => Err(Failure::invalid(
                argument,
                format!("kind {kind} is not a warpcc_rtc_value_kind"),
            )),
        }
    }

    pub(crate) fn value(&self) -> RustValue<'_> {
        match self {
            Self::Tensor(tensor) => tensor.into(),
            Self::Float(number) => (*number).into(),
            Self::Int(number) => (*number).into(),
        }
    }
}

pub(crate) fn output_of(write: i32) -> Result<WriteMode, Failure> {
    match write {
        write if write == Write::Replace as i32 => Ok(WriteMode::Write),
        write if write == Write::Add as i32 => Ok(WriteMode::Add),
        write => Err(Failure::invalid(
            "write",
            format!("{write} is not a warpcc_rtc_write"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_types_are_those_of_the_library() {
        assert_eq!(DType::ALL[Dtype::Bool as usize], DType::Bool);
        assert_eq!(DType::ALL[Dtype::Int64 as usize], DType::I64);
        assert_eq!(DType::ALL[Dtype::Float16 as usize], DType::F16);
        assert_eq!(DType::ALL[Dtype::Float8E5m2 as usize], DType::F8E5M2);
        assert_eq!(DType::ALL[Dtype::Float64 as usize], DType::F64);
        assert_eq!(DType::ALL.len(), Dtype::Float64 as usize + 1);
    }
}
