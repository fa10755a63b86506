//! What every form of `dist/` is made of.

use std::path::Path;

use anyhow::Result;

use super::{extras, metadata, program};

/// What every form is made of.
pub struct Contents {
    /// The program.
    pub program: program::Program,
    /// Files next to the program, by their places below a prefix such as `/usr`.
    pub extras: Vec<extras::Extra>,
    /// The processor it is for.
    pub arch: program::Arch,
    /// Of the package.
    pub version: String,
    /// The time of the commit, for every file: the same sources give the same archive.
    pub time: u64,
}

impl Contents {
    /// With the program that somebody built, or one that is built now.
    ///
    /// # Errors
    /// It cannot be built, or is not as it has to be.
    pub fn new(built: Option<&Path>, arch: program::Arch) -> Result<Self> {
        let version = metadata::version()?;
        let program = match built {
            Some(built) => program::split(built, arch)?,
            None => program::build(arch)?,
        };
        Ok(Self {
            extras: extras::all(&program, arch)?,
            program,
            arch,
            version,
            time: metadata::time_of_commit()?,
        })
    }
}
