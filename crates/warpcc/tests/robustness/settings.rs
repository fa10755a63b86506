//! The variables that switch warpcc or its cache off.

use crate::space::{Program, TestSpace};
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
    space.build(TWO);
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
    space.build(TWO);
    space.set_env("WARPCC_RECACHE", "1");
    let build = space.agree(TWO);
    build.demand_no_direct_hit();
    assert_eq!(build.stats.all_hits(), 0, "{:?}", build.stats);
    space.unset_env("WARPCC_RECACHE");
    space.again(TWO, &build).demand_direct_hit();
}

#[test]
fn read_only() {
    let mut space = space("readonly");
    space.set_env("WARPCC_READONLY", "1");
    let build = space.agree(TWO);
    space.again(TWO, &build).demand_no_direct_hit();
    space.unset_env("WARPCC_READONLY");
    space.again(TWO, &build);
    space.set_env("WARPCC_READONLY", "1");
    space.again(TWO, &build).demand_direct_hit();
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
    let first = space.agree(TWO);
    let outcome = space.warpcc_with(&["cache", "clear"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    let build = space.again(TWO, &first);
    build.demand_no_direct_hit();
    assert_eq!(build.stats.all_hits(), 0, "{:?}", build.stats);
    space.again(TWO, &first).demand_direct_hit();
}
