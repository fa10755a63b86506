//! `warpcc_rtc._native`: warpcc-rtc for Python. The interface for Python users is in `python/warpcc_rtc`.
//!
//! Rust compiles, keeps, checks and launches, with the interpreter's lock released wherever that takes time; Python
//! knows the frameworks whose arrays come in: their current stream, and how to make an array of theirs.

mod arguments;
mod arrays;
mod cache;
mod dlpack;
mod driver;
mod errors;
mod events;
mod exchange;
mod function;
mod gpu;
mod image;
mod inputs;
mod interrupt;
mod many;
mod open;
mod ops;
mod parameter;
mod products;
mod stream;
mod why;

use pyo3::prelude::*;

/// The module.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<cache::KernelCache>()?;
    module.add_class::<image::Image>()?;
    module.add_class::<function::Function>()?;
    module.add_class::<function::Configured>()?;
    module.add_class::<events::Event>()?;
    module.add_class::<why::Why>()?;
    module.add_function(wrap_pyfunction!(why::why, module)?)?;
    module.add_function(wrap_pyfunction!(ops::function, module)?)?;
    module.add_function(wrap_pyfunction!(ops::known_functions, module)?)?;
    module.add_function(wrap_pyfunction!(ops::fused, module)?)?;
    module.add_function(wrap_pyfunction!(ops::reduce, module)?)?;
    module.add_function(wrap_pyfunction!(products::get_product, module)?)?;
    module.add_function(wrap_pyfunction!(products::find_product, module)?)?;
    module.add_function(wrap_pyfunction!(products::keep_product, module)?)?;
    module.add_function(wrap_pyfunction!(products::forget_product, module)?)?;
    module.add_function(wrap_pyfunction!(many::compile_many, module)?)?;
    module.add_function(wrap_pyfunction!(many::serve_compilations, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
