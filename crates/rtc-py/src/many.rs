//! Many kernels at once.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use warpcc_rtc::{CompileRequest, ManyOptions, Progress, WorkerCommand};

use crate::arguments::{deadline, target, texts};
use crate::cache::{KernelCache, made};
use crate::interrupt;

/// A kernel to compile, as Python's part of the package gives it.
#[derive(FromPyObject)]
pub struct KernelToCompile<'py> {
    #[pyo3(item)]
    source: String,
    #[pyo3(item)]
    name: String,
    #[pyo3(item)]
    arch: Option<String>,
    #[pyo3(item)]
    names: Vec<String>,
    #[pyo3(item)]
    parameters: String,
    #[pyo3(item)]
    options: Vec<String>,
    #[pyo3(item)]
    include: Vec<PathBuf>,
    #[pyo3(item)]
    headers: Option<Bound<'py, PyDict>>,
    #[pyo3(item)]
    file: Option<String>,
}

/// Compiles them, or finds them. For each an Image, or the exception that says why there is none. `worker` is the command of
/// processes that call [`serve_compilations`]; without one, only threads of this process compile.
#[pyfunction]
#[pyo3(signature = (cache, kernels, threads, progress, timeout, worker))]
pub fn compile_many<'py>(
    py: Python<'py>,
    cache: &KernelCache,
    kernels: Vec<Bound<'py, PyAny>>,
    threads: usize,
    progress: Option<Py<PyAny>>,
    timeout: Option<f64>,
    worker: Option<Vec<OsString>>,
) -> PyResult<Bound<'py, PyList>> {
    let requests: PyResult<Vec<CompileRequest>> = kernels
        .iter()
        .map(|kernel| request(py, cache, &kernel.extract()?))
        .collect();
    let requests = requests?;
    let deadline = deadline(py, timeout)?;
    let options = ManyOptions {
        threads,
        workers: worker.and_then(command),
        ..ManyOptions::default()
    };
    let raised = Mutex::new(None);
    let tell = |step: &Progress<'_>| {
        let Some(progress) = &progress else {
            return true;
        };
        let called = Python::attach(|py| {
            let result = step.result.clone();
            let image = match made(py, step.name, result) {
                Ok(image) => Py::new(py, image)?.into_any(),
                Err(error) => error.into_value(py).into_any(),
            };
            let seconds = step.took.as_secs_f64();
            progress.call1(py, (step.done, step.total, step.name, image, seconds))
        });
        let error = called.err();
        let goes_on = error.is_none();
        if !goes_on {
            *raised.lock().unwrap_or_else(PoisonError::into_inner) = error;
        }
        goes_on
    };
    let results = interrupt::run(py, deadline, |limits| {
        cache.cache.get_many(&requests, &options, limits, tell)
    })?;
    if let Some(error) = raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let images = PyList::empty(py);
    for (result, request) in results.into_iter().zip(&requests) {
        match made(py, &request.name, result) {
            Ok(image) => images.append(image)?,
            Err(error) => images.append(error.into_value(py))?,
        }
    }
    Ok(images)
}

/// The command of a program and its arguments.
fn command(words: Vec<OsString>) -> Option<WorkerCommand> {
    let mut words = words.into_iter();
    let program = words.next()?;
    Some(WorkerCommand::new(program, words))
}

/// Compiles for the process that started this one, until that ends or needs no more: `_worker.py` calls it.
#[pyfunction]
pub fn serve_compilations(py: Python<'_>) -> PyResult<()> {
    py.detach(warpcc_rtc::serve_compilations)
        .map_err(PyRuntimeError::new_err)
}

pub fn request(
    py: Python<'_>,
    cache: &KernelCache,
    asked: &KernelToCompile<'_>,
) -> PyResult<CompileRequest> {
    let target = match &asked.arch {
        Some(arch) => target(py, arch)?,
        None => cache.target_for(py, None)?,
    };
    let common = &cache.cache;
    let mut request = common.request(&asked.parameters, &asked.name, &asked.source, target);
    let more = asked.names.iter().map(|name| name.as_str().into());
    request.name_expressions.extend(more);
    let options = asked.options.iter().map(|option| option.as_str().into());
    request.options.extend(options);
    request
        .include_folders
        .extend(asked.include.iter().cloned());
    request
        .headers
        .extend(texts("headers", asked.headers.as_ref())?);
    request.file = asked.file.as_deref().map(Into::into);
    Ok(request)
}
