//! Why calls of the last build were not answered from the cache: by reason, the newest first, with what to do.

use std::io::{self, Write};

use warpcc_report::Build;
use warpcc_report::build::BuildCall;
use warpcc_report::build_id::origin;
use warpcc_report::monitor::harmless;
use warpcc_report::record::{CallOutcome, KeyPartChange};

use super::print::one_line;
use crate::call_record::records;
use crate::commands::advice::{advice, advice_not_stored, changed_condition, cure};
use crate::commands::output;
use crate::config::Config;
use crate::store::need_store;

/// The most files that are named for a reason.
const NAMED: usize = 3;

/// Calls that were not answered for one reason.
struct MissGroup {
    reason: String,
    what_to_do: String,
    /// Their files, the newest call first.
    files: Vec<String>,
}

/// Prints the reasons. The exit code is 1 if the cache remembers no build.
pub(super) fn run(config: &Config) -> anyhow::Result<i32> {
    let Some(found) = records(&need_store(config)?).last()? else {
        crate::log::warn("no build is recorded yet; compile something: warpcc nvcc -c x.cu");
        return Ok(1);
    };
    let build = Build::new(found.records);
    output::print(|out| write(&build, out))?;
    Ok(0)
}

fn write(build: &Build, out: &mut dyn Write) -> io::Result<()> {
    let counted = |call: &&BuildCall| call.record.outcome != CallOutcome::Passed;
    let calls = build.calls.iter().filter(counted).count();
    let groups = groups(build);
    let missed: usize = groups.iter().map(|group| group.files.len()).sum();
    write!(out, "{}", harmless(&build.id))?;
    if let Some(origin) = origin(&build.id, build.driver.as_deref()) {
        write!(out, ": {}", harmless(origin))?;
    }
    match (missed, calls) {
        (_, 0) => writeln!(out, "\nit has no call that could be cached")?,
        (0, 1) => writeln!(out, "\nits call was answered from the cache")?,
        (0, _) => writeln!(out, "\nall {calls} calls were answered from the cache")?,
        (_, 1) => writeln!(out, "\nits call was not answered from the cache")?,
        _ => writeln!(
            out,
            "\n{missed} of {calls} calls not answered from the cache"
        )?,
    }
    for group in &groups {
        writeln!(out, "\n{:>6}  {}", group.files.len(), group.reason)?;
        let mut names: Vec<&str> = Vec::new();
        for file in &group.files {
            if !names.contains(&file.as_str()) {
                names.push(file);
            }
        }
        let shown = names[..names.len().min(NAMED)].join(", ");
        match names.len().saturating_sub(NAMED) {
            0 => writeln!(out, "{:>6}  {shown}", "")?,
            more => writeln!(out, "{:>6}  {shown} and {more} more", "")?,
        }
        if !group.what_to_do.is_empty() {
            writeln!(out, "{:>6}  {}", "", group.what_to_do)?;
        }
    }
    if missed > 0 {
        writeln!(out, "\nOne file: warpcc why FILE.cu")?;
    }
    Ok(())
}

/// The reasons, the one of the newest call first.
fn groups(build: &Build) -> Vec<MissGroup> {
    let mut groups: Vec<MissGroup> = Vec::new();
    for call in build.calls.iter().rev() {
        let Some((reason, what_to_do)) = reason(call) else {
            continue;
        };
        let file = match call.file.as_str() {
            // A bypassed call leaves no source.
            "" => one_line(&harmless(&call.record.args.join(" "))),
            file => one_line(&harmless(file)),
        };
        match groups.iter_mut().find(|group| group.reason == reason) {
            Some(group) => group.files.push(file),
            None => groups.push(MissGroup {
                reason,
                what_to_do,
                files: vec![file],
            }),
        }
    }
    groups
}

