//! Tests the variables that switch warpcc or its cache off, and mistyped commands.

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
    // A result that is stored with some options may be used without them.
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

#[test]
fn a_word_of_another_cache_and_a_misspelt_one() {
    let mut space = space("words");
    let said = |space: &TestSpace, args: &[&str]| {
        let outcome = space.warpcc_with(args);
        (outcome.code, outcome.stderr_text())
    };
    for (args, ours) in [
        (["-s"].as_slice(), "`warpcc stats`"),
        (&["--show-stats"], "`warpcc stats`"),
        (&["version"], "`warpcc --version`"),
        (&["stast"], "`warpcc stats`"),
        (&["-c", "case.cu"], "the compiler comes first"),
    ] {
        let (code, text) = said(&space, args);
        assert!(code != 0 && text.contains(ours), "{args:?}: {code} {text}");
        assert!(!text.contains("warning"), "{args:?}: {text}");
    }
    // A program with a name like a command's runs with a hint, and a compiler with such a name runs without one.
    space.script("bin/stat", "#!/bin/sh\necho \"ran $*\"; exit 7\n");
    let bin = space.work().join("bin");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("PATH"));
    space.set_env("PATH", &path);
    for (args, hints) in [
        (["stat"].as_slice(), true),
        (&["stat", "--json"], true),
        (&["stat", "case.cu"], false),
    ] {
        let outcome = space.warpcc_with(args);
        let text = outcome.stderr_text();
        assert_eq!(outcome.code, 7, "{args:?}: {text}");
        assert!(outcome.stdout.starts_with(b"ran "), "{args:?}: {text}");
        assert_eq!(
            text.contains("did you mean `warpcc stats`?"),
            hints,
            "{args:?}: {text}"
        );
    }
    space.set_env("WARPCC_JBOS", "3");
    for command in ["config", "stats"] {
        let (code, text) = said(&space, &[command]);
        assert_eq!(code, 0, "{text}");
        assert!(
            text.contains("did you mean WARPCC_JOBS?"),
            "{command}: {text}"
        );
    }
    let outcome = space.run(&Program::Launcher, &space.words(TWO));
    assert_eq!(outcome.stderr_text(), "", "a compile says nothing of it");
}
