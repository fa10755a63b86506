//! Problems of the last build: parts of the key that differ in every call, and bypassed calls.

use warpcc_report::doctor::Finding;
use warpcc_report::summary::MissReason;
use warpcc_report::{Build, Summary};

use super::finding::{note, warning};
use crate::call_record::records;
use crate::commands::advice::{advice, changed_condition, cure};
use crate::config::Config;
use crate::store::open_quietly;

/// With fewer calls than this nothing is reported.
const HABIT: usize = 3;
/// The most findings of each kind.
const NAMED: usize = 3;

pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    let Some(store) = open_quietly(config) else {
        return;
    };
    let found = match records(&store).last() {
        Ok(Some(found)) => found,
        Ok(None) => return,
        Err(error) => {
            findings.push(note(
                format!("the records of builds cannot be read: {error}"),
                "`warpcc report` has nothing to show",
                "",
            ));
            return;
        }
    };
    if found.damage.is_notable() {
        findings.push(note(
            "some records of the last build are damaged",
            "`warpcc report` shows it without them",
            "",
        ));
    }
    judge(&Summary::compute(&Build::new(found.records)), findings);
}

pub(super) fn judge(summary: &Summary, findings: &mut Vec<Finding>) {
    let calls = summary.calls.total;
    let habits = summary
        .hits
        .misses
        .iter()
        .filter(|miss| miss.kind != "new" && miss.calls >= HABIT);
    for miss in habits.take(NAMED) {
        let because = changed_condition(&miss.kind, &miss.name).map_or_else(
            || format!(" because of {} {}{}", miss.kind, miss.name, change(miss)),
            |sentence| format!(": {sentence}"),
        );
        let what = format!(
            "in the last build {} of {calls} calls missed{because}",
            miss.calls
        );
        let why = format!("first seen at {}", miss.example);
        // An edited header or source is a normal reason to build.
        let edited = ["header", "source"].contains(&miss.kind.as_str());
        findings.push(if edited || miss.calls * 2 < calls {
            note(what, &why, cure(&miss.kind, &miss.name))
        } else {
            warning(what, &why, cure(&miss.kind, &miss.name))
        });
    }
    for fallback in summary.hits.fallbacks.iter().take(NAMED) {
        let what = format!(
            "in the last build {} of {calls} calls were bypassed: {}",
            fallback.calls, fallback.reason
        );
        let why = "they are neither parallel nor cached";
        findings.push(if fallback.calls * 2 < calls {
            note(what, why, advice(&fallback.reason))
        } else {
            warning(what, why, advice(&fallback.reason))
        });
    }
}

fn change(miss: &MissReason) -> String {
    match (&miss.old, &miss.new) {
        (Some(old), Some(new)) if old != new => format!(" ({} is now {})", cut(old), cut(new)),
        (None, Some(new)) => format!(" ({} is new)", cut(new)),
        (Some(old), None) => format!(" ({} is gone)", cut(old)),
        _ => String::new(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
