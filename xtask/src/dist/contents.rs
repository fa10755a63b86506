//! The contents that all packages of `dist/` share.

use std::path::Path;

use anyhow::{Context, Result};

use super::{extras, metadata, program};

/// The contents of every package.
pub struct Contents {
    /// The programs, warpcc first.
    pub programs: Vec<program::DistProgram>,
    /// Files next to the program, by their places below a prefix such as `/usr`.
    pub extras: Vec<extras::Extra>,
    /// The processor it is for.
    pub arch: program::Arch,
    /// The version of the package.
    pub version: String,
    /// The time of the commit, for every file: the same sources give the same archive.
    pub time: u64,
}

impl Contents {
    /// Collects the contents: with a program that is already built and the one next to it, or with programs that it builds now.
    ///
    /// # Errors
    /// A program cannot be built, or fails a check.
    pub fn new(built: Option<&Path>, arch: program::Arch) -> Result<Self> {
        let version = metadata::version()?;
        let programs = match built {
            Some(built) => program::split_all(built, arch)?,
            None => program::build(arch)?,
        };
        let warpcc = programs.first().context("there is no program")?;
        Ok(Self {
            extras: extras::all(warpcc, arch)?,
            programs,
            arch,
            version,
            time: metadata::time_of_commit()?,
        })
    }
}
