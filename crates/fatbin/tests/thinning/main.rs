//! Sizes of device code, and files that were made smaller: what is left in them, that every reader agrees, and that they
//! load and run.
//!
//! Whether a GPU runs what is left is verified by `crates/fatbin/gpu`, on a machine that has one.

mod archives;
mod elf;
mod recompressed;
mod sizes;
#[path = "../space/mod.rs"]
mod space;
mod wheels;
