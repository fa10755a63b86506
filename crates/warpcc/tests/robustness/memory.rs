//! Tests files that do not fit into memory together, in a cgroup with a limit: plain nvcc below ninja is killed, warpcc
//! finishes.

use std::path::PathBuf;

use crate::budget::with_board;
use crate::cgroup::Cgroup;
use crate::skipped;
use crate::space::{Outcome, TestSpace};

const FILES: usize = 2;
/// Commands at once, as on a larger machine.
const JOBS: u32 = 4;
const MIB: u64 = 1 << 20;
/// The memory limit, in bytes: one cicc fits, two do not.
const LIMIT: u64 = 320 * MIB;

const LINE: &str = "-t 0 -c {source} -o {object} -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90";

fn words(space: &TestSpace, source: &str, object: &str) -> String {
    space.fill(&LINE.replace("{source}", source).replace("{object}", object))
}

/// Writes a build file for ninja, with `compiler` before every command.
fn write_ninja(space: &TestSpace, compiler: &[PathBuf]) {
    let compiler: Vec<String> = compiler.iter().map(|p| p.display().to_string()).collect();
    let command = format!("{} {}", compiler.join(" "), words(space, "$in", "$out"));
    let mut text = format!("rule cu\n  command = {command}\n");
    for n in 0..FILES {
        text += &format!("build m{n}.o: cu m{n}.cu\n");
    }
    space.write("build.ninja", &text);
}

/// Sources that need little.
fn write_light(space: &TestSpace) {
    for n in 0..FILES {
        space.write(
            &format!("m{n}.cu"),
            &format!("__global__ void k{n}(int *x) {{ *x = {n}; }}\n"),
        );
    }
}

/// Sources that need much.
fn write_heavy(space: &TestSpace) {
    for n in 0..FILES {
        space.write(&format!("m{n}.cu"), &heavy(n));
    }
}

/// A table of 32 Ki numbers in few characters, for cicc only: it needs 172 MB, and less than half a second.
fn heavy(n: usize) -> String {
    let times = |name: &str, item: &str, number: usize| {
        let items: Vec<String> = (0..number).map(|i| format!("{item}(x + {i})")).collect();
        format!("#define {name}(x) {}\n", items.join(", "))
    };
    let tables = [("A", 16), ("B", 16), ("C", 16), ("D", 8)];
    let mut text = String::from("#define N(x) (x)\n");
    let mut item = "N";
    for (name, number) in tables {
        text += &times(name, item, number);
        item = name;
    }
    text + &format!(
        "__global__ void k{n}(int *x) {{\n#ifdef __CUDA_ARCH__\n  \
         static const int t[] = {{ D({n}) }};\n  *x = t[*x];\n#endif\n}}\n"
    )
}

fn ninja(space: &TestSpace, cgroup: &Cgroup) -> Outcome {
    for n in 0..FILES {
        space.remove(&format!("m{n}.o"));
    }
    let run = cgroup.inside(&["ninja".into(), "-k0".into(), format!("-j{JOBS}").into()]);
    let outcome = space.run(&run, &[]);
    cgroup.wait_until_empty();
    outcome
}

/// Figures from the report of the newest build: how often tasks began again, because they made room or were killed, and
/// how many seconds tasks waited for memory.
fn reported(space: &TestSpace) -> (u64, f64) {
    let json = space.json(&["report", "--json"]);
    let load = &json["summary"]["load"];
    let waited = load["waited"]["memory"]["total_s"].as_f64();
    (
        load["evicted"].as_u64().expect("a count"),
        waited.unwrap_or(0.0),
    )
}

#[test]
fn a_build_that_kills_nvcc_finishes_with_warpcc() {
    let limited = |cgroup: Cgroup| cgroup.limit_memory(LIMIT).map(|()| cgroup);
    let cgroup = match Cgroup::new("memory").and_then(limited) {
        Ok(cgroup) => cgroup,
        Err(why) => return skipped(&format!("no cgroup can be made here: {why}")),
    };
    let (space, _) = with_board("memory", JOBS);
    let nvcc = space.toolkit.nvcc.clone();
    let warpcc = [TestSpace::warpcc(), nvcc.clone()];

    // warpcc learns the needs of each file while they are small.
    write_light(&space);
    write_ninja(&space, &warpcc);
    let light = ninja(&space, &cgroup);
    assert_eq!(light.code, 0, "{}", text(&light));

    write_heavy(&space);
    let wanted: Vec<Vec<u8>> = (0..FILES)
        .map(|n| {
            let (source, object) = (format!("m{n}.cu"), format!("m{n}.o"));
            let line = words(&space, &source, &object);
            let outcome = space.run(&space.reference(), &space.words(&line));
            assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
            space.read(&object)
        })
        .collect();

    write_ninja(&space, std::slice::from_ref(&nvcc));
    let plain = ninja(&space, &cgroup);
    assert!(
        plain.code != 0 && cgroup.killed() > 0,
        "these files do fit together: {}",
        text(&plain)
    );

    // The learned needs are far too small, so more commands are admitted than fit.
    write_ninja(&space, &warpcc);
    let misled = ninja(&space, &cgroup);
    assert_eq!(misled.code, 0, "{}", text(&misled));
    agree(&space, &wanted);
    let (retries, waited) = reported(&space);
    // Which of the two happens is a matter of milliseconds: whether one command starts before the other has grown.
    assert!(
        retries > 0 || waited > 0.0,
        "nothing made room, and nothing is told to have waited for memory"
    );

    // Also without learned needs, as in the first build of a project.
    space.clear_cache();
    let first = ninja(&space, &cgroup);
    assert_eq!(first.code, 0, "{}", text(&first));
    agree(&space, &wanted);
}

fn text(outcome: &Outcome) -> String {
    let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
    said + &outcome.stderr_text()
}

fn agree(space: &TestSpace, wanted: &[Vec<u8>]) {
    for (n, object) in wanted.iter().enumerate() {
        assert!(
            space.read(&format!("m{n}.o")) == *object,
            "m{n}.o is not nvcc's"
        );
    }
}