/// Why a call was not answered, and what to do about it; nothing for a hit.
pub(super) fn reason(call: &BuildCall) -> Option<(String, String)> {
    let record = &call.record;
    let (reason, what_to_do) = match (&record.outcome, &record.not_kept, record.missed.first()) {
        (CallOutcome::DirectHit | CallOutcome::Passed, ..) => return None,
        (CallOutcome::Fallback { reason }, ..) => {
            (format!("bypassed: {reason}"), advice(reason).to_owned())
        }
        (CallOutcome::Failed { code }, ..) => (
            format!("failed with exit code {code}"),
            "a call that fails is never stored".to_owned(),
        ),
        (CallOutcome::Built, Some(reason), _) => {
            let known = advice_not_stored(reason).unwrap_or_default();
            (format!("built and not stored: {reason}"), known.to_owned())
        }
        (CallOutcome::Built, None, Some(change)) => {
            let what_to_do = cure(&change.kind, &change.name);
            (change_in_words(change), what_to_do.to_owned())
        }
        (CallOutcome::Built, None, None) => (
            "never compiled before, or evicted".to_owned(),
            "the next call hits; if it was there before, see `warpcc cache size`".to_owned(),
        ),
    };
    Some((one_line(&harmless(&reason)), what_to_do))
}

fn change_in_words(change: &KeyPartChange) -> String {
    if let Some(sentence) = changed_condition(&change.kind, &change.name) {
        return sentence;
    }
    let what = match change.name.as_str() {
        "" => change.kind.clone(),
        name => format!("{} {name}", change.kind),
    };
    let is_file = ["header", "source"].contains(&change.kind.as_str());
    match (&change.old, &change.new) {
        (Some(_), Some(_)) if is_file => format!("{what} changed"),
        (Some(_), None) if is_file => format!("{what} is gone"),
        (None, Some(_)) if is_file => format!("{what} is new"),
        (Some(old), Some(new)) => format!("{what} {new} was {old}"),
        (None, Some(new)) => format!("{what} {new} is new"),
        (Some(old), None) => format!("{what} {old} is gone"),
        (None, None) => format!("{what} changed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::output::text_of;
    use warpcc_report::record::InvocationRecord;

    #[test]
    fn misses_read_well() {
        let header = KeyPartChange {
            kind: "header".to_owned(),
            name: "include/a.h".to_owned(),
            old: Some("old".to_owned()),
            new: Some("new".to_owned()),
        };
        let call =
            |at: u64, file: &str, outcome, not_kept: Option<&str>, missed: &[_]| InvocationRecord {
                id: at,
                build: "ninja-0123456789".to_owned(),
                driver: Some("ninja -j16".to_owned()),
                started_unix_ns: at,
                since_boot_ns: at,
                args: vec!["nvcc".to_owned(), "-c".to_owned(), file.to_owned()],
                directory: "/p".to_owned(),
                sources: vec![file.to_owned()],
                outcome,
                not_kept: not_kept.map(str::to_owned),
                missed: missed.to_vec(),
                ..InvocationRecord::default()
            };
        let odd = CallOutcome::Fallback {
            reason: "unknown option".to_owned(),
        };
        let mut calls = vec![
            call(
                9,
                "src/date.cu",
                CallOutcome::Built,
                Some("a date macro"),
                &[],
            ),
            call(8, "src/new.cu", CallOutcome::Built, None, &[]),
            call(7, "src/hit.cu", CallOutcome::DirectHit, None, &[]),
            call(6, "src/odd.cu", odd, None, &[]),
            call(5, "src/bad.cu", CallOutcome::Failed { code: 2 }, None, &[]),
        ];
        let option = KeyPartChange {
            kind: "option".to_owned(),
            name: String::new(),
            old: None,
            new: Some("--optimize 3".to_owned()),
        };
        calls.push(call(4, "src/o.cu", CallOutcome::Built, None, &[option]));
        for (at, name) in [(3, "MODE"), (2, "*")] {
            let variable = KeyPartChange {
                kind: "variable".to_owned(),
                name: name.to_owned(),
                old: None,
                new: None,
            };
            calls.push(call(
                at,
                "src/variable.cu",
                CallOutcome::Built,
                None,
                &[variable],
            ));
        }
        for at in 0..5 {
            let file = format!("src/{at}.cu");
            let header = std::slice::from_ref(&header);
            calls.push(call(at + 10, &file, CallOutcome::Built, None, header));
        }
        let build = Build::new(calls);
        insta::assert_snapshot!("last_build", text_of(|out| write(&build, out)));
    }
}
