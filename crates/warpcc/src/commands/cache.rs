//! `warpcc cache`: the cache's folder, its size, and what is removed from it.

mod print;

use clap::Subcommand;

use super::output;
use crate::config::Config;
use crate::store::need_store;

/// `warpcc cache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum CacheCommand {
    /// Print its path
    Dir,
    /// Print its size and number of entries
    Size,
    /// Remove everything in it
    Clear,
    /// Remove the entries that were not used for the longest time, until the cache fits its limit
    Gc {
        /// Remove what other versions of warpcc left and this one does not read, and nothing else
        #[arg(long)]
        other_versions: bool,
    },
    /// Check every entry against its checksum, and remove damaged ones
    Verify,
}

/// Runs the command; the exit code is 1 where an entry was damaged.
///
/// # Errors
/// No cache, or one that cannot be read or changed.
pub fn run(command: &CacheCommand, config: &Config) -> anyhow::Result<i32> {
    if let CacheCommand::Dir = command {
        output::print(|out| writeln!(out, "{}", config.dir.value.display()))?;
        return Ok(0);
    }
    let store = need_store(config)?;
    match command {
        CacheCommand::Dir => {}
        CacheCommand::Size => {
            let (bytes, entries) = store.size()?;
            output::print(|out| print::write_size(bytes, entries, config.max_size.value, out))?;
        }
        CacheCommand::Clear => {
            let (bytes, entries) = store.size()?;
            store.clear()?;
            output::print(|out| print::write_removed(bytes, entries, out))?;
        }
        CacheCommand::Gc { other_versions } => {
            let collected = match other_versions {
                true => store.remove_other_versions()?,
                false => store.gc(store.gc_target())?,
            };
            output::print(|out| print::write_removed(collected.freed, collected.removed, out))?;
        }
        CacheCommand::Verify => {
            let found = store.verify()?;
            let bad: Vec<String> = found.bad.iter().map(|p| p.display().to_string()).collect();
            output::print(|out| print::write_verified(found.checked, &bad, out))?;
            return Ok(i32::from(!bad.is_empty()));
        }
    }
    Ok(0)
}
