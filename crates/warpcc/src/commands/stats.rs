//! `warpcc stats`: how often the cache was hit, and why calls were bypassed.

mod print;
mod projects;

use clap::Args;

use super::config::warn_of_unknown_variables;
use super::output;
use crate::call_record::records;
use crate::config::Config;
use crate::store::need_store;
use print::Stats;
use projects::{projects, saved};

/// `warpcc stats`.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    /// Reset all counters after showing them
    #[arg(long)]
    pub zero: bool,
}

/// Writes the counters, and sets them to zero where that is asked for; the exit code is 0.
///
/// # Errors
/// No cache, or counters that cannot be written.
pub fn run(args: &StatsArgs, config: &Config) -> anyhow::Result<i32> {
    let store = need_store(config)?;
    let (cache_bytes, cache_entries) = store.size()?;
    let counters = store.counters();
    let stats = Stats {
        saved: saved(&counters),
        projects: projects(&records(&store)),
        counters,
        cache_bytes,
        cache_entries,
    };
    output::print(|out| match args.json {
        true => print::write_json(&stats, out),
        false => print::write_text(&stats, out),
    })?;
    warn_of_unknown_variables();
    if args.zero {
        store.zero_counters()?;
    }
    Ok(0)
}
