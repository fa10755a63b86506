//! Tests a script as host compiler that asks about the machine, the process, the terminal or the date.

use std::process::Command;

use crate::inherited::{WRAPPED, agree_below, wrapped};
use crate::space::TestSpace;
use crate::warm;

/// The host compilers' script, which makes `value`.
fn asks(shell: &str, value: &str) -> String {
    format!("#!{shell}\nvalue={value}\nexec ${{0##*/}} -DVALUE=$value \"$@\"\n")
}

/// Builds below each of these scripts. A number says whether warpcc may answer from the cache.
fn below(space: &TestSpace, calls: &[(i64, &str)]) {
    for (hits, script) in calls {
        let stats = agree_below(space, script, WRAPPED);
        assert_eq!(stats.count("direct_hits"), *hits, "{script}: {stats:?}");
    }
}

#[test]
fn the_name_of_the_machine() {
    let may = Command::new("unshare").args(["-u", "true"]).status();
    if !may.is_ok_and(|status| status.success()) {
        return;
    }
    let named = |name| format!("unshare -u sh -c 'hostname {name}; exec \"$@\"' sh \"$@\"");
    let [one, other] = ["one", "other"].map(named);
    let number = "$(printf %d 0x$(echo $name | md5sum | cut -c1-7))";
    for (shell, name) in [
        ("sh", "$(uname -n)"),
        ("sh", "$(hostname)"),
        ("bash", "$HOSTNAME"),
    ] {
        let script = asks(
            &format!("/bin/{shell}"),
            &format!("0\nname={name}\nvalue={number}"),
        );
        let space = wrapped("machine", &script);
        below(&space, &[(0, &one), (1, &one), (0, &other)]);
    }
    // bash always asks for the name, and does not show it to this script.
    let space = wrapped("machine-unasked", &asks("/bin/bash", "1"));
    below(&space, &[(0, &one), (1, &other)]);
}

#[test]
fn processors_and_priority() {
    for (value, one, other) in [
        ("$(nproc)", "taskset -c 0 \"$@\"", "\"$@\""),
        ("$(nice)", "nice -n 1 \"$@\"", "nice -n 2 \"$@\""),
    ] {
        let space = wrapped("processors", &asks("/bin/sh", value));
        let is_one_processor = value == "$(nproc)"
            && std::thread::available_parallelism().is_ok_and(|number| number.get() == 1);
        if !is_one_processor {
            below(&space, &[(0, one), (1, one), (0, other)]);
        }
    }
}

#[test]
fn the_user_and_the_groups() {
    let may = Command::new("setpriv")
        .args(["--groups=7", "true"])
        .status();
    if !may.is_ok_and(|status| status.success()) {
        return;
    }
    let [one, other] = [7, 8].map(|group| format!("setpriv --groups={group} \"$@\""));
    let space = wrapped("groups", &asks("/bin/bash", "${GROUPS[1]}"));
    below(&space, &[(0, &one), (1, &one), (0, &other)]);
    let space = wrapped("groups-unasked", &asks("/bin/bash", "1"));
    below(&space, &[(0, &one), (1, &other)]);
}

#[test]
fn the_date_is_in_no_result() {
    for (shell, value) in [
        ("sh", "$(date +%s)"),
        ("sh", "$(date -u +%s)"),
        ("bash", "$(printf '%(%s)T')"),
        ("sh", "$(df --output=avail . | tail -n 1)"),
    ] {
        let space = wrapped("date", &asks(&format!("/bin/{shell}"), value));
        for _ in 0..2 {
            // Not even nvcc makes the same twice.
            space
                .build(WRAPPED)
                .demand_no_direct_hit()
                .demand_no_fallback();
        }
    }
    // A date of an old file is the file's.
    let space = wrapped("old-date", &asks("/bin/sh", "$(date -r case.cu +%Y)"));
    space.set_old("case.cu");
    warm(&space, WRAPPED);
}

