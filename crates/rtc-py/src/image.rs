//! The result of a compilation: machine code, PTX or LTO-IR, with names and log.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use warpcc_rtc::Image as Compiled;

use crate::function::{Function, Loaded};
use crate::{driver, errors, gpu};

/// A compiled image.
#[pyclass(frozen, module = "warpcc_rtc")]
pub struct Image {
    pub image: Compiled,
    pub name: String,
}

#[pymethods]
impl Image {
    /// What it was compiled as.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The bytes: a cubin, PTX text, LTO-IR.
    #[getter]
    fn image<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.image.compiled.image)
    }

    /// `sm_90`, `compute_90` or `lto_90`.
    #[getter]
    fn target(&self) -> String {
        self.image.compiled.target.to_string()
    }

    /// What the compiler said: warnings.
    #[getter]
    fn log(&self) -> &str {
        &self.image.compiled.log
    }

    /// Each kernel as C++ calls it, and its name in the image.
    #[getter]
    fn lowered<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let names = PyDict::new(py);
        for (asked, lowered) in &self.image.compiled.lowered {
            names.set_item(asked, lowered)?;
        }
        Ok(names)
    }

    /// The cache's key; None where the included files cannot be known, so that nothing was kept.
    #[getter]
    fn key(&self) -> Option<String> {
        self.image.key.map(|key| key.hex())
    }

    /// `made`, or where it was found: `memory`, `disk`, `shared`, `given`.
    #[getter]
    fn found(&self) -> &'static str {
        self.image.found.word()
    }

    /// The name in the image of what C++ calls `expression`.
    fn lowered_name(&self, py: Python<'_>, expression: &str) -> PyResult<&str> {
        let known = || {
            let names = self
                .image
                .compiled
                .lowered
                .iter()
                .map(|(asked, _)| asked.as_str());
            names.collect::<Vec<_>>().join(", ")
        };
        self.image.compiled.lowered_name(expression).ok_or_else(|| {
            let text = format!(
                "{expression}: its name was not asked for; known names are {}",
                known()
            );
            errors::argument(py, text)
        })
    }

    /// Loads it onto a GPU and gives a kernel of it.
    #[pyo3(signature = (name = None, *, device = None))]
    fn function(
        &self,
        py: Python<'_>,
        name: Option<&str>,
        device: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Function> {
        let asked = name.unwrap_or(&self.name);
        let lowered = self
            .image
            .compiled
            .lowered_name(asked)
            .unwrap_or(asked)
            .to_owned();
        let ordinal = gpu::ordinal(device)?;
        let loaded = py.detach(|| {
            let device = driver::device(ordinal)?;
            let module = device.load(&self.name, &self.image.compiled)?;
            let kernel = module.function(&lowered)?;
            Ok(Loaded::new(Arc::new(kernel), device, ordinal))
        });
        let loaded = loaded.map_err(|error| errors::to_python(py, &error))?;
        Ok(Function {
            loaded: Arc::new(loaded),
        })
    }

    fn __len__(&self) -> usize {
        self.image.compiled.image.len()
    }

    fn __repr__(&self) -> String {
        let (name, target, bytes) = (&self.name, self.target(), self.__len__());
        format!(
            "<warpcc_rtc.Image {name} for {target}, {bytes} bytes, {}>",
            self.found()
        )
    }
}
