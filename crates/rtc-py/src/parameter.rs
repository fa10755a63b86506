//! Python's values as bytes of a kernel's parameter.

use std::fmt::Display;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyFloat, PyInt};

use crate::arrays::type_of;
use crate::errors;

/// Bytes of a value as a kernel's parameter of `size` bytes, where that is known.
pub fn parameter(
    who: &dyn Display,
    object: &Bound<'_, PyAny>,
    size: Option<usize>,
) -> PyResult<Vec<u8>> {
    let refuse = |text: String| errors::argument(object.py(), format!("{who}: {text}"));
    if object.is_instance_of::<PyBool>() {
        return of_bool(object.extract()?, size.unwrap_or(1)).map_err(refuse);
    }
    if object.is_instance_of::<PyInt>() {
        let value = object
            .extract::<i64>()
            .map(i128::from)
            .or_else(|_| object.extract::<u64>().map(i128::from))
            .map_err(|_| refuse(format!("{object} does not fit into 64 bits")))?;
        return of_int(value, size.unwrap_or(8)).map_err(refuse);
    }
    if object.is_instance_of::<PyFloat>() {
        return of_float(object.extract()?, size).map_err(refuse);
    }
    let bytes = own_bytes(object)?.ok_or_else(|| {
        errors::wrong_type(format!(
            "{who}: a {} cannot be given to a kernel: an array on a GPU, an int, float or bool, a NumPy or ctypes scalar, \
             bytes or None was expected",
            type_of(object)
        ))
    })?;
    match size {
        Some(size) if size != bytes.len() => Err(refuse(format!(
            "{} has {} byte(s), and the kernel's parameter {size}",
            type_of(object),
            bytes.len()
        ))),
        _ => Ok(bytes),
    }
}

fn of_bool(value: bool, size: usize) -> Result<Vec<u8>, String> {
    if !matches!(size, 1 | 2 | 4 | 8) {
        return Err(format!("a bool for a parameter of {size} bytes"));
    }
    let mut bytes = vec![0; size];
    if let Some(first) = bytes.first_mut() {
        *first = u8::from(value);
    }
    Ok(bytes)
}

fn of_int(value: i128, size: usize) -> Result<Vec<u8>, String> {
    if !matches!(size, 1 | 2 | 4 | 8) {
        return Err(format!(
            "an int for a parameter of {size} bytes: give its bytes (bytes, or a NumPy or ctypes value)"
        ));
    }
    let bits = 8 * size;
    if !(-(1i128 << (bits - 1))..1i128 << bits).contains(&value) {
        return Err(format!(
            "{value} does not fit into the kernel's parameter of {size} byte(s)"
        ));
    }
    Ok(value.to_le_bytes()[..size].to_vec())
}

fn of_float(value: f64, size: Option<usize>) -> Result<Vec<u8>, String> {
    match size {
        Some(8) => Ok(value.to_ne_bytes().to_vec()),
        Some(4) => Ok((value as f32).to_ne_bytes().to_vec()),
        Some(size) => Err(format!(
            "a float for a parameter of {size} byte(s): give a NumPy or ctypes value"
        )),
        None => Err(
            "whether it is float or double is not known with drivers before 12.4: give numpy.float32(…) or \
             numpy.float64(…)"
                .to_owned(),
        ),
    }
}

/// The bytes of what has some.
fn own_bytes(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if object.is_none() {
        // A null pointer.
        return Ok(Some(vec![0; 8]));
    }
    // NumPy's scalars and records, which know their bytes; an array of NumPy's is one on the CPU.
    if object.hasattr("tobytes")? && !object.hasattr("__dlpack__")? {
        return object.call_method0("tobytes")?.extract().map(Some);
    }
    if object.is_instance_of::<PyBytes>() || object.is_instance_of::<PyByteArray>() {
        return object.extract().map(Some);
    }
    // ctypes.
    if object.hasattr("_b_needsfree_")? {
        let builtins = object.py().import("builtins")?;
        let bytes = builtins.getattr("bytes")?.call1((object,))?;
        return bytes.extract().map(Some);
    }
    Ok(None)
}
