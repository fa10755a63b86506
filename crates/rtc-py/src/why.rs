//! Why a kernel is not in the cache, for Python.

use pyo3::prelude::*;
use warpcc_rtc::{PartChange, Why as Reason};

use crate::cache::KernelCache;
use crate::errors;
use crate::many::{KernelToCompile, request};

/// Whether a kernel is stored, and in what it differs from others of its name if not.
#[pyclass(frozen, get_all, module = "warpcc_rtc")]
pub struct Why {
    /// `stored`, `not_stored`, `never_seen`, `removed` or `differs`.
    status: &'static str,
    /// Why it is never stored.
    reason: Option<String>,
    /// How it differs from the most similar one: (part, old value, new value, first line that differs).
    changes: Vec<Change>,
}

type Change = (String, Option<String>, Option<String>, Option<usize>);

#[pymethods]
impl Why {
    fn __repr__(&self) -> String {
        let parts = self.changes.iter().map(|(part, _, _, line)| match line {
            Some(line) => format!("{part}, line {line}"),
            None => part.clone(),
        });
        let more: Vec<String> = self.reason.iter().cloned().chain(parts).collect();
        match more.is_empty() {
            true => format!("<warpcc_rtc.Why {}>", self.status),
            false => format!("<warpcc_rtc.Why {}: {}>", self.status, more.join("; ")),
        }
    }
}

/// Says whether a kernel would be found, and why not. Nothing is compiled.
#[pyfunction]
pub fn why(py: Python<'_>, cache: &KernelCache, kernel: KernelToCompile<'_>) -> PyResult<Why> {
    let request = request(py, cache, &kernel)?;
    let why = py.detach(|| cache.cache.why(&request));
    let why = why.map_err(|error| errors::to_python(py, &error))?;
    let status = why.status();
    let (reason, changes) = match why {
        Reason::NotStored(reason) => (Some(reason), Vec::new()),
        Reason::Differs(changes) => (None, changes),
        Reason::Stored | Reason::NeverSeen | Reason::Removed => (None, Vec::new()),
    };
    let change = |change: PartChange| (change.part, change.old, change.new, change.line);
    Ok(Why {
        status,
        reason,
        changes: changes.into_iter().map(change).collect(),
    })
}
