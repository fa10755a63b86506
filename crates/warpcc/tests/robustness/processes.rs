//! Few processes allowed, as in a container with `pids.max`: where nvcc finds enough, so does warpcc.

use std::path::PathBuf;

use crate::cgroup::Cgroup;
use crate::space::{Outcome, TestSpace};
use crate::{TWO, skipped, space};

/// Runs the compiler that `first` names, with so few processes, in a cgroup of its own: what a gcc that cannot fork leaves
/// behind tries on for seconds, and would count in the next run.
fn run(limit: u64, space: &TestSpace, first: &[PathBuf]) -> Result<Outcome, String> {
    let cgroup = Cgroup::new("pids")?;
    cgroup.set("pids.max", limit)?;
    let outcome = space.run(&cgroup.inside(first), &space.words(TWO));
    cgroup.wait_until_empty();
    Ok(outcome)
}

#[test]
fn as_few_processes_as_nvcc_needs() {
    // All at once: where gcc cannot fork it sleeps and tries again, for 15 seconds (libiberty's pex-unix.c).
    let runs = std::thread::scope(|scope| {
        let started = [2, 6, 8].map(|limit| scope.spawn(move || both(limit)));
        started.map(|run| run.join().expect("a run as nvcc's"))
    });
    let mut failures = String::new();
    for run in &runs {
        match run {
            Ok(plain) if plain.code != 0 => failures = plain.stderr_text(),
            Ok(_) => {}
            Err(why) => return skipped(&format!("no cgroup can be made here: {why}")),
        }
    }
    let passed = runs.iter().flatten().filter(|plain| plain.code == 0);
    assert!(
        passed.count() > 1,
        "nvcc itself needs more processes than that: {failures}"
    );
}

/// Runs nvcc and then warpcc, and compares the two; gives what nvcc said.
fn both(limit: u64) -> Result<Outcome, String> {
    let space = space(&format!("as-few-processes-{limit}"));
    let nvcc = space.toolkit.nvcc.clone();
    let plain = run(limit, &space, std::slice::from_ref(&nvcc))?;
    space.remove("out.o");
    let ours = run(limit, &space, &[TestSpace::warpcc(), nvcc])?;
    let text = ours.stderr_text();
    assert!(!text.contains("panicked"), "{limit} processes: {text}");
    if plain.code == 0 {
        assert_eq!(ours.code, 0, "{limit} processes: {text}");
        assert!(space.work().join("out.o").exists(), "{limit}: {text}");
    }
    Ok(plain)
}
