//! A DLPack tensor's content (dlpack.h 1.1, and the layout before 1.0), by a capsule or handed over.
//!
//! A capsule keeps its name: it is held, not taken over, and gives the tensor back when it goes.
#![expect(
    unsafe_code,
    reason = "a capsule holds the address of a C structure, whose layout its name states"
)]

use std::ffi::c_void;
use std::fmt::Display;
use std::ptr::{self, NonNull};

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

/// A tensor that its maker lends, by a `DLTensor` that is filled.
#[repr(transparent)]
pub struct Borrowed(DlTensor);

impl Default for Borrowed {
    fn default() -> Self {
        Self(DlTensor {
            data: ptr::null_mut(),
            device_type: 0,
            device_id: 0,
            dimensions: 0,
            code: 0,
            bits: 0,
            lanes: 0,
            shape: ptr::null(),
            strides: ptr::null(),
            byte_offset: 0,
        })
    }
}

impl Borrowed {
    /// The array's content; `None` where it is not valid. A borrowed array has no flags.
    pub fn content(&self) -> Option<CapsuleContent> {
        content(&self.0, 0).ok()
    }
}

#[repr(C)]
struct Unversioned {
    tensor: DlTensor,
    // The remaining fields belong to its maker.
}

#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: DlTensor,
}

/// `DLPACK_FLAG_BITMASK_READ_ONLY`.
const READ_ONLY: u64 = 1;
/// `DLPACK_FLAG_BITMASK_IS_COPIED`.
const COPIED: u64 = 2;
/// No array of a framework has more.
const MOST_DIMENSIONS: i32 = 64;

/// The content of a capsule.
pub struct CapsuleContent {
    pub address: u64,
    /// `DLDeviceType`, and which one.
    pub device: (i32, i32),
    /// `DLDataTypeCode`, bits, lanes.
    pub dtype: (u8, u8, u16),
    pub shape: Vec<i64>,
    /// In elements; none: rows one after another.
    pub strides: Option<Vec<i64>>,
    pub readonly: bool,
    /// It is a copy, made for the caller: writes to it are lost.
    pub copied: bool,
}

/// Reads a capsule of `__dlpack__`. `who` is its argument.
pub fn read(who: &dyn Display, capsule: &Bound<'_, PyAny>) -> PyResult<CapsuleContent> {
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
        return content(&managed.tensor, managed.flags)
            .map_err(|text| errors::argument(py, format!("{who}: {text}")));
    }
    if !capsule.is_valid_checked(Some(c"dltensor")) {
        let text = format!(
            "{who}: its __dlpack__ gave a capsule that holds no tensor, or was used already: a new one was expected"
        );
        return Err(errors::argument(py, text));
    }
    let pointer = capsule.pointer_checked(Some(c"dltensor"))?;
    let managed = unsafe { pointer.cast::<Unversioned>().as_ref() };
    content(&managed.tensor, 0).map_err(|text| errors::argument(py, format!("{who}: {text}")))
}

/// A tensor that its maker handed over, and gets back.
pub struct Managed(NonNull<Versioned>);

// A deleter may be called from any thread, and what is read here does not change.
unsafe impl Send for Managed {}
unsafe impl Sync for Managed {}

impl Managed {
    /// Takes over a `DLManagedTensorVersioned` of DLPack 1.x.
    ///
    /// # Safety
    /// `pointer` is a valid tensor, and has no other owner.
    pub unsafe fn owned(pointer: NonNull<c_void>) -> Self {
        Self(pointer.cast())
    }

    /// The array's content; `None` where it is not valid.
    pub fn content(&self) -> Option<CapsuleContent> {
        let managed = unsafe { self.0.as_ref() };
        let known = managed.major == 1;
        known
            .then(|| content(&managed.tensor, managed.flags).ok())
            .flatten()
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        // Whatever its version: up to the flags the layout is the same in all.
        if let Some(deleter) = unsafe { self.0.as_ref() }.deleter {
            unsafe { deleter(self.0.as_ptr()) };
        }
    }
}

fn content(tensor: &DlTensor, flags: u64) -> Result<CapsuleContent, String> {
    let count = tensor.dimensions;
    if !(0..=MOST_DIMENSIONS).contains(&count) {
        return Err(format!("it has {count} dimensions"));
    }
    if count > 0 && tensor.shape.is_null() {
        return Err(format!(
            "its __dlpack__ gave {count} dimension(s) and no shape"
        ));
    }
    let count = usize::try_from(count).unwrap_or(0);
    let list = |first: *const i64| match first.is_null() || count == 0 {
        true => None,
        // As many as there are dimensions, by the format.
        false => Some(unsafe { std::slice::from_raw_parts(first, count) }.to_vec()),
    };
    Ok(CapsuleContent {
        address: (tensor.data as u64).wrapping_add(tensor.byte_offset),
        device: (tensor.device_type, tensor.device_id),
        dtype: (tensor.code, tensor.bits, tensor.lanes),
        shape: list(tensor.shape).unwrap_or_default(),
        strides: list(tensor.strides),
        readonly: flags & READ_ONLY != 0,
        copied: flags & COPIED != 0,
    })
}
