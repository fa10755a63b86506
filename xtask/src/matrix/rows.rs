//! Stores the results of rows, one line of JSON each. A line is written when its row ends, so that a run continues where an
//! earlier one ended. The file is committed, so that a row of another machine stays in the table.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::repo;

/// A toolkit with a host compiler.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MatrixRow {
    pub toolkit: String,
    /// nvcc's release.
    pub release: String,
    pub host: String,
    /// The host compiler's own version line.
    pub host_version: String,
    pub date: String,
    pub commit: String,
    /// The digest of the program and the cases.
    pub tried: String,
    /// nvcc refuses this compiler, so nothing was tried.
    pub refused: bool,
    pub cases: usize,
    /// Calls that were compared.
    pub calls: u64,
    /// Of those, calls with the same result as nvcc's.
    pub identical: u64,
    /// Of those, calls in which nvcc fails.
    pub failing: u64,
    /// Of those, direct hits.
    pub hits: u64,
    /// Bypassed calls, by reason.
    pub bypassed: BTreeMap<String, u64>,
    pub differences: Vec<Difference>,
    pub seconds: u64,
}

/// A call whose result was not nvcc's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Difference {
    pub case: String,
    pub call: String,
    pub what: Vec<String>,
}

impl MatrixRow {
    /// Prints the row for the user.
    pub fn print(&self) {
        if self.refused {
            println!("  nvcc does not take this compiler");
        }
        println!(
            "  {} calls, {} identical, {} hits, {} failing, in {} s",
            self.calls, self.identical, self.hits, self.failing, self.seconds
        );
        for (reason, count) in &self.bypassed {
            println!("  {count} bypassed: {reason}");
        }
    }
}

fn path() -> PathBuf {
    repo::root().join("xtask/matrix/rows.jsonl")
}

/// The newest result of each row.
pub fn load() -> Result<Vec<MatrixRow>> {
    let text = fs::read_to_string(path()).unwrap_or_default();
    let mut newest = BTreeMap::new();
    for line in text.lines() {
        // A line that was cut short is skipped: its row is tried again.
        if let Ok(row) = serde_json::from_str::<MatrixRow>(line) {
            newest.insert((row.toolkit.clone(), row.host.clone()), row);
        }
    }
    Ok(newest.into_values().collect())
}

/// The newest result of one row, if it was tried with the program and cases of the digest `tried`.
pub fn find(toolkit: &str, host: &str, tried: &str) -> Result<Option<MatrixRow>> {
    let is_it = |row: &MatrixRow| row.toolkit == toolkit && row.host == host && row.tried == tried;
    Ok(load()?.into_iter().find(is_it))
}

/// Appends a result.
pub fn add(row: &MatrixRow) -> Result<()> {
    let path = path();
    fs::create_dir_all(path.parent().context("a folder")?)?;
    let mut file = fs::File::options()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| path.display().to_string())?;
    let line = serde_json::to_string(row)? + "\n";
    file.write_all(line.as_bytes())
        .with_context(|| path.display().to_string())
}
