//! Tests what a call inherits from the process that started it: open and closed streams, a mask, limits. A script as host
//! compiler may look at them.

use std::fs;
use std::process::Command;

use crate::space::{
    Exactness, Program, Snapshot, Stats, TestSpace, differences, make_dir, remove_tree,
};
use crate::warm;

const SOURCE: &str =
    "#ifndef VALUE\n#define VALUE 0\n#endif\n__global__ void k(int *x) { *x = VALUE; }\n";
/// A line for which plain nvcc makes the same bytes each time.
const PLAIN: &str = "-cubin case.cu -o out.cubin -arch=sm_90";
pub const WRAPPED: &str = "-cubin case.cu -o out.cubin -arch=sm_90 -ccbin {work}/bin";

/// A space whose host compilers are this script.
pub fn wrapped(name: &str, script: &str) -> TestSpace {
    crate::wrapped(name, SOURCE, script)
}

/// Runs a line in a shell's script, whose `"$@"` is nvcc and then warpcc with the line. Both must do the same. Gives
/// warpcc's counters.
#[track_caller]
pub fn agree_below(space: &TestSpace, script: &str, line: &str) -> Stats {
    let args = space.words(line);
    let run = |compiler: &[String]| {
        let first = ["-c", script, "sh"].map(str::to_owned).into_iter();
        let first = first.chain(compiler.iter().cloned()).collect();
        let before = Snapshot::take(&space.work());
        let outcome = space.run(&Program::Other("/bin/sh".into(), first), &args);
        let made = Snapshot::take(&space.work()).since(&before);
        made.delete_from(&space.work());
        (outcome, made)
    };
    let keep = space.beside("keep");
    remove_tree(&keep);
    make_dir(&keep);
    let nvcc = space.toolkit.nvcc.display().to_string();
    let (want, wanted) = run(&[
        nvcc.clone(),
        "--keep".into(),
        "--keep-dir".into(),
        keep.display().to_string(),
    ]);
    let before = space.stats();
    let (got, outputs) = run(&[TestSpace::warpcc().display().to_string(), nvcc]);
    let mut found = differences(
        &wanted,
        &outputs,
        Exactness::Bytes,
        &space.beside("compare"),
    );
    found.extend(space.stream_rule().differences(&want, &got));
    assert!(
        found.is_empty(),
        "`{script}` of `{line}` differs:\n{}",
        found.join("\n")
    );
    space.stats().since(&before)
}

#[test]
fn standard_input_that_a_script_reads() {
    let script = "#!/bin/sh\nread value\nexec ${0##*/} -DVALUE=$value \"$@\"\n";
    let space = wrapped("stdin-read", script);
    space.write("numbers", &"7\n".repeat(100));
    for _ in 0..2 {
        // The last line shows where the next reader goes on: nvcc and warpcc have read the same number of lines.
        for feed in [
            "yes 3 | \"$@\"",
            "\"$@\" <numbers",
            "{ \"$@\"; read rest; echo $rest; } <numbers",
        ] {
            let stats = agree_below(&space, feed, WRAPPED);
            assert_eq!(stats.count("direct_hits"), 0, "{feed}: {stats:?}");
        }
    }
    // An empty input, which is the same each time.
    let quiet = "#!/bin/sh\nread value\nexec ${0##*/} \"$@\"\n";
    let space = wrapped("stdin-empty", quiet);
    for hits in [0, 1] {
        let stats = agree_below(&space, "\"$@\" </dev/null", WRAPPED);
        assert_eq!(stats.count("direct_hits"), hits, "{stats:?}");
    }
}

#[test]
fn standard_input_that_nobody_reads() {
    let space = wrapped("stdin-unread", "#!/bin/sh\nexec ${0##*/} \"$@\"\n");
    space.write("numbers", "1\n2\n");
    for (hits, feed) in [
        (0, "yes | \"$@\""),
        (1, "yes | \"$@\""),
        (1, "{ \"$@\"; cat; } <numbers"),
    ] {
        let stats = agree_below(&space, feed, WRAPPED);
        assert_eq!(stats.count("direct_hits"), hits, "{feed}: {stats:?}");
    }
}

/// A stack on which nvcc's tools crash: warpcc itself must not, and gives nvcc's exit code.
#[test]
fn a_small_stack() {
    let space = TestSpace::new("small-stack");
    space.write("case.cu", SOURCE);
    for _ in 0..2 {
        let stats = agree_below(&space, "ulimit -s 32; \"$@\"", PLAIN);
        assert_eq!(stats.count("direct_hits"), 0, "{stats:?}");
    }
}

#[test]
fn standard_streams_that_are_closed() {
    let space = TestSpace::new("closed-streams");
    space.write("case.cu", &format!("{SOURCE}#warning hello\n"));
    for streams in ["2>&-", ">&-", "<&-", "<&- >&- 2>&-"] {
        for line in [PLAIN, "-E case.cu -o out.ii"] {
            for _ in 0..2 {
                agree_below(&space, &format!("\"$@\" {streams}"), line);
            }
        }
    }
}

#[test]
fn messages_on_two_streams_that_are_one_file() {
    let both = "#!/bin/sh\ncase \"$*\" in *case.cu*) echo a >&2; echo b; echo c >&2;; esac\n\
                exec ${0##*/} \"$@\"\n";
    let space = wrapped("mixed-streams", both);
    for _ in 0..2 {
        agree_below(&space, "\"$@\" 2>&1", WRAPPED);
        agree_below(&space, "\"$@\"", WRAPPED);
    }
    // Streams that were stored as two files are shown in one.
    agree_below(&space, "\"$@\" 2>&1", WRAPPED);
    // One stream at a time has an order.
    let one = "#!/bin/sh\ncase \"$*\" in *case.cu*) echo a >&2; echo b >&2;; esac\n\
               exec ${0##*/} \"$@\"\n";
    let space = wrapped("one-stream", one);
    for hits in [0, 1] {
        let stats = agree_below(&space, "\"$@\" 2>&1", WRAPPED);
        assert_eq!(stats.count("direct_hits"), hits, "{stats:?}");
    }
}

