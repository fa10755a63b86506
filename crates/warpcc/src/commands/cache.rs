//! `warpcc cache`: the cache's folder, its size, and what is removed from it.

mod print;

use std::time::{Duration, SystemTime};

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
        /// Remove the entries that were not used for this long, such as 30d or 12h, and nothing else
        #[arg(long, value_name = "TIME", value_parser = read_age, conflicts_with = "other_versions")]
        older_than: Option<Duration>,
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
        CacheCommand::Gc {
            other_versions,
            older_than,
        } => {
            let collected = match (other_versions, older_than) {
                (true, _) => store.remove_other_versions()?,
                (false, Some(age)) => {
                    let since = SystemTime::now().checked_sub(*age);
                    store.gc_unused_since(since.unwrap_or(SystemTime::UNIX_EPOCH))?
                }
                (false, None) => store.gc(store.gc_target())?,
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

/// Reads a number of days or hours. Nothing shorter: when an entry was used is known to the hour.
fn read_age(text: &str) -> Result<Duration, &'static str> {
    const WRONG: &str = "write a number of days or hours, such as 30d or 12h";
    let hours = match text.strip_suffix('d') {
        Some(_) => 24,
        None => 1,
    };
    let number = text.strip_suffix(['d', 'h']).ok_or(WRONG)?;
    let number: u64 = number.parse().map_err(|_| WRONG)?;
    let seconds = number.checked_mul(hours * 3600).ok_or(WRONG)?;
    Ok(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_days_or_hours() {
        assert_eq!(read_age("2d"), Ok(Duration::from_secs(172_800)));
        assert_eq!(read_age("12h"), Ok(Duration::from_secs(43_200)));
        for wrong in ["", "d", "2", "2w", "-1d", "1.5d", "18446744073709551615d"] {
            assert!(read_age(wrong).is_err(), "{wrong}");
        }
    }
}
