//! The CUDA stream that a call uses: the one given, else the current one of the arrays' framework.

use pyo3::intern;
use pyo3::prelude::*;

use crate::arrays;
use crate::exchange::{Described, frameworks};

/// The address of the stream to use: the one given, else the current one of the first array's framework.
pub fn stream_of<'a, 'py: 'a>(
    py: Python<'py>,
    stream: Option<&Bound<'py, PyAny>>,
    values: impl IntoIterator<Item = (&'a Bound<'py, PyAny>, &'a Option<Described>)>,
) -> PyResult<u64> {
    if let Some(stream) = stream {
        return frameworks(py)?
            .call_method1(intern!(py, "address_of"), (stream,))?
            .extract();
    }
    for (value, described) in values {
        if arrays::is_plain(value) {
            continue;
        }
        if let Some(stream) = described.as_ref().and_then(arrays::stream_of) {
            return Ok(stream);
        }
        let current = frameworks(py)?.call_method1(intern!(py, "current_stream"), (value,))?;
        if !current.is_none() {
            return current.extract();
        }
    }
    Ok(0)
}