/// nvcc starts the host compiler once where warpcc preprocesses and compiles in two steps.
#[test]
fn a_wrapper_that_speaks_in_each_run_is_heard_as_often_as_by_nvcc() {
    let greets = "#!/bin/sh\necho hello >&2\nexec ${0##*/} \"$@\"\n";
    let space = wrapped("greeting", greets);
    for hits in [0, 1] {
        let stats = agree_below(&space, "\"$@\"", WRAPPED);
        assert_eq!(stats.count("direct_hits"), hits, "{stats:?}");
    }
    space.write("case.cu", &format!("{SOURCE}#warning hello\n"));
    agree_below(&space, "\"$@\"", WRAPPED);
}

#[test]
fn limits_and_a_mask_that_a_script_asks_for() {
    let asks =
        "#!/bin/bash\nexec ${0##*/} -DVALUE=\"$((8#$(umask) * 10000 + $(ulimit -S -n)))\" \"$@\"\n";
    let space = wrapped("umask-ulimit", asks);
    for (hits, change) in [
        (0, "umask 022; ulimit -S -n 300"),
        (1, "umask 022; ulimit -S -n 300"),
        (0, "umask 026; ulimit -S -n 300"),
        (0, "umask 022; ulimit -S -n 400"),
        (1, "umask 022; ulimit -S -n 300; ulimit -S -c 0"),
    ] {
        let stats = agree_below(&space, &format!("{change}; \"$@\""), WRAPPED);
        assert_eq!(stats.count("direct_hits"), hits, "{change}: {stats:?}");
    }
    // Limits and masks do not count for a script that does not ask for them.
    let space = wrapped("no-umask", "#!/bin/sh\nexec ${0##*/} \"$@\"\n");
    for (hits, change) in [(0, "ulimit -S -n 300"), (1, "ulimit -S -n 400")] {
        let stats = agree_below(&space, &format!("{change}; \"$@\""), WRAPPED);
        assert_eq!(stats.count("direct_hits"), hits, "{change}: {stats:?}");
    }
}

#[test]
fn a_variable_named_in_pieces() {
    let script = "#!/bin/bash\nfor n in ${!COL*}; do v=${!n}; done\n\
                  exec ${0##*/} -DVALUE=${v:-0} \"$@\"\n";
    let mut space = wrapped("indirect", script);
    space.set_env("COLUMNS", "80");
    warm(&space, WRAPPED);
    space.set_env("COLUMNS", "90");
    space.agree(WRAPPED).demand_no_direct_hit();
}

#[test]
fn the_nvcc_of_the_settings_is_explained() {
    let mut space = TestSpace::new("explained-nvcc");
    space.write("case.cu", SOURCE);
    let nvcc = space.toolkit.nvcc.display().to_string();
    space.set_env("WARPCC_NVCC", &nvcc);
    let args = [
        "explain",
        "nvcc",
        "-arch=sm_90",
        "-c",
        "case.cu",
        "-o",
        "out.o",
    ];
    let told = space.warpcc_with(&args);
    assert_eq!(told.code, 0, "{}", told.stderr_text());
    assert!(space.exists("out.o"));
}

/// Whether this machine has ccache, which stands under the compiler's name then.
fn has_ccache() -> bool {
    let asked = Command::new("ccache").arg("--version").output();
    asked.is_ok_and(|said| said.status.success())
}

#[test]
#[allow(clippy::print_stderr, reason = "a part that did not run must be seen")]
fn ccache_that_is_told_what_to_run() {
    if !has_ccache() {
        eprintln!("NOT RUN: there is no ccache");
        return;
    }
    let mut space = TestSpace::new("ccache-told");
    space.write("case.cu", SOURCE);
    space.script("other", "#!/bin/sh\nexec /usr/bin/g++ -DVALUE=5 \"$@\"\n");
    make_dir(&space.work().join("p"));
    for name in ["gcc", "g++"] {
        space.link(&format!("p/{name}"), "/usr/bin/ccache");
    }
    let path = std::env::var("PATH").expect("a PATH");
    space.set_env("PATH", &format!("{{work}}/p:{path}"));
    space.set_env("CCACHE_DIR", "{beside}/ccache");
    warm(&space, PLAIN);
    space.set_env("CCACHE_COMPILER", "{work}/other");
    space.agree(PLAIN).demand_no_direct_hit();
    space.unset_env("CCACHE_COMPILER");
    space.agree(PLAIN).demand_direct_hit();
    let told = space.fill("compiler = {work}/other\n");
    fs::write(space.beside("ccache").join("ccache.conf"), told).expect("its settings");
    space.agree(PLAIN).demand_no_direct_hit();
}

/// A shell's `-include <(…)`: each pass reads a part of the pipe, in nvcc's order.
#[test]
fn a_pipe_that_an_option_names() {
    let space = TestSpace::new("pipe-option");
    space.write("case.cu", SOURCE);
    space.write("a.h", "#define VALUE 7\n");
    for _ in 0..2 {
        let script = "cat a.h | \"$@\" -include /dev/fd/0";
        let stats = agree_below(&space, script, PLAIN);
        assert_eq!(stats.count("fallbacks"), 1, "{stats:?}");
    }
}
