//! Prints the result of `warpcc jit cache`: where the cache is, how full, and its problems.

use std::io::{self, Write};

use serde::Serialize;
use warpcc_jit::{Cleared, Contents, Folder, MaxSize, Remark};

use super::parts::write_remarks;
use crate::commands::plain_text::{count, plain};
use crate::config::format_bytes;

/// The driver's cache, as a process with this environment uses it.
#[derive(Debug, Serialize)]
pub struct CacheView {
    /// The folder; `None` where the driver has no place for one.
    pub folder: Option<Folder>,
    /// Whether `CUDA_CACHE_PATH` names the folder.
    pub given: bool,
    /// Whether the cache is switched off.
    pub disabled: bool,
    /// The size limit.
    pub max_size: MaxSize,
    /// The contents.
    pub held: Contents,
    /// Problems with the cache.
    pub remarks: Vec<Remark>,
}

/// Writes where the cache is, and its problems.
pub fn write(view: &CacheView, out: &mut dyn Write) -> io::Result<()> {
    match &view.folder {
        None => writeln!(out, "A driver has no folder here to store results in.")?,
        Some(folder) => {
            let from = match view.given {
                true => "CUDA_CACHE_PATH",
                false => "the default, in HOME",
            };
            let there = if folder.exists {
                ""
            } else {
                ", which does not exist yet"
            };
            writeln!(
                out,
                "{} ({from}{there})",
                plain(&folder.path.display().to_string())
            )?;
            let limit = view.max_size.bytes;
            let said = match view.max_size.given {
                true => "CUDA_CACHE_MAXSIZE",
                false => "the default of current drivers",
            };
            let percent = u128::from(view.held.bytes) * 100 / u128::from(limit.max(1));
            let files = view.held.files;
            writeln!(
                out,
                "  {} of {} ({percent}%, {said}) in {}",
                format_bytes(view.held.bytes),
                format_bytes(limit),
                count(usize::try_from(files).unwrap_or(usize::MAX), "file"),
            )?;
            writeln!(
                out,
                "  on {}, {} free",
                folder.file_system.name(),
                format_bytes(folder.free)
            )?;
        }
    }
    write_remarks(&view.remarks, out)
}

/// Writes what was removed.
pub fn write_cleared(cleared: &Cleared, out: &mut dyn Write) -> io::Result<()> {
    let folder = plain(&cleared.folder.display().to_string());
    if cleared.removed.is_empty() && cleared.failed.is_empty() {
        return writeln!(out, "{folder}: nothing to remove");
    }
    let files = usize::try_from(cleared.before.files).unwrap_or(usize::MAX);
    writeln!(
        out,
        "{folder}: removed {}, {} in {}",
        cleared.removed.join(" "),
        format_bytes(cleared.before.bytes),
        count(files, "file"),
    )?;
    for name in &cleared.left {
        writeln!(out, "  left {}, which is not a driver's", plain(name))?;
    }
    for failed in &cleared.failed {
        writeln!(out, "  could not remove {}", plain(failed))?;
    }
    Ok(())
}
