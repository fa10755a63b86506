//! A DLPack capsule's content (dlpack.h 1.1, and the layout before 1.0).
//!
//! The capsule keeps its name: it is held, not taken over, and gives the tensor back when it goes.
#![expect(
    unsafe_code,
    reason = "a capsule holds the address of a C structure, whose layout its name states"
)]

use std::ffi::c_void;

use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors;

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    dimensions: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: DlTensor,
    // What follows is its maker's.
}

#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: *mut c_void,
    flags: u64,
    tensor: DlTensor,
}

/// `DLPACK_FLAG_BITMASK_READ_ONLY`.
const READ_ONLY: u64 = 1;
/// `DLPACK_FLAG_BITMASK_IS_COPIED`.
const COPIED: u64 = 2;
/// No array of a framework has more.
const MOST_DIMENSIONS: i32 = 64;

/// What a capsule says.
pub struct Content {
    pub address: u64,
    /// `DLDeviceType`, and which one.
    pub device: (i32, i32),
    /// `DLDataTypeCode`, bits, lanes.
    pub dtype: (u8, u8, u16),
    pub shape: Vec<i64>,
    /// In elements; none: rows one after another.
    pub strides: Option<Vec<i64>>,
    pub readonly: bool,
    /// It is a copy, made for whoever asked: what is written to it nobody sees.
    pub copied: bool,
}

/// Reads a capsule of `__dlpack__`. `who` is its argument.
pub fn read(who: &str, capsule: &Bound<'_, PyAny>) -> PyResult<Content> {
    let py = capsule.py();
    let capsule = capsule
        .cast::<PyCapsule>()
        .map_err(|_| errors::wrong_type(format!("{who}: its __dlpack__ gave no capsule")))?;
    if capsule.is_valid_checked(Some(c"dltensor_versioned")) {
        let pointer = capsule.pointer_checked(Some(c"dltensor_versioned"))?;
        // The name says that it points to this, and the capsule is alive.
        let managed = unsafe { pointer.cast::<Versioned>().as_ref() };
        if managed.major != 1 {
            let (major, minor) = (managed.major, managed.minor);
            return Err(errors::argument(
                py,
                format!("{who}: it is of DLPack {major}.{minor}; 1.x was asked for"),
            ));
        }
        return content(py, who, &managed.tensor, managed.flags);
    }
    if !capsule.is_valid_checked(Some(c"dltensor")) {
        let text = format!(
            "{who}: its __dlpack__ gave a capsule that is no tensor's, or that another has taken over: a new one was \
             expected"
        );
        return Err(errors::argument(py, text));
    }
    let pointer = capsule.pointer_checked(Some(c"dltensor"))?;
    let managed = unsafe { pointer.cast::<Managed>().as_ref() };
    content(py, who, &managed.tensor, 0)
}

fn content(py: Python<'_>, who: &str, tensor: &DlTensor, flags: u64) -> PyResult<Content> {
    if !(0..=MOST_DIMENSIONS).contains(&tensor.dimensions) {
        let count = tensor.dimensions;
        return Err(errors::argument(
            py,
            format!("{who}: it has {count} dimensions"),
        ));
    }
    let count = usize::try_from(tensor.dimensions).unwrap_or(0);
    if count > 0 && tensor.shape.is_null() {
        let text = format!("{who}: its __dlpack__ gave {count} dimension(s) and no shape");
        return Err(errors::argument(py, text));
    }
    let list = |first: *const i64| match first.is_null() || count == 0 {
        true => None,
        // As many as there are dimensions, by the format.
        false => Some(unsafe { std::slice::from_raw_parts(first, count) }.to_vec()),
    };
    Ok(Content {
        address: (tensor.data as u64).wrapping_add(tensor.byte_offset),
        device: (tensor.device_type, tensor.device_id),
        dtype: (tensor.code, tensor.bits, tensor.lanes),
        shape: list(tensor.shape).unwrap_or_default(),
        strides: list(tensor.strides),
        readonly: flags & READ_ONLY != 0,
        copied: flags & COPIED != 0,
    })
}
