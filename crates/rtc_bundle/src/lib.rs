//! Bundles: headers and LTO-IR of a library as one compressed block of bytes, which is embedded into a program.
//!
//! [`BundleMaker`] makes one while the program is built. [`Bundle`] reads it at run time: its list at once, its contents when
//! a kernel has to be compiled. Nothing here touches a file, a process or the environment.

mod bundle;
mod include_lines;
mod maker;

pub use bundle::{Bundle, BundleError, Content, ItemKind};
pub use maker::BundleMaker;

#[cfg(test)]
mod tests;
