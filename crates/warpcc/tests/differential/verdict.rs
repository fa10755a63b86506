//! Runs one case three times - nvcc, warpcc with an empty cache, warpcc again - in the
//! same folder, and collects everything that is not as it must be.

use crate::case::{Case, Level, Line};
use crate::space::{
    Exactness, Outcome, Program, Snapshot, Stats, StreamRule, TestSpace, Toolkit, differences,
};
use std::os::unix::fs::symlink;

/// Fail with every difference, not only the first: one cause shows in several ways.
pub fn check(case: &Case, toolkit: Toolkit) -> Result<(), String> {
    let release = toolkit.name;
    let mut space = TestSpace::with_toolkit(&case.name, toolkit);
    for (name, value) in &case.env {
        space.set_env(name, value);
    }
    let lines: Vec<&Line> = case
        .lines
        .iter()
        .filter(|line| line.toolkit.as_deref().is_none_or(|t| t == release))
        .collect();

    lay_out(case, &space);
    let given = Snapshot::take(&space.work());
    let want: Vec<Outcome> = lines
        .iter()
        .map(|line| {
            let program = if case.plain || case.keeps_itself() {
                Program::Nvcc
            } else {
                space.reference()
            };
            space.run(&program, &space.words(&line.args))
        })
        .collect();
    let wanted = chosen(case, Snapshot::take(&space.work()).since(&given));

    let mut found = Vec::new();
    for (line, outcome) in lines.iter().zip(&want) {
        if line.exit != outcome.code {
            found.push(format!(
                "the case says exit {}, nvcc gave {}: {}",
                line.exit,
                outcome.code,
                outcome.stderr_text()
            ));
        }
    }
    if found.is_empty() {
        lay_out(case, &space);
        for pass in ["cold", "warm"] {
            let given = Snapshot::take(&space.work());
            for (index, (line, want)) in lines.iter().zip(&want).enumerate() {
                // A later line may ask for what an earlier one has just built, under another name.
                let fresh = pass == "cold" && index == 0;
                let problems = run(&space, line, want, pass, fresh);
                let header = format!("[{pass}] {}", line.args);
                found.extend(problems.into_iter().map(|p| format!("{header}: {p}")));
            }
            let made = Snapshot::take(&space.work()).since(&given);
            let exactness = if case.keep_folder {
                Exactness::ButKeepFolder
            } else {
                Exactness::Bytes
            };
            let scratch = space.beside("compare");
            let unlike = differences(&wanted, &chosen(case, made.clone()), exactness, &scratch);
            found.extend(unlike.into_iter().map(|p| format!("[{pass}] {p}")));
            made.delete_from(&space.work());
        }
    }
    // A panic, so that the space is kept for a look.
    assert!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

/// Put the case's files into an empty folder.
fn lay_out(case: &Case, space: &TestSpace) {
    space.clear_work();
    for (name, bytes) in &case.files {
        // Through `write` for its folders; the bytes may be no UTF-8.
        space.write(name, "");
        std::fs::write(space.work().join(name), bytes)
            .unwrap_or_else(|e| panic!("writing {name}: {e}"));
        space.set_old(name);
    }
    for (name, target) in &case.links {
        symlink(target, space.work().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
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

/// What the counters should say and do not.
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
