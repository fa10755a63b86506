//! The variables that switch warpcc or its cache off.

use crate::space::{Program, Snapshot, TestSpace};
use crate::{TWO, space};

fn run(space: &TestSpace, first: &[&str]) -> crate::space::Build {
    let nvcc = space.toolkit.nvcc.to_string_lossy().into_owned();
    let mut words = vec!["run".to_owned(), "--nvcc".to_owned(), nvcc];
    words.extend(first.iter().map(|&w| w.to_owned()));
    words.push("--".to_owned());
    let program = Program::Other(TestSpace::warpcc(), words);
    space.agree_as(&program, TWO, crate::space::Exactness::Bytes)
}

#[test]
fn disabled() {
    let mut space = space("disable");
    space.agree(TWO);
    space.set_env("WARPCC_DISABLE", "1");
    // Plain nvcc, whose temporary names are random: nothing to compare byte for byte.
    let before = space.stats();
    space.remove("out.o");
    let outcome = space.run(&Program::Launcher, &space.words(TWO));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    assert!(space.exists("out.o"), "no object");
    let stats = space.stats().since(&before);
    assert_eq!(
        stats.count("direct_hits") + stats.all_hits(),
        0,
        "{stats:?}"
    );
    space.demand_no_leftovers("a disabled warpcc");
}

#[test]
fn recached() {
    let mut space = space("recache");
    space.agree(TWO);
    space.set_env("WARPCC_RECACHE", "1");
    let build = space.agree(TWO);
    build.demand_no_direct_hit();
    assert_eq!(build.stats.all_hits(), 0, "{:?}", build.stats);
    space.unset_env("WARPCC_RECACHE");
    space.agree(TWO).demand_direct_hit();
}

#[test]
fn read_only() {
    let mut space = space("readonly");
    space.set_env("WARPCC_READONLY", "1");
    space.agree(TWO);
    space.agree(TWO).demand_no_direct_hit();
    space.unset_env("WARPCC_READONLY");
    space.agree(TWO);
    space.set_env("WARPCC_READONLY", "1");
    space.agree(TWO).demand_direct_hit();
}

#[test]
fn without_cache() {
    let space = space("no-cache");
    for _ in 0..2 {
        let build = run(&space, &["--no-cache"]);
        build.demand_no_direct_hit();
        assert_eq!(build.stats.all_hits(), 0, "{:?}", build.stats);
    }
}

#[test]
fn faithful_and_sequential_give_the_same() {
    let space = space("faithful");
    for options in [
        &["--faithful", "--no-cache"][..],
        &["--sequential", "--no-cache"],
    ] {
        run(&space, options);
    }
    // What one way stored, the other may use.
    run(&space, &["--faithful"]);
    space.agree(TWO).demand_no_tool_ran();
}

#[test]
fn cleared() {
    let space = space("clear");
    space.agree(TWO);
    let outcome = space.warpcc_with(&["cache", "clear"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    let build = space.agree(TWO);
    build.demand_no_direct_hit();
    assert_eq!(build.stats.all_hits(), 0, "{:?}", build.stats);
    space.agree(TWO).demand_direct_hit();
}

#[test]
fn base_dir_shares_steps_between_clones() {
    let mut space = space("base-dir");
    let base = space.work().display().to_string();
    for clone in ["one", "two"] {
        space.write(
            &format!("{clone}/src/clone.cu"),
            // The path stands in the device code.
            "#include <scale.cuh>\n#include <cassert>\n\
             __global__ void k(float *x) { assert(x); *x = scale(*x); }\n\
             const char *where() { return __FILE__; }\n",
        );
        space.write(
            &format!("{clone}/include/scale.cuh"),
            "static __device__ float scale(float x) { return 2 * x; }\n",
        );
        space.write(&format!("{clone}/build/.keep"), "");
    }
    let options = "-MD -MF clone.d -o clone.o -arch=sm_90 -c";
    let relative = format!("{options} -I../include ../src/clone.cu");
    let build = |space: &mut TestSpace, clone: &str, base_dir: bool| {
        space.stand_in = format!("{clone}/build").into();
        let line = format!("{options} -I{base}/{clone}/include {base}/{clone}/src/clone.cu");
        if !base_dir {
            return space.agree(&line).stats;
        }
        let before = Snapshot::take(&space.work());
        let want = space.run(&space.reference(), &space.words(&relative));
        assert_eq!(want.code, 0, "{}", want.stderr_text());
        let wanted = Snapshot::take(&space.work()).since(&before);
        wanted.delete_from(&space.work());
        space.set_env("WARPCC_BASE_DIR", &base);
        let (outcome, outputs, stats) = space.observe(&Program::Launcher, &space.words(&line));
        space.unset_env("WARPCC_BASE_DIR");
        assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
        assert_eq!(outputs.entries, wanted.entries, "{clone}");
        stats
    };
    build(&mut space, "one", false);
    let apart = build(&mut space, "two", false);
    assert_eq!(apart.missed("ptxas"), 1, "{apart:?}");
    space.clear_cache();
    let first = build(&mut space, "one", true);
    assert_eq!(first.missed("ptxas"), 1, "{first:?}");
    let second = build(&mut space, "two", true);
    assert_eq!(second.missed("ptxas"), 0, "{second:?}");
    assert_eq!(second.missed("fatbinary"), 0, "{second:?}");
}
