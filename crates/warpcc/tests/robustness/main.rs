//! Tests that trouble around a build - signals, kills, a bad cache, many calls at once, wrappers around wrappers -
//! neither makes the build wrong nor leaves files behind.

#[path = "../space/mod.rs"]
mod space;

mod board_watch;
mod budget;
mod built_from;
mod callers;
mod cgroup;
mod ci;
mod clangd;
mod clones;
mod cmake;
mod crowds;
mod doctor;
mod figures;
mod jobserver;
mod kills;
mod memory;
mod neighbours;
mod orphans;
mod permissions;
mod processes;
mod reports;
mod scarcity;
mod sessions;
mod settings;
mod setup;
mod shim;
mod stalls;
mod terminal;
mod unseen_dry_run;
mod unusable_cache;
mod why;
mod wrapping;
mod wrong_use;

use space::TestSpace;

/// Five architectures: long enough to be interrupted.
const LONG: &str = "-c case.cu -o out.o -gencode arch=compute_80,code=sm_80 \
                    -gencode arch=compute_86,code=sm_86 -gencode arch=compute_89,code=sm_89 \
                    -gencode arch=compute_90,code=sm_90 \
                    -gencode arch=compute_120,code=[sm_120,compute_120]";

/// Two architectures.
const TWO: &str = "-c case.cu -o out.o -gencode arch=compute_80,code=sm_80 \
                   -gencode arch=compute_90,code=sm_90";

const KERNEL: &str = "__global__ void k(int *x) { *x += *x; }\n\
    __global__ void m(float *x, int n) {\n\
      for (int i = 0; i < n; i++) x[i] = sinf(x[i]) + powf(x[i], 3.5f);\n\
    }\n";

fn space(name: &str) -> TestSpace {
    let space = TestSpace::new(name);
    space.write("case.cu", KERNEL);
    space
}

/// Says that a test did nothing, and why.
#[allow(clippy::print_stdout, reason = "a test that skips itself must say so")]
fn skipped(why: &str) {
    println!("skipped: {why}");
}
