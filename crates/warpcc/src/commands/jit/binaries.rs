//! Opens the binaries that are named or found, and reads their images.

use std::path::PathBuf;

use rayon::prelude::*;
use warpcc_fatbin::{Binary, FatbinError, FoundImages, ReadLimits, find};

use crate::commands::binary_errors;

/// Opens and maps the named or found files, in order; also returns the errors of files that could not be opened.
pub fn open_all(paths: &[PathBuf]) -> (Vec<Binary>, Vec<FatbinError>) {
    let limits = ReadLimits::default();
    let (inputs, mut errors) = find(paths);
    let mut binaries = Vec::new();
    for input in inputs {
        match Binary::open(input, &limits) {
            Ok(binary) => binaries.push(binary),
            Err(error) => errors.push(error),
        }
    }
    (binaries, errors)
}

/// The images in each file.
pub fn contents(binaries: &[Binary]) -> Vec<FoundImages<'_>> {
    let limits = ReadLimits::default();
    binaries.par_iter().map(|b| b.contents(&limits)).collect()
}

/// Reports the files and parts that could not be opened or read. Returns true if there were any.
pub fn report(errors: &[FatbinError], files: &[(&Binary, Vec<warpcc_fatbin::Problem>)]) -> bool {
    let problems = files
        .iter()
        .flat_map(|(binary, problems)| problems.iter().map(|p| (&binary.input, p)));
    binary_errors::report(errors, problems)
}
