//! `warpcc config`: every setting, and where it was set.

mod print;

use clap::Args;

use super::output;
use crate::config::{Config, environment, unknown_variables};

/// `warpcc config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// Writes the settings; the exit code is 0.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: &ConfigArgs, config: &Config) -> anyhow::Result<i32> {
    let rows = config.rows();
    output::print(|out| match args.json {
        true => print::write_json(&rows, out),
        false => print::write_text(&rows, config.file.as_deref(), out),
    })?;
    warn_of_unknown_variables();
    Ok(0)
}

/// Says of each variable that is named like ours that nothing reads it.
pub fn warn_of_unknown_variables() {
    for unknown in unknown_variables(&environment()) {
        crate::log::warn(&unknown.to_string());
    }
}
