//! What other compilers make (CuPy's, Numba's, cuda.core's own), kept in this package's cache.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use warpcc_rtc::{Compiled, Error, Product};

use crate::arguments::deadline;
use crate::cache::{KernelCache, made};
use crate::image::Image;
use crate::{errors, interrupt};

/// Labels and bytes that decide the result.
type Parts = Vec<(String, Vec<u8>)>;

/// What another compiler made, or what `make()` makes of it now: (bytes, names in it by kernel, log).
#[pyfunction]
#[pyo3(signature = (cache, name, parts, files, make, *, source = None, options = Vec::new(), folders = Vec::new(),
                    timeout = None))]
#[expect(
    clippy::too_many_arguments,
    reason = "keywords, of which a caller names the few that matter"
)]
pub fn get_product(
    py: Python<'_>,
    cache: &KernelCache,
    name: &str,
    parts: Parts,
    files: Vec<PathBuf>,
    make: Py<PyAny>,
    source: Option<&str>,
    options: Vec<String>,
    folders: Vec<PathBuf>,
    timeout: Option<f64>,
) -> PyResult<Image> {
    let mut product = product(name, parts, files);
    if let Some(source) = source {
        product = product.of_program(source, &options, &folders);
    }
    let deadline = deadline(py, timeout)?;
    let raised = Mutex::new(None);
    let call = || {
        Python::attach(|py| called(py, &make)).map_err(|error| {
            *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            // Others who wait for the same try for themselves, and get an exception of their own.
            Error::Cancelled {
                what: name.to_owned(),
            }
        })
    };
    let image = interrupt::run(py, deadline, |limits| {
        cache.cache.get_product(&product, limits, call)
    })?;
    match raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => made(py, name, image),
    }
}

/// Calls what compiles, and takes what it gives.
fn called(py: Python<'_>, make: &Py<PyAny>) -> PyResult<Compiled> {
    let given = make.bind(py).call0()?;
    let (bytes, names, log): (Bound<'_, PyBytes>, Option<Bound<'_, PyDict>>, String) =
        given.extract().map_err(|_| {
            errors::wrong_type("make: (bytes, dict of names or None, log) was expected")
        })?;
    let mut lowered = Vec::new();
    for (name, in_image) in names.iter().flatten() {
        lowered.push((name.extract()?, in_image.extract()?));
    }
    Ok(Compiled::of_product(bytes.as_bytes(), lowered, log))
}

/// What is kept of it, or None.
#[pyfunction]
pub fn find_product(
    py: Python<'_>,
    cache: &KernelCache,
    name: &str,
    parts: Parts,
    files: Vec<PathBuf>,
) -> Option<Image> {
    let product = product(name, parts, files);
    let image = py.detach(|| cache.cache.find_product(&product))?;
    Some(Image {
        image,
        name: name.to_owned(),
    })
}

/// Keeps what another compiler made.
#[pyfunction]
pub fn keep_product(
    py: Python<'_>,
    cache: &KernelCache,
    name: &str,
    parts: Parts,
    files: Vec<PathBuf>,
    bytes: &[u8],
) {
    let product = product(name, parts, files);
    py.detach(|| cache.cache.keep_product(&product, bytes));
}

/// Removes what is kept of it; True if it was kept.
#[pyfunction]
pub fn forget_product(
    py: Python<'_>,
    cache: &KernelCache,
    name: &str,
    parts: Parts,
    files: Vec<PathBuf>,
) -> bool {
    let product = product(name, parts, files);
    py.detach(|| cache.cache.forget_product(&product))
}

fn product(name: &str, parts: Parts, files: Vec<PathBuf>) -> Product {
    let mut product = Product::new(name);
    product.parts = parts;
    product.files = files;
    product
}
