//! `warpcc doctor`: checks everything a build depends on, and says what is wrong and what to do about it.

use std::path::PathBuf;

use clap::Args;
use warpcc_report::doctor::{Finding, Severity, worst, write_json, write_text};

use super::output;
use crate::config::{Config, ConfigError};
use crate::process_context::ProcessContext;

mod callers;
mod finding;
mod folder;
mod machine;
mod past;
mod project;
mod remotes;
mod settings;
mod toolkit;
mod tools;
mod variables;
mod watching;
mod wrapper_names;
mod wrappers;

use finding::error_of;
pub use toolkit::TESTED;

const DOCTOR_NOTE: &str = "\
Exit code: 0 when there is nothing worse than a note, 1 with a warning, 2 with an error.

It checks the nvcc that is found, the host compiler and wrappers around it, the settings, the
cache's folder, the shared caches, the budget and the last build. It cannot see a launcher that CMake puts before nvcc.

With --project it checks nothing: it says which programs that call nvcc the project uses, and what to set for each.";

/// `warpcc doctor`.
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_NOTE)]
pub struct DoctorArgs {
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    /// Say what to set for the project in this folder, instead of checking the setup
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
}

/// Looks at everything, writes what it finds; gives the exit code.
///
/// # Errors
/// Standard output cannot be written, or the project's folder cannot be read.
pub fn run(
    args: &DoctorArgs,
    config: Result<Config, ConfigError>,
    context: &ProcessContext,
) -> anyhow::Result<i32> {
    if let Some(folder) = &args.project {
        let advice = project::examine(&context.directory.join(folder))?;
        output::print(|out| match args.json {
            true => {
                serde_json::to_writer_pretty(&mut *out, &advice)?;
                writeln!(out)
            }
            false => project::write(&advice, out),
        })?;
        return Ok(0);
    }
    let findings = match config {
        Ok(config) => examine(&config, context),
        Err(error) => vec![error_of(
            format!("the settings cannot be read: {error}"),
            "every call is bypassed",
            "correct it there; `warpcc config` shows all settings",
        )],
    };
    output::print(|out| match args.json {
        true => write_json(&findings, out),
        false => write_text(&findings, out),
    })?;
    Ok(match worst(&findings) {
        Some(Severity::Error) => 2,
        Some(Severity::Warning) => 1,
        Some(Severity::Note | Severity::Fine) | None => 0,
    })
}

fn examine(config: &Config, context: &ProcessContext) -> Vec<Finding> {
    let mut findings = Vec::new();
    toolkit::check(config, context, &mut findings);
    wrappers::check(context, &mut findings);
    settings::check(config, context, &mut findings);
    let usable = folder::check(config, &mut findings);
    watching::check(config, context, &mut findings);
    machine::check(config, context, &mut findings);
    remotes::check(config, context, &mut findings);
    if usable == folder::Usable::Yes {
        past::check(config, &mut findings);
    }
    findings
}

#[cfg(test)]
mod tests;
