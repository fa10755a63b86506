//! `warpcc doctor`: looks at everything a build rests on, and says what is wrong and what to do about it.

use std::ffi::OsStr;
use std::path::Path;

use warpcc_report::doctor::{Finding, Severity, worst, write_json, write_text};

use super::DoctorArgs;
use crate::config::{Config, ConfigError};
use crate::launch::ProcessContext;
use crate::report;

mod folder;
mod machine;
mod past;
mod settings;
mod toolkit;
mod tools;
mod watching;
mod wrappers;

/// Looks at everything, writes what it finds; gives the exit code.
///
/// # Errors
/// Standard output cannot be written.
pub fn doctor(
    args: &DoctorArgs,
    config: Result<Config, ConfigError>,
    around: &ProcessContext,
) -> anyhow::Result<i32> {
    let findings = match config {
        Ok(config) => examine(&config, around),
        Err(error) => vec![error_of(
            format!("the settings cannot be read: {error}"),
            "every call is bypassed",
            "correct it there; `warpcc config` shows all settings",
        )],
    };
    report::print(|out| match args.json {
        true => write_json(&findings, out),
        false => write_text(&findings, out),
    })?;
    Ok(match worst(&findings) {
        Some(Severity::Error) => 2,
        Some(Severity::Warning) => 1,
        Some(Severity::Note | Severity::Fine) | None => 0,
    })
}

fn examine(config: &Config, around: &ProcessContext) -> Vec<Finding> {
    let mut findings = Vec::new();
    toolkit::look(config, around, &mut findings);
    wrappers::look(around, &mut findings);
    settings::look(config, around, &mut findings);
    let usable = folder::look(config, &mut findings);
    watching::look(config, around, &mut findings);
    machine::look(config, around, &mut findings);
    if usable == folder::Usable::Yes {
        past::look(config, &mut findings);
    }
    findings
}

/// A variable of the build's environment; one that is empty says nothing.
fn variable<'a>(around: &'a ProcessContext, name: &str) -> Option<&'a OsStr> {
    let found = around.environment.iter().find(|(n, _)| n == name);
    found
        .map(|(_, value)| value.as_os_str())
        .filter(|value| !value.is_empty())
}

/// Programs that stand between a build and its compiler.
const WRAPPERS: [&str; 8] = [
    "ccache",
    "sccache",
    "distcc",
    "icecc",
    "buildcache",
    "cachepot",
    "fastbuild",
    "reclient",
];

/// The wrapper that a file really is, through any number of links.
fn wrapper(file: &Path) -> Option<&'static str> {
    let real = file.canonicalize().ok()?;
    let name = real.file_name()?.to_str()?;
    WRAPPERS.into_iter().find(|known| *known == name)
}

/// Whether a file is a script, which may do anything before the compiler.
fn is_script(file: &Path) -> bool {
    use std::io::Read;
    let mut start = [0; 2];
    let read = std::fs::File::open(file).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && &start == b"#!"
}

fn finding(severity: Severity, what: impl Into<String>, why: &str, fix: &str) -> Finding {
    Finding {
        severity,
        what: what.into(),
        why: why.to_owned(),
        fix: fix.to_owned(),
    }
}

fn fine(what: impl Into<String>) -> Finding {
    finding(Severity::Fine, what, "", "")
}

fn note(what: impl Into<String>, why: &str, fix: &str) -> Finding {
    finding(Severity::Note, what, why, fix)
}

fn warning(what: impl Into<String>, why: &str, fix: &str) -> Finding {
    finding(Severity::Warning, what, why, fix)
}

fn error_of(what: impl Into<String>, why: &str, fix: &str) -> Finding {
    finding(Severity::Error, what, why, fix)
}

#[cfg(test)]
mod tests;
