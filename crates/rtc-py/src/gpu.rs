//! The GPU that a caller names.

use pyo3::prelude::*;

use crate::{driver, errors};

/// A GPU's number: an int, or what has one (`torch.device`, `cupy.cuda.Device`).
pub fn ordinal(device: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    let Some(device) = device.filter(|device| !device.is_none()) else {
        return Ok(driver::current());
    };
    let named = ["index", "id"]
        .iter()
        .find_map(|name| device.getattr(*name).ok());
    let number = match device.extract::<i64>() {
        Ok(number) => Some(number),
        // A `torch.device("cuda")` has no number: the current one.
        Err(_) => match named.filter(|found| !found.is_callable()) {
            Some(found) if found.is_none() => return Ok(driver::current()),
            Some(found) => found.extract().ok(),
            None => None,
        },
    };
    number
        .and_then(|number| usize::try_from(number).ok())
        .ok_or_else(|| {
            let text = format!("device: the number of a GPU was expected, not {device}");
            errors::argument(device.py(), text)
        })
}
