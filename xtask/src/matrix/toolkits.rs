//! The toolkits that are tried: where each comes from, and the records of their dry runs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result};

use super::debian;
use crate::{process, repo, toolkit};

/// One toolkit.
pub struct Toolkit {
    /// The name for `--toolkit` and in the table.
    pub version: &'static str,
    /// The host compiler that all cases are tried with.
    pub main_host: &'static str,
    /// The release of Debian that packages it; the others are on PyPI.
    debian: Option<&'static str>,
}

/// All toolkits with an nvcc in the registries that are reachable here.
pub const ALL: [Toolkit; 8] = [
    Toolkit {
        version: "11.8",
        // This toolkit refuses the next compiler.
        main_host: "g++-11",
        debian: Some("bookworm"),
    },
    Toolkit {
        version: "12.4",
        main_host: "g++-12",
        debian: Some("trixie"),
    },
    of_pypi(toolkit::OLDEST),
    of_pypi("13.1"),
    of_pypi("13.2"),
    of_pypi("13.3"),
    of_pypi("13.4"),
    of_pypi(toolkit::NEWEST),
];

const fn of_pypi(version: &'static str) -> Toolkit {
    Toolkit {
        version,
        main_host: "g++-12",
        debian: None,
    }
}

impl Toolkit {
    /// The toolkit's folder, the one above `bin`.
    pub fn install(&self) -> Result<PathBuf> {
        if let Some(suite) = self.debian {
            return debian::install(self.version, suite);
        }
        let nvcc = toolkit::install(self.version)?.canonicalize()?;
        let top = nvcc.ancestors().nth(2).context("no folder around nvcc")?;
        Ok(top.to_owned())
    }
}

/// One of the installed toolkits, another one each day.
pub fn of_today() -> Result<&'static Toolkit> {
    let is_here = |toolkit: &&Toolkit| repo::toolkits_dir().join(toolkit.version).exists();
    let here: Vec<&Toolkit> = ALL.iter().filter(is_here).collect();
    let days = SystemTime::UNIX_EPOCH.elapsed()?.as_secs() / (24 * 60 * 60);
    let index = usize::try_from(days)?.checked_rem(here.len());
    let toolkit = index.and_then(|index| here.get(index));
    toolkit
        .copied()
        .context("no toolkit is here: cargo xtask toolkit")
}

/// Writes the plans of its nvcc into the golden files of `plan`.
pub fn record(version: &str, top: &Path) -> Result<()> {
    let script = repo::root().join("crates/plan/tests/record.sh");
    process::run(Command::new(script).arg(top.join("bin/nvcc")).arg(version))
}
