//! Compares three results of one case - nvcc's, warpcc's with an empty cache, warpcc's again - in the
//! same folder, and collects everything that is not as it must be.

use crate::case::{Case, Level, Line};
use crate::reference::{self, Reference, References};
use crate::space::{
    Exactness, Outcome, Program, Snapshot, Stats, StreamRule, TestSpace, Toolkit, differences,
    small,
};

/// Fails with every difference, not only the first: one cause shows in several ways.
pub fn check(case: &Case, toolkit: Toolkit, references: &References) -> Result<(), String> {
    let release = toolkit.name;
    let toolkit = match case.whole_headers {
        true => toolkit,
        false => small(toolkit),
    };
    let mut space = TestSpace::with_toolkit(&case.name, toolkit);
    for (name, value) in &case.env {
        space.set_env(name, value);
    }
    let found = problems(case, &space, &lines_for(case, release), references);
    // A panic, so that the space is kept for a look.
    assert!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

/// The commands that are for this toolkit.
pub fn lines_for<'a>(case: &'a Case, release: &str) -> Vec<&'a Line> {
    let is_for = |line: &&Line| line.toolkit.as_deref().is_none_or(|t| t == release);
    case.lines.iter().filter(is_for).collect()
}

/// All problems of a case.
pub fn problems(
    case: &Case,
    space: &TestSpace,
    lines: &[&Line],
    references: &References,
) -> Vec<String> {
    let key = reference::key(case, space, lines);
    let kept = key.and_then(|key| references.read(key));
    if let Some(kept) = &kept
        && !references.is_due(case, space.toolkit.name)
        && judge(case, space, lines, kept).is_empty()
    {
        return Vec::new();
    }
    // No result is kept, it is to be verified, or the case failed: nvcc's result now decides.
    let fresh = Reference::ask(case, space, lines);
    let mut found = judge(case, space, lines, &fresh);
    if let Some(key) = key.filter(|_| found.is_empty()) {
        references.keep(key, &fresh);
    }
    if let Some(kept) = kept {
        found.extend(outdated(case, space, lines, &kept, &fresh));
    }
    found
}

/// Runs warpcc with an empty cache and again, and compares both with nvcc's result.
fn judge(case: &Case, space: &TestSpace, lines: &[&Line], want: &Reference) -> Vec<String> {
    let mut found = Vec::new();
    for (line, outcome) in lines.iter().zip(&want.outcomes) {
        if line.exit != outcome.code {
            found.push(format!(
                "the case says exit {}, nvcc gave {}: {}",
                line.exit,
                outcome.code,
                outcome.stderr_text()
            ));
        }
    }
    if !found.is_empty() {
        return found;
    }
    let wanted = chosen(case, want.outputs.clone());
    space.clear_cache();
    reference::lay_out(case, space);
    for pass in ["cold", "warm"] {
        let given = Snapshot::take(&space.work());
        for (index, (line, want)) in lines.iter().zip(&want.outcomes).enumerate() {
            // A later line may build what an earlier line has just built, under another name.
            let fresh = pass == "cold" && index == 0;
            let problems = run(space, line, want, pass, fresh);
            let header = format!("[{pass}] {}", line.args);
            found.extend(problems.into_iter().map(|p| format!("{header}: {p}")));
        }
        let made = Snapshot::take(&space.work()).since(&given);
        let got = chosen(case, made.clone());
        let unlike = differences(&wanted, &got, exactness(case), &space.beside("compare"));
        found.extend(unlike.into_iter().map(|p| format!("[{pass}] {p}")));
        made.delete_from(&space.work());
    }
    found
}

/// The differences between a kept result and nvcc's result now.
fn outdated(
    case: &Case,
    space: &TestSpace,
    lines: &[&Line],
    kept: &Reference,
    fresh: &Reference,
) -> Vec<String> {
    let [then, now] = [kept, fresh].map(|reference| chosen(case, reference.outputs.clone()));
    let mut found = differences(&then, &now, exactness(case), &space.beside("compare"));
    for (line, (then, now)) in lines.iter().zip(kept.outcomes.iter().zip(&fresh.outcomes)) {
        found.extend(rule(space, line).differences(then, now));
    }
    if !found.is_empty() {
        found.insert(
            0,
            "nvcc no longer makes what was kept of it, so its result depends on something that the key leaves out: add that to \
             crates/warpcc/tests/differential/machine.rs. Below, \"nvcc\" is the kept result and \"warpcc\" is nvcc now."
                .to_owned(),
        );
    }
    found
}

fn exactness(case: &Case) -> Exactness {
    match case.keep_folder {
        true => Exactness::ButKeepFolder,
        false => Exactness::Bytes,
    }
}

/// The outputs the case names, or all.
fn chosen(case: &Case, mut outputs: Snapshot) -> Snapshot {
    if !case.outputs.is_empty() {
        outputs
            .entries
            .retain(|name, _| case.outputs.contains(name));
    }
    outputs
}

fn run(space: &TestSpace, line: &Line, want: &Outcome, pass: &str, fresh: bool) -> Vec<String> {
    let before = space.stats();
    let got = space.run(&Program::Launcher, &space.words(&line.args));
    let stats = space.stats().since(&before);
    let mut found = rule(space, line).differences(want, &got);
    let left = space.leftovers();
    if !left.is_empty() {
        found.push(format!("left in TMPDIR: {left:?}"));
    }
    found.extend(miscounted(line, &stats, pass, fresh));
    found
}

fn rule(space: &TestSpace, line: &Line) -> StreamRule {
    let mut rule = space.stream_rule();
    for word in &line.stderr {
        match word.as_str() {
            "same" => {}
            "ignore-timing" => rule.timing = true,
            "ignore-names" => rule.random_names = true,
            "ignore-order" => rule.order = true,
            _ => panic!("unknown Stderr: {word}"),
        }
    }
    rule
}

/// The expectations that the counters do not meet.
fn miscounted(line: &Line, stats: &Stats, pass: &str, fresh: bool) -> Vec<String> {
    let mut found = Vec::new();
    let mut demand = |holds: bool, what: &str| {
        if !holds {
            found.push(format!("{what}: {stats:?}"));
        }
    };
    if let Some(reason) = &line.fallback {
        let named = stats.reasons.keys().any(|r| r.contains(reason.as_str()));
        demand(named, &format!("no fallback because of {reason:?}"));
    } else if line.level != Level::Passthrough {
        demand(stats.count("fallbacks") == 0, "an unexpected fallback");
        demand(stats.count("total") == 1, "not counted once");
    }
    if line.exit != 0 && line.level != Level::Passthrough {
        demand(stats.count("failed") == 1, "not counted as failed");
    }
    match (pass, line.level) {
        ("warm", Level::Direct) => {
            demand(stats.count("direct_hits") == 1, "no direct hit");
            demand(stats.all_misses() == 0, "a direct hit that ran a tool");
        }
        ("warm", Level::Steps) => {
            demand(stats.all_hits() > 0, "no step was a hit");
            demand(stats.all_misses() == 0, "a tool ran again");
            demand(
                stats.count("direct_hits") == 0,
                "a direct hit, but steps expected",
            );
        }
        _ if fresh => demand(stats.count("direct_hits") == 0, "an unexpected direct hit"),
        _ => {}
    }
    found
}
