//! Tests wrappers of the host compiler that change files besides the outputs: each command does so once, in nvcc's order, and
//! not at all after one that fails.

use std::process::Command;

use crate::side_files::space;
use crate::space::{Program, TestSpace};

const REASON: &str = "with --threads, a command changes a file besides its outputs";
const TWO_SOURCES: &str = "-c first.cu second.cu -gencode arch=compute_80,code=sm_80 \
                           -gencode arch=compute_90,code=sm_90 -ccbin {work}/cc.sh";

/// A space with two sources and a wrapper that does `action` in each of its runs. `$source` and `$pass` say which run it is.
fn wrapped(name: &str, action: &str) -> TestSpace {
    let space = space(name, "");
    for source in ["first", "second"] {
        let text = "__global__ void k(int *x) { *x = VALUE; }\n";
        space.write(&format!("{source}.cu"), text);
    }
    let script = "#!/bin/sh\n\
        case \"$*\" in *first*) source=first;; *second*) source=second;; *) source=none;; esac\n\
        case \"$*\" in *__CUDA_ARCH__=900*) pass=90;; *__CUDA_ARCH__=800*) pass=80;; *\" -E \"*) pass=host;; *) pass=end;; esac\n\
        ACTION\nexec g++ -DVALUE=$(cat {work}/value) \"$@\"\n";
    space.script("cc.sh", &space.fill(&script.replace("ACTION", action)));
    space.write("value", "1");
    space
}

/// Runs a line, and gives the exit code, the log, and the messages.
fn run(space: &TestSpace, program: &Program, line: &str) -> (i32, String, String) {
    space.write("log", "old\n");
    let said = space.run(program, &space.words(line));
    let log = String::from_utf8(space.read("log")).expect("a log");
    (said.code, log, said.stderr_text())
}

const LOGS: &str = "echo $source $pass >> {work}/log";

#[test]
fn the_lines_of_a_log_are_nvccs() {
    let space = wrapped("log-of-two-sources", LOGS);
    for value in ["1", "2", "1+", "3"] {
        space.write("value", value);
        let wanted = run(&space, &Program::Nvcc, TWO_SOURCES);
        for call in 1..=2 {
            let ours = run(&space, &Program::Launcher, TWO_SOURCES);
            assert_eq!(ours, wanted, "value {value}, call {call}");
        }
    }
    assert_eq!(space.stats().count("fallbacks"), 0);
}

/// nvcc runs the passes of all architectures at once then, in any order.
#[test]
fn with_threads_nvcc_writes_the_log() {
    let space = wrapped("log-with-threads", LOGS);
    let line = format!("{TWO_SOURCES} --threads 4");
    let sorted = |(code, log, messages): (i32, String, String)| {
        // nvcc's question about the compiler's properties comes with each of its runs, and the dry run is one more.
        let lines = log.lines().filter(|line| *line != "none end");
        let mut lines: Vec<_> = lines.map(str::to_owned).collect();
        lines.sort();
        (code, lines, messages)
    };
    let wanted = sorted(run(&space, &Program::Nvcc, &line));
    for _ in 0..2 {
        let ours = sorted(run(&space, &Program::Launcher, &line));
        assert_eq!(ours, wanted);
    }
    let stats = space.stats();
    assert_eq!(stats.reasons.get(REASON), Some(&2), "{stats:?}");
}

/// Each kind of change: none happens after a command that fails, and none happens twice.
#[test]
fn no_change_comes_early() {
    for (number, action) in [
        "echo $source >> {work}/old",
        "echo $source > {work}/old",
        "mv {work}/old {work}/old-$source-$pass",
        "rm {work}/old || echo gone >> {work}/gone",
        "mkdir {work}/made-$source-$pass",
        "ln {work}/old {work}/link-$source-$pass",
        "touch -d 2020-01-01 {work}/old; chmod 600 {work}/old",
        "echo $source $pass | tee -a {work}/old > /dev/null",
        "mkdir {work}/lock || exit 9; rmdir {work}/lock",
        "env -i /bin/sh -c \"echo $source $pass >> {work}/old\"",
    ]
    .iter()
    .enumerate()
    {
        let space = wrapped(&format!("early-{number}"), action);
        for value in ["1", "1+"] {
            space.write("value", value);
            let [wanted, ours, again] = [Program::Nvcc, Program::Launcher, Program::Launcher].map(|program| {
                space.remove("old");
                space.write("old", "old\n");
                let said = space.run(&program, &space.words(TWO_SOURCES));
                let script = "cd {work}; find . -name '*.o' -o -printf '%p %y %m %s %n\n' | sort; cat old gone; \
                              rm -rf gone made-* link-* old-* *.o";
                let script = space.fill(script);
                let listed = std::process::Command::new("/bin/sh").args(["-c", &script]).output();
                let listed = listed.expect("a list").stdout;
                (said.code, said.stderr_text(), String::from_utf8(listed).expect("text"))
            });
            assert_eq!(ours, wanted, "{action}, value {value}");
            assert_eq!(again, wanted, "{action}, value {value}, again");
        }
    }
}

/// The other commands are hits, and the wrapper still runs each time.
#[test]
fn steps_of_such_a_call_are_cached() {
    let space = wrapped("log-and-hits", LOGS);
    let first = space.build(TWO_SOURCES);
    assert!(first.stats.all_misses() > 0, "{:?}", first.stats);
    let again = space.build(TWO_SOURCES);
    let count = |name| again.stats.count(name);
    assert_eq!(
        (count("ptxas_misses"), count("cicc_misses")),
        (0, 0),
        "{:?}",
        again.stats
    );
}

/// Nothing is stored then, and the rule still holds.
#[test]
fn a_cache_that_is_only_read_has_the_rule_too() {
    let mut space = wrapped("log-and-readonly", LOGS);
    let wanted = run(&space, &Program::Nvcc, TWO_SOURCES);
    space.set_env("WARPCC_READONLY", "1");
    let ours = run(&space, &Program::Launcher, TWO_SOURCES);
    assert_eq!(ours, wanted);
}

/// Nothing holds a command then, so no command starts before its turn.
#[test]
#[allow(clippy::print_stderr, reason = "a part that did not run must be seen")]
fn without_the_watch_library_commands_run_in_turn() {
    let mut space = wrapped("log-unwatched", LOGS);
    // The loader maps no library from such a folder.
    let folders = [("TMPDIR", "tmp"), ("WARPCC_DIR", "noexec")].map(|(name, folder)| {
        let folder = space.work().join(folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        space.set_env(name, folder.to_str().expect("text"));
        folder
    });
    let mounted = folders.iter().filter(|folder| {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "noexec,mode=700", "tmpfs"]);
        mount.arg(folder).output().is_ok_and(|o| o.status.success())
    });
    let mounted: Vec<_> = mounted.collect();
    let result = std::panic::catch_unwind(|| {
        for value in ["1", "1+"] {
            space.write("value", value);
            let wanted = run(&space, &Program::Nvcc, TWO_SOURCES);
            let ours = run(&space, &Program::Launcher, TWO_SOURCES);
            assert_eq!(ours, wanted, "value {value}");
        }
    });
    for folder in &mounted {
        let unmounted = Command::new("umount").arg(folder).status();
        assert!(unmounted.is_ok_and(|s| s.success()), "umount");
    }
    if mounted.len() < folders.len() {
        eprintln!("NOT RUN: folders mounted noexec, because mounting needs root");
    }
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}
