//! Checks the budget that all calls share: where its table is, its limits, where they were set, and make's jobserver.

use std::fs;

use warpcc_budget::{Board, Joined, Tokens};
use warpcc_report::doctor::Finding;

use super::finding::{fine, note, warning};
use super::variables::variable;
use crate::config::{Config, SettingSource, format_bytes};
use crate::process_context::ProcessContext;
use crate::resources::place;
use crate::scratch::unusable_root;

/// One cicc of a large file needs more memory than this.
const LITTLE_KIB: u64 = 2 << 20;

pub(super) fn check(config: &Config, context: &ProcessContext, findings: &mut Vec<Finding>) {
    let limits = config.limits();
    let board = Board::open(&place(config), limits);
    for problem in board.warnings() {
        findings.push(warning(
            problem.to_string(),
            "simultaneous builds may use more processors and memory than there are",
            "WARPCC_RUNTIME_DIR=/a/folder/of/yours/alone (mode 700, on a local disk)",
        ));
    }
    let temporary = variable(context, "TMPDIR").unwrap_or("/tmp".as_ref());
    if let Some(usual) = unusable_root(&context.directory.join(temporary)) {
        findings.push(warning(
            format!(
                "{} is not a folder that only this user can write to",
                usual.display()
            ),
            "every call makes a folder with a different name, and calls with -g or -G are bypassed",
            "TMPDIR=/a/folder/of/yours",
        ));
    }
    let memory = format_bytes(limits.memory_kib.saturating_mul(1024));
    let who = if board.is_shared() {
        "all builds together run"
    } else {
        "each call runs"
    };
    findings.push(fine(format!(
        "{who} {} commands at once ({}) in {memory} ({})",
        limits.slots,
        jobs_from(config),
        memory_from(config)
    )));
    if let (Some(there), SettingSource::Environment(_) | SettingSource::File { .. }) =
        (processors(), &config.jobs.source)
        && limits.slots > there
    {
        findings.push(note(
            format!("{} commands at once on {there} processors", limits.slots),
            "they take turns, but all of them need memory",
            "unset WARPCC_JOBS",
        ));
    }
    if limits.memory_kib < LITTLE_KIB {
        findings.push(warning(
            format!("all commands together may use {memory}"),
            "a large file alone needs more; commands then run one after the other",
            "a larger WARPCC_MEMORY, or a larger limit of the container",
        ));
    }
    let flags = variable(context, "MAKEFLAGS").map(|flags| flags.to_string_lossy().into_owned());
    match flags.as_deref().map(Tokens::join) {
        None | Some(Joined::Absent) => {
            findings.push(fine("no jobserver: only the budget counts commands"));
        }
        Some(Joined::Yes(_)) => findings.push(fine("the jobserver of MAKEFLAGS can be used")),
        Some(Joined::Unusable(why)) => findings.push(warning(
            format!("the jobserver of MAKEFLAGS cannot be used: {why}"),
            "commands are not counted against make's -j, only against the budget",
            "put + before the command in the Makefile, or use make --jobserver-style=fifo (4.4)",
        )),
    }
}

fn jobs_from(config: &Config) -> String {
    match (&config.jobs.source, processors()) {
        (SettingSource::Default, Some(there)) if there > config.limits().slots => {
            "a cgroup's quota".to_owned()
        }
        (SettingSource::Default, _) => "the processors this process may use".to_owned(),
        (source, _) => source.to_string(),
    }
}

fn memory_from(config: &Config) -> String {
    match &config.memory.source {
        SettingSource::Default => "of the machine or its cgroup, less a reserve".to_owned(),
        source => source.to_string(),
    }
}

/// Processors in the affinity mask.
fn processors() -> Option<u32> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    count(list)
}

/// The number of processors in a list such as `0-3,8`.
fn count(list: &str) -> Option<u32> {
    let mut all = 0_u32;
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        all = all.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_counted_as_the_kernel_lists_them() {
        assert_eq!(count("\t0-3,8\n"), Some(5));
        assert_eq!(count("7"), Some(1));
        assert_eq!(count("3-1"), None);
        assert_eq!(count("0-4294967295,9"), None);
        assert_eq!(count(""), None);
    }
}
