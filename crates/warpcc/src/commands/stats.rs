//! `warpcc stats`: how often the cache was hit, and why calls were bypassed.

mod figures;
mod github;
mod json;
mod print;
mod projects;

use clap::Args;
use warpcc_rtc::Usage;

use super::config::warn_of_unknown_variables;
use super::output;
use crate::call_record::records;
use crate::config::Config;
use crate::store::need_store;
use figures::Stats;
use projects::{projects, saved, spent};

/// `warpcc stats`.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    /// Add a summary to the page of a GitHub Actions job ($GITHUB_STEP_SUMMARY), or print it elsewhere
    #[arg(long, conflicts_with = "json")]
    pub github_summary: bool,
    /// Reset all counters after showing them
    #[arg(long)]
    pub zero: bool,
}

/// Prints the counters, and resets them if the user asks for that. The exit code is 0.
///
/// # Errors
/// No cache, or counters that cannot be read or written.
pub fn run(args: &StatsArgs, config: &Config) -> anyhow::Result<i32> {
    let store = need_store(config)?;
    let (cache_bytes, cache_entries) = store.estimate()?;
    let counters = store.read_counters()?;
    let kernels = super::remote::kernels();
    let stats = Stats {
        saved: saved(&counters),
        spent: spent(&counters),
        projects: projects(&records(&store)),
        counters,
        cache_bytes,
        cache_entries,
        other_versions: store.other_versions()?,
        kernels: kernels.as_ref().map(Usage::of).unwrap_or_default(),
    };
    match args.github_summary {
        true => github::write(&stats)?,
        false => output::print(|out| match args.json {
            true => json::write_json(&stats, out),
            false => print::write_text(&stats, out),
        })?,
    }
    warn_of_unknown_variables();
    if args.zero {
        store.zero_counters()?;
        if let Some(kernels) = kernels {
            kernels.zero_counters()?;
        }
    }
    Ok(0)
}
