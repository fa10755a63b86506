//! Tests that the launcher, `warpcc run` and `warpcc why` look results up in the same way, and find each other's.

use crate::space::{Program, TestSpace, finish};
use crate::{TWO, space};

/// `warpcc run` with this space's nvcc.
fn run(space: &TestSpace) -> Program {
    let nvcc = space.toolkit.nvcc.display().to_string();
    let first = ["run".to_owned(), "--".to_owned(), nvcc];
    Program::Other(TestSpace::warpcc(), first.to_vec())
}

/// The output of `warpcc why` for a command line.
fn why(space: &TestSpace, line: &str) -> String {
    let nvcc = space.toolkit.nvcc.display().to_string();
    let first = ["why".to_owned(), nvcc];
    let why = Program::Other(TestSpace::warpcc(), first.to_vec());
    let said = space.run(&why, &space.words(line));
    assert_eq!(said.code, 0, "{}", said.stderr_text());
    String::from_utf8_lossy(&said.stdout).into_owned()
}

const IS_THERE: &str = "It is in the cache";

#[test]
fn of_two_runs_at_once_one_builds() {
    let space = space("session-two-runs");
    let words = space.words(TWO);
    let before = space.stats();
    let outcomes = std::thread::scope(|scope| {
        let start = |_| {
            let command = space.command(&run(&space), &words);
            scope.spawn(move || finish(command))
        };
        let both: Vec<_> = (0..2).map(start).collect();
        let ends = both.into_iter().map(|one| one.join().expect("a thread"));
        ends.collect::<Vec<_>>()
    });
    for outcome in outcomes {
        assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    }
    let stats = space.stats().since(&before);
    assert_eq!(
        (stats.count("built"), stats.count("direct_hits")),
        (1, 1),
        "{stats:?}"
    );
    assert_eq!(stats.all_hits(), 0, "{stats:?}");
}

#[test]
fn why_finds_what_holds_in_one_folder_alone() {
    let mut space = space("session-why-base-dir");
    let top = space.work().display().to_string();
    space.write(
        "case.cu",
        &format!("const char *top() {{ return \"{top}/x\"; }}\n__global__ void k() {{}}\n"),
    );
    space.set_env("WARPCC_BASE_DIR", &top);
    let line = "-c case.cu -o out.o -arch=sm_90";
    for hits in 0..2 {
        let before = space.stats();
        let said = space.run(&Program::Launcher, &space.words(line));
        assert_eq!(said.code, 0, "{}", said.stderr_text());
        let stats = space.stats().since(&before);
        assert_eq!(stats.count("direct_hits"), hits, "{stats:?}");
    }
    let said = why(&space, line);
    assert!(said.starts_with(IS_THERE), "{said}");
    // `why` finds the path-specific key: in another folder it finds nothing.
    space.set_env("WARPCC_BASE_DIR", &format!("{top}:/usr"));
    let said = why(&space, line);
    assert!(!said.starts_with(IS_THERE), "{said}");
}

#[test]
fn why_agrees_with_the_launcher_at_every_step() {
    let space = space("session-why");
    space.write("part.h", "#define VALUE 1\n");
    space.write(
        "case.cu",
        "#include \"part.h\"\n__global__ void k(int *x) { *x = VALUE; }\n",
    );
    let line = "-c case.cu -o out.o -arch=sm_90";
    for (text, is_known) in [("1", false), ("2", false), ("1", true), ("2", true)] {
        space.write("part.h", &format!("#define VALUE {text}\n"));
        let said = why(&space, line);
        assert_eq!(said.starts_with(IS_THERE), is_known, "{text}: {said}");
        let build = space.agree(line);
        assert_eq!(build.is_direct_hit(), is_known, "{text}");
    }
}
