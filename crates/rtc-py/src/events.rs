//! What a cache tells a Python program about each request.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use pyo3::prelude::*;
use warpcc_rtc::{CacheEvent, Observer};

/// A request that a cache has answered.
#[pyclass(frozen, get_all, module = "warpcc_rtc")]
pub struct Event {
    /// The name of the kernel, the link or the PTX text.
    name: String,
    /// The cache's key; None where it is not known.
    key: Option<String>,
    /// `made`, where it was found (`memory`, `disk`, `shared`), or `failed`.
    outcome: &'static str,
    /// What it failed with.
    error: Option<String>,
    /// When it began, as `time.time()` tells it.
    started: f64,
    /// How long it took, waiting included.
    seconds: f64,
}

#[pymethods]
impl Event {
    fn __repr__(&self) -> String {
        let Self { name, outcome, .. } = self;
        format!(
            "<warpcc_rtc.Event {name}, {outcome}, {:.6} s>",
            self.seconds
        )
    }
}

/// The function that a program wants called, if any: it may be set while the cache works.
#[derive(Clone, Default)]
pub struct Callback(Arc<Mutex<Option<Py<PyAny>>>>);

impl Callback {
    /// The observer that calls the function.
    pub fn observer(&self) -> Observer {
        let callback = self.clone();
        Observer::new(move |event| callback.call(event))
    }

    pub fn set(&self, function: Option<Py<PyAny>>) {
        let old = std::mem::replace(&mut *self.lock(), function);
        // What this runs may use the cache.
        drop(old);
    }

    pub fn get(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.lock().as_ref().map(|function| function.clone_ref(py))
    }

    fn call(&self, event: &CacheEvent<'_>) {
        // A hit in memory is cheap, and should not wait for the interpreter for nothing.
        if self.lock().is_none() {
            return;
        }
        Python::attach(|py| {
            let Some(function) = self.get(py) else {
                return;
            };
            let called = function.call1(py, (make_event(event),));
            // The caller asked for a kernel, and gets it also if the function that is told of it fails.
            if let Err(error) = called {
                error.write_unraisable(py, Some(function.bind(py)));
            }
        });
    }

    /// Never held while Python runs, which may switch threads.
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Py<PyAny>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn make_event(event: &CacheEvent<'_>) -> Event {
    let started = event.started.duration_since(UNIX_EPOCH);
    Event {
        name: event.name.to_owned(),
        key: event.key.map(|key| key.hex()),
        outcome: event.word(),
        error: event.outcome.err().map(ToString::to_string),
        started: started.unwrap_or_default().as_secs_f64(),
        seconds: event.took.as_secs_f64(),
    }
}
