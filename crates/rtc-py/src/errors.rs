//! Errors of the library as exceptions of the package (`warpcc_rtc/_errors.py`), with the library's own text.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use warpcc_kernels::LaunchError;
use warpcc_kernels::plan::PlanError;
use warpcc_rtc::Error;

/// The exception `class` with attributes.
fn raised(py: Python<'_>, class: &str, text: String, with: &Bound<'_, PyDict>) -> PyErr {
    let made = py
        .import("warpcc_rtc._errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call((text,), Some(with)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

fn plain(py: Python<'_>, class: &str, text: String) -> PyErr {
    raised(py, class, text, &PyDict::new(py))
}

/// An argument that is wrong: a value.
pub fn argument(py: Python<'_>, text: impl Into<String>) -> PyErr {
    plain(py, "ArgumentError", text.into())
}

/// An argument that is no array, number or whatever was expected.
pub fn wrong_type(text: impl Into<String>) -> PyErr {
    pyo3::exceptions::PyTypeError::new_err(text.into())
}

/// A launch that the driver refused.
pub fn launch(py: Python<'_>, text: String) -> PyErr {
    plain(py, "LaunchError", text)
}

/// A plan that cannot be made.
pub fn of_plan(py: Python<'_>, error: &PlanError) -> PyErr {
    argument(py, error.to_string())
}

/// A plan that did not run.
pub fn of_launch(py: Python<'_>, error: &LaunchError) -> PyErr {
    match error {
        LaunchError::Kernel(error) => to_python(py, error),
        LaunchError::Address { .. } => argument(py, error.to_string()),
        LaunchError::Driver { .. } => launch(py, error.to_string()),
    }
}

/// The library's error as a Python exception.
pub fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    let with = PyDict::new(py);
    let text = error.to_string();
    // Attributes of plain texts and numbers: setting one cannot fail but for want of memory.
    let set = |name: &str, value: Option<String>| drop(with.set_item(name, value));
    let class = match error {
        Error::Compile(failure) => {
            set("log", Some(failure.log.clone()));
            set("place", failure.place.as_ref().map(ToString::to_string));
            set("name", Some(failure.name.clone()));
            set("target", Some(failure.target.clone()));
            let saved = failure.saved.as_ref();
            set("saved", saved.map(|path| path.display().to_string()));
            drop(with.set_item("options", failure.options.clone()));
            "CompileError"
        }
        Error::Link { log, .. } => {
            set("log", Some(log.clone()));
            "LinkError"
        }
        Error::Driver(driver) => {
            drop(with.set_item("number", driver.number));
            set("advice", Some(driver.advice.to_owned()));
            "LoadError"
        }
        Error::Library(_) | Error::Unsupported { .. } => "LibraryError",
        Error::Invalid { .. } => "ArgumentError",
        Error::Deadline { .. } | Error::Cancelled { .. } => "DeadlineError",
        _ => "Error",
    };
    raised(py, class, text, &with)
}
