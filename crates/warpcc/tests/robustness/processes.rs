//! Few processes allowed, as in a container with `pids.max`: where nvcc finds enough, so does warpcc.

use std::path::PathBuf;

use crate::cgroup::Cgroup;
use crate::space::{Outcome, TestSpace};
use crate::{TWO, skipped, space};

/// Runs the compiler that `first` names, with so few processes.
fn run(cgroup: &Cgroup, space: &TestSpace, first: &[PathBuf]) -> Outcome {
    let outcome = space.run(&cgroup.inside(first), &space.words(TWO));
    // The next one must not find its predecessor's processes there.
    cgroup.wait_until_empty();
    outcome
}

#[test]
fn as_few_processes_as_nvcc_needs() {
    let limited = |cgroup: Cgroup| cgroup.set("pids.max", 100).map(|()| cgroup);
    let cgroup = match Cgroup::new("pids").and_then(limited) {
        Ok(cgroup) => cgroup,
        Err(why) => return skipped(&format!("no cgroup can be made here: {why}")),
    };
    let space = space("few-processes");
    let nvcc = space.toolkit.nvcc.clone();
    let mut passed = 0;
    // Not each number: where gcc cannot fork it tries again for 15 seconds (libiberty's pex-unix.c).
    for limit in [2, 6, 8] {
        cgroup.set("pids.max", limit).expect("the limit");
        let plain = run(&cgroup, &space, std::slice::from_ref(&nvcc));
        space.remove("out.o");
        space.clear_cache();
        let ours = run(&cgroup, &space, &[TestSpace::warpcc(), nvcc.clone()]);
        let text = ours.stderr_text();
        assert!(!text.contains("panicked"), "{limit} processes: {text}");
        if plain.code == 0 {
            passed += 1;
            assert_eq!(ours.code, 0, "{limit} processes: {text}");
            assert!(space.work().join("out.o").exists(), "{limit}: {text}");
        }
        space.remove("out.o");
    }
    assert!(passed > 1, "nvcc itself needs more processes than that");
}
