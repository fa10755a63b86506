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
    let space = space("few-processes");
    let nvcc = space.toolkit.nvcc.clone();
    let mut passed = 0;
    let mut failures = String::new();
    // Not each number: where gcc cannot fork it tries again for 15 seconds (libiberty's pex-unix.c).
    for limit in [2, 6, 8] {
        let plain = match run(limit, &space, std::slice::from_ref(&nvcc)) {
            Ok(plain) => plain,
            Err(why) => return skipped(&format!("no cgroup can be made here: {why}")),
        };
        space.remove("out.o");
        space.clear_cache();
        let ours = run(limit, &space, &[TestSpace::warpcc(), nvcc.clone()]);
        let ours = ours.expect("a cgroup, as before");
        let text = ours.stderr_text();
        assert!(!text.contains("panicked"), "{limit} processes: {text}");
        if plain.code == 0 {
            passed += 1;
            assert_eq!(ours.code, 0, "{limit} processes: {text}");
            assert!(space.work().join("out.o").exists(), "{limit}: {text}");
        } else {
            failures = plain.stderr_text();
        }
        space.remove("out.o");
    }
    assert!(
        passed > 1,
        "nvcc itself needs more processes than that: {failures}"
    );
}