#[test]
fn what_standard_input_is() {
    let looks = "0\nif [ -p /dev/stdin ]; then value=1; elif [ -t 0 ]; then value=2; fi";
    for shell in ["/bin/sh", "/bin/bash"] {
        let space = wrapped("stdin-kind", &asks(shell, looks));
        below(
            &space,
            &[
                (0, "\"$@\" </dev/null"),
                (1, "\"$@\" </dev/null"),
                (0, "true | \"$@\""),
                (0, "script -qec \"$*\" /dev/null </dev/null >out"),
                (1, "\"$@\" </dev/null"),
            ],
        );
    }
    // By another name than 0, and empty at first.
    for reads in ["$(cat; echo 1)", "$(cat /dev/stdin; echo 1)"] {
        let space = wrapped("stdin-text", &asks("/bin/sh", reads));
        below(
            &space,
            &[
                (0, "\"$@\" </dev/null"),
                (1, "\"$@\" </dev/null"),
                (0, "printf 2+ | \"$@\""),
            ],
        );
    }
}

/// Names that lead to standard input.
const STDIN: [&str; 4] = [
    "/dev/../dev/stdin",
    "/proc/thread-self/fd/0",
    "/proc/$$/fd/0",
    "./mine",
];

/// What a script may ask of such a name: what kind of file it is, where it leads, what is in it.
fn questions(name: &str) -> [String; 3] {
    [
        format!("$([ -p {name} ] && echo 1)"),
        format!("$(readlink -f {name} | tr -dc :r | wc -c)"),
        format!("$(cat {name}; echo 1)"),
    ]
}

/// Every name that leads to standard input is one, and the host compiler's own text need not have it.
#[test]
fn standard_input_by_any_name() {
    for (number, name) in STDIN.into_iter().enumerate() {
        by_hidden_words(&questions(name)[number % 3], "");
    }
    // By another descriptor.
    by_hidden_words("$(cat <&5; echo 1)", "exec 5<&0 0</dev/null\n");
    by_hidden_words("$([ -p /dev/fd/5 ] && echo 1)", "exec 5<&0 0</dev/null\n");
}

/// A long test: every question of every name.
#[test]
fn standard_input_by_any_name_in_every_way() {
    for name in STDIN {
        for value in questions(name) {
            by_hidden_words(&value, "");
        }
    }
}

/// Builds with and without an input, below a script whose words are in a file of settings.
fn by_hidden_words(value: &str, before: &str) {
    let space = wrapped("stdin-name", &asks("/bin/sh", "\n. ./words"));
    space.write("words", &format!("{before}value=0{value}\n"));
    space.write("numbers", "3+");
    space.link("mine", "/proc/self/fd/0");
    for input in ["</dev/null", "<numbers", "</dev/null"] {
        agree_below(&space, &format!("\"$@\" {input}"), WRAPPED);
    }
    below(&space, &[(0, "printf 2+ | \"$@\"")]);
}

/// What `/dev/null` is by its own name is no question about standard input.
#[test]
fn no_input_of_a_scripts_own() {
    let space = wrapped(
        "own-null",
        &asks("/bin/sh", "$(cat </dev/null /dev/null; echo 1)"),
    );
    below(
        &space,
        &[
            (0, "\"$@\" </dev/null"),
            (1, "printf 2+ | \"$@\""),
            (1, "script -qec \"$*\" /dev/null </dev/null >out"),
        ],
    );
}

