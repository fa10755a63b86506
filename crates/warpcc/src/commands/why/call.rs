//! Shows what happened to the last call that compiled a file, and what the same call would do now.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use warpcc_report::Build;
use warpcc_report::monitor::harmless;
use warpcc_report::record::{CallOutcome, InvocationRecord};

use super::print::{self, Why, one_line};
use super::{command, last_build};
use crate::call_record::records;
use crate::commands::output;
use crate::config::Config;
use crate::process_context::ProcessContext;
use crate::seconds::{format_ago, format_seconds};
use crate::store::need_store;

/// How well a call fits the file that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// A file whose path ends with the given one.
    Ending,
    /// The same file.
    Exact,
}

/// Prints the answer. The exit code is 1 if the cache remembers no such call.
pub(super) fn run(file: &Path, config: &Config, context: &ProcessContext) -> anyhow::Result<i32> {
    let history = records(&need_store(config)?);
    let wanted = plain(&context.directory.join(file));
    let mut last: Option<(Fit, InvocationRecord)> = None;
    history.visit(|call| {
        let Some(fit) = fit(&call, &wanted, file) else {
            return;
        };
        let before = last
            .as_ref()
            .map(|(fit, call)| (*fit, call.started_unix_ns));
        if before.is_none_or(|before| before <= (fit, call.started_unix_ns)) {
            last = Some((fit, call));
        }
    })?;
    let Some((_, call)) = last else {
        crate::log::warn(&format!(
            "no recorded call compiled {}; for a command: warpcc why -- nvcc ARGS",
            file.display()
        ));
        return Ok(1);
    };
    let now = match words(&call) {
        Some((nvcc, args)) => {
            let directory = PathBuf::from(&call.directory);
            command::why(nvcc, &args, &directory, config, context).ok()
        }
        None => None,
    };
    output::print(|out| write(call, now.as_ref(), out))?;
    Ok(0)
}

fn fit(call: &InvocationRecord, wanted: &Path, asked: &Path) -> Option<Fit> {
    // A bypassed call leaves no list of sources; its command line has them.
    let named = match call.sources.is_empty() {
        true => call.args.get(1..).unwrap_or_default(),
        false => &call.sources,
    };
    let of_one = |name: &String| {
        let path = plain(&Path::new(&call.directory).join(name));
        if path == wanted {
            return Some(Fit::Exact);
        }
        path.ends_with(asked).then_some(Fit::Ending)
    };
    named.iter().filter_map(of_one).max()
}

/// A path without `.` and `..`, resolved by names alone.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// The command line, where the record has all of it.
fn words(call: &InvocationRecord) -> Option<(PathBuf, Vec<OsString>)> {
    let (nvcc, args) = call.args.split_first()?;
    // Records replace text that is not UTF-8, and cut very long words.
    let is_whole = |word: &String| !word.contains('\u{fffd}') && !word.contains('…');
    let whole = call.args.iter().all(is_whole);
    whole.then(|| (nvcc.into(), args.iter().map(OsString::from).collect()))
}

fn write(call: InvocationRecord, now: Option<&Why>, out: &mut dyn Write) -> io::Result<()> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since
        .unwrap_or_default()
        .saturating_sub(std::time::Duration::from_nanos(call.started_unix_ns));
    let line = one_line(&harmless(&call.args.join(" ")));
    let directory = one_line(&harmless(&call.directory));
    writeln!(out, "{line}\n  in {directory}, {}", format_ago(since))?;
    let took = format_seconds(call.wall);
    match &call.outcome {
        CallOutcome::DirectHit => writeln!(out, "\nIt was answered from the cache in {took}.")?,
        CallOutcome::Passed => writeln!(out, "\nnvcc ran: there was nothing to store.")?,
        _ => {
            let build = Build::new(vec![call]);
            for (reason, what_to_do) in build.calls.iter().filter_map(last_build::reason) {
                writeln!(out, "\nIt missed ({took}): {reason}")?;
                if !what_to_do.is_empty() {
                    writeln!(out, "What to do: {what_to_do}")?;
                }
            }
        }
    }
    if let Some(why) = now {
        writeln!(
            out,
            "\nThe same command now, with this shell's environment:"
        )?;
        print::write(why, out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_by_its_path_or_the_end_of_it() {
        let call = |directory: &str, sources: &[&str], args: &[&str]| InvocationRecord {
            directory: directory.to_owned(),
            sources: sources.iter().map(|s| (*s).to_owned()).collect(),
            args: args.iter().map(|s| (*s).to_owned()).collect(),
            ..InvocationRecord::default()
        };
        let wanted = Path::new("/p/src/x.cu");
        let asked = Path::new("x.cu");
        let fits = |call: &InvocationRecord| fit(call, wanted, asked);
        assert_eq!(
            fits(&call("/p/build", &["../src/x.cu"], &[])),
            Some(Fit::Exact)
        );
        assert_eq!(fits(&call("/q", &["./x.cu"], &[])), Some(Fit::Ending));
        assert_eq!(fits(&call("/q", &["xx.cu"], &["nvcc", "x.cu"])), None);
        assert_eq!(
            fits(&call("/p", &[], &["nvcc", "src/x.cu"])),
            Some(Fit::Exact)
        );
    }
}
