//! A step's program, with what was looked at to find it.

use std::path::PathBuf;

use crate::traced_inputs::TracedInputs;

/// A program that was found, with what its key needs.
pub struct Located {
    /// The program's file.
    pub path: PathBuf,
    /// The name that the search looked for.
    pub name: String,
    /// Its `argv[0]`.
    pub called: String,
    /// What the compiler looked at that was asked for the program; else nothing.
    pub seen: TracedInputs,
    /// What that compiler said to the user.
    pub messages: Vec<u8>,
}
