//! Prints the result of `warpcc jit warm`: what was compiled, how much faster it loads now, whether it is stored.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;
use warpcc_jit::Contents;

use super::parts::seconds;
use crate::commands::plain_text::{count, plain};
use crate::config::format_bytes;

/// The result of `warpcc jit warm`.
#[derive(Debug, Serialize)]
pub struct Warmed {
    /// `sm_90`.
    pub gpu: String,
    /// The GPU's name.
    pub name: String,
    /// The driver's CUDA version.
    pub driver: String,
    /// The driver's cache.
    pub folder: PathBuf,
    /// The cache's contents before.
    pub before: Contents,
    /// The cache's contents now.
    pub after: Contents,
    /// The modules that were loaded.
    pub modules: Vec<Module>,
    /// Containers that run as they are.
    pub run: usize,
    /// Containers that are linked when the program starts, which only the program can do.
    pub jit_link: usize,
    /// Containers that cannot be loaded.
    pub fail: usize,
    /// Relocatable containers.
    pub not_linked: usize,
    /// Whether loading with compiling switched off was tried.
    pub proven: bool,
}

/// One container.
#[derive(Debug, Serialize)]
pub struct Module {
    /// The file, and the member of a wheel.
    pub file: String,
    /// The container's number in the file, from 0.
    pub container: String,
    /// The first load, in seconds.
    pub first_seconds: Option<f64>,
    /// The second load, in another process, in seconds.
    pub second_seconds: Option<f64>,
    /// Whether the module loads with compiling switched off; `None` where that was not tried.
    pub stored: Option<bool>,
    /// The same under its old name, for one release.
    pub kept: Option<bool>,
    /// The failure, if there was one.
    pub trouble: Option<String>,
}

impl Module {
    /// Whether the module loaded, and is in the driver's cache, if that was tried.
    pub fn is_stored(&self) -> bool {
        self.trouble.is_none() && self.stored != Some(false)
    }
}

/// Writes the result.
pub fn write(warmed: &Warmed, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{} ({}), driver of CUDA {}",
        plain(&warmed.name),
        warmed.gpu,
        warmed.driver
    )?;
    let loaded = warmed.modules.len();
    if loaded == 0 {
        writeln!(
            out,
            "nothing to compile: {} as they are",
            count(warmed.run, "container")
        )?;
    } else {
        write_loaded(warmed, out)?;
    }
    for (number, what) in [
        (
            warmed.jit_link,
            "linked when the program starts: start the program once",
        ),
        (
            warmed.not_linked,
            "relocatable: warm what they are linked into",
        ),
        (warmed.fail, "not for this GPU: see `warpcc fatbin check`"),
    ] {
        if number > 0 {
            writeln!(out, "  {} {what}", count(number, "container"))?;
        }
    }
    Ok(())
}

fn write_loaded(warmed: &Warmed, out: &mut dyn Write) -> io::Result<()> {
    let sum = |of: fn(&Module) -> Option<f64>| warmed.modules.iter().filter_map(of).sum::<f64>();
    let (first, second) = (sum(|m| m.first_seconds), sum(|m| m.second_seconds));
    writeln!(
        out,
        "  {} loaded: first in {}, then in {}; {} as they are",
        count(warmed.modules.len(), "container"),
        seconds(first),
        seconds(second),
        count(warmed.run, "container"),
    )?;
    writeln!(
        out,
        "  {}: {} before, {} now",
        plain(&warmed.folder.display().to_string()),
        format_bytes(warmed.before.bytes),
        format_bytes(warmed.after.bytes),
    )?;
    let stored = warmed
        .modules
        .iter()
        .filter(|m| m.stored == Some(true))
        .count();
    match warmed.proven {
        true => writeln!(
            out,
            "  {stored} of {} load with compiling switched off: they are stored",
            warmed.modules.len()
        )?,
        false => writeln!(
            out,
            "  JIT is forced, so it was not tested whether they are stored; compare the two times"
        )?,
    }
    for module in warmed.modules.iter().filter(|m| !m.is_stored()) {
        let why = module.trouble.as_deref().unwrap_or(
            "compiled, but not stored: is CUDA_CACHE_MAXSIZE too small? see `warpcc jit cache`",
        );
        writeln!(
            out,
            "  NOT STORED {} container {}: {}",
            plain(&module.file),
            module.container,
            plain(why)
        )?;
    }
    Ok(())
}