/// A compiled program asks about its streams for a reason; an interpreter asks when it starts.
#[test]
fn what_standard_input_is_for_a_compiled_program() {
    let program = "#include <stdio.h>\n#include <string.h>\n#include <sys/stat.h>\n#include <unistd.h>\n\
                   int main(int count, char **words) {\n\
                   struct stat is;\nchar value[99], *all[999], *name = strrchr(words[0], '/');\n\
                   sprintf(value, \"-DVALUE=%d\", LOOK);\nall[0] = name ? name + 1 : words[0];\n\
                   all[1] = value;\nmemcpy(all + 2, words + 1, count * sizeof *words);\n\
                   return execvp(all[0], all); }\n";
    for (look, calls) in [
        (
            "fstat(0, &is) ? 0 : S_ISFIFO(is.st_mode) ? 1 : 2 + (int)is.st_size",
            [(1, "</dev/null"), (0, "<numbers"), (0, "<other-numbers")],
        ),
        (
            "isatty(1) ? 1 : isatty(2) ? 2 : 3",
            [(1, "</dev/null"), (1, "<numbers"), (1, "<other-numbers")],
        ),
    ] {
        let space = wrapped("stdin-compiled", "");
        space.write("numbers", "3+");
        space.write("other-numbers", "44+");
        space.write("program.c", program);
        for compiler in ["gcc", "g++"] {
            let made = Command::new("gcc")
                .arg(format!("-DLOOK={look}"))
                .arg(space.work().join("program.c"))
                .arg("-o")
                .arg(space.work().join("bin").join(compiler))
                .status();
            assert!(made.is_ok_and(|status| status.success()), "{look}");
        }
        below(&space, &[(0, "\"$@\" </dev/null")]);
        for (hits, input) in calls {
            below(&space, &[(hits, &format!("\"$@\" {input}"))]);
        }
        below(
            &space,
            &[(0, "script -qec \"$*\" /dev/null </dev/null >out")],
        );
    }
}

/// What the user types is no input of a tool that warpcc starts.
#[test]
fn a_terminal_that_a_script_reads() {
    let space = wrapped(
        "stdin-typed",
        "#!/bin/sh\nread value\nexec ${0##*/} -DVALUE=$value \"$@\"\n",
    );
    let typed = "yes 3 | head -n 50 | script -qec \"$*\" /dev/null >out";
    below(&space, &[(0, typed), (0, typed)]);
    // The number of a terminal is another one in each run if other programs open terminals, too.
    let name = "$(tty | tr -d 0-9 | wc -c)";
    let space = wrapped("terminal-name", &asks("/bin/sh", name));
    let terminal = "script -qec \"$*\" /dev/null </dev/null >out";
    below(
        &space,
        &[(0, terminal), (0, terminal), (0, "\"$@\" </dev/null")],
    );
}

#[test]
fn whether_messages_go_to_a_terminal() {
    let looks = "0\n[ -t 1 ] && value=1\n[ -t 2 ] && value=$((value + 2))";
    let space = wrapped("terminal-kind", &asks("/bin/bash", looks));
    let terminal = "script -qec \"$* $to\" /dev/null </dev/null >out";
    let [both, second] = ["", ">errors"].map(|to| format!("to='{to}'; {terminal}"));
    below(
        &space,
        &[
            (0, "\"$@\""),
            (1, "\"$@\""),
            (0, &both),
            (0, &second),
            (1, "\"$@\""),
        ],
    );
}

/// Interpreters ask for all of it when they start.
#[test]
fn interpreters_that_only_start_are_cached() {
    let space = wrapped(
        "python-starts",
        "#!/usr/bin/python3 -B\nimport os, sys, time\nname = os.path.basename(sys.argv[0])\n\
         os.execvp(name, [name] + sys.argv[1:])\n",
    );
    below(
        &space,
        &[
            (0, "true | \"$@\""),
            (1, "true | \"$@\""),
            (1, "nice -n 3 \"$@\""),
        ],
    );
}

#[test]
fn a_file_that_the_c_library_opens_as_a_list_of_mounts() {
    let reads = "#!/usr/bin/python3 -B\nimport ctypes, os, sys\nlibrary = ctypes.CDLL(None)\n\
                 library.setmntent.restype = ctypes.c_void_p\n\
                 file = library.setmntent(b'value', b'r')\ntext = ctypes.create_string_buffer(9)\n\
                 library.fgets(text, 9, ctypes.c_void_p(file))\n\
                 name = os.path.basename(sys.argv[0])\n\
                 os.execvp(name, [name, '-DVALUE=%d' % int(text.value)] + sys.argv[1:])\n";
    let space = wrapped("mounts", reads);
    space.write("value", "3\n");
    below(
        &space,
        &[(0, "\"$@\""), (1, "\"$@\""), (0, "echo 4 >value; \"$@\"")],
    );
}
