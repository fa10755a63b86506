//! `warpcc config`: every setting, and where it was set; and settings that are to be set.

mod print;

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use anyhow::Context;
use clap::Args;

use super::output;
use crate::config::{Config, edit, environment, unknown_variables};

/// `warpcc config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    /// Set this in the settings file, and leave the rest of it as it is; without a value, remove it
    #[arg(long, value_name = "KEY=VALUE", value_parser = read_assignment, conflicts_with = "json")]
    pub set: Vec<(String, String)>,
}

fn read_assignment(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
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

/// Writes settings into the settings file; the exit code is 0.
///
/// # Errors
/// A name or value is wrong, or the file is, or it cannot be written.
pub fn set(
    assignments: &[(String, String)],
    env: impl Fn(&str) -> Option<OsString>,
) -> anyhow::Result<i32> {
    let edited = edit(env, assignments)?;
    let path = &edited.path;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    // It may get a token.
    let permissions = path.metadata().map(|found| found.permissions());
    let permissions = permissions.unwrap_or_else(|_| Permissions::from_mode(0o600));
    output::replace_file(path, edited.text.as_bytes(), permissions)?;
    output::print(|out| print::write_changes(&edited, out))?;
    Ok(0)
}

/// Says of each variable that is named like ours that nothing reads it.
pub fn warn_of_unknown_variables() {
    for unknown in unknown_variables(&environment()) {
        crate::log::warn(&unknown.to_string());
    }
}
