//! Tests files that a tool makes or looks for next to its output or in `TMPDIR`, although no option of nvcc's names them:
//! they are where nvcc would have them, on the first call and on every later one.

use crate::ONE;
use crate::space::{Outcome, Program, Snapshot, TestSpace};

pub(crate) const REASON: &str = "a tool uses files next to its output";

/// A space with an options file for the host compiler. Its words do not count, as if a compiler had them from where warpcc
/// cannot read them.
pub(crate) fn space(name: &str, options: &str) -> TestSpace {
    let mut space = crate::simple(name);
    space.set_env("WARPCC_TEST_UNSOUND", "host-option-files");
    space.write("options", options);
    space
}

/// Runs a program, and removes the files that it leaves. Gives their names.
fn run_and_remove(space: &TestSpace, program: &Program, line: &str) -> (Outcome, Vec<String>) {
    let before = Snapshot::take(&space.work());
    let said = space.run(program, &space.words(line));
    let left = Snapshot::take(&space.work()).since(&before);
    left.delete_from(&space.work());
    (said, left.entries.into_keys().collect())
}

/// The names of the files that a program leaves for a line.
fn left_by(space: &TestSpace, program: &Program, line: &str) -> Vec<String> {
    let (said, left) = run_and_remove(space, program, line);
    assert_eq!(said.code, 0, "{}", said.stderr_text());
    left
}

/// Asserts that `call` is bypassed once, because a tool uses files next to its output.
#[track_caller]
pub(crate) fn demand_bypass<T>(space: &TestSpace, call: impl FnOnce() -> T) -> T {
    let before = space.stats();
    let result = call();
    let stats = space.stats().since(&before);
    assert_eq!(stats.reasons.get(REASON), Some(&1), "{stats:?}");
    result
}

/// Asserts that the call leaves the same files as nvcc, and is bypassed; the second time without building first.
fn is_nvccs(space: &TestSpace, line: &str) -> Vec<String> {
    let wanted = left_by(space, &Program::Nvcc, line);
    for call in 1..=2 {
        let left = demand_bypass(space, || left_by(space, &Program::Launcher, line));
        assert_eq!(left, wanted, "call {call}");
    }
    wanted
}

#[test]
fn options_of_a_file_make_files_beside_the_object() {
    for (number, option) in ["--coverage", "-fstack-usage", "-fdump-tree-optimized"]
        .iter()
        .enumerate()
    {
        let space = space(&format!("beside-{number}"), option);
        let left = is_nvccs(&space, &format!("{ONE} -Xcompiler @options"));
        assert!(left.len() > 1, "{option}: {left:?}");
    }
}

/// clang records its own words: the name of its output, which is no part of the key.
#[test]
fn an_object_that_holds_its_own_name_is_nvccs() {
    let space = space("own-name", "");
    space.write("case.cpp", "int host() { return 1; }\n");
    for name in ["out.o", "other.o"] {
        let recorded = "-ccbin clang++-14 -Xcompiler -frecord-command-line";
        let build = space.agree(&format!("-c case.cpp -o {name} {recorded}"));
        let reasons = &build.stats.reasons;
        assert_eq!(reasons.get(REASON), Some(&1), "{name}: {reasons:?}");
    }
}

/// In another folder, under a name made from the object's: nvcc's object and ours have the same.
#[test]
fn files_in_another_folder_are_named_after_the_object() {
    for (number, option) in ["-dumpdir traces/ -fstack-usage", "-ftime-trace=traces/"]
        .iter()
        .enumerate()
    {
        let space = space(&format!("named-after-{number}"), option);
        space.write("traces/kept", "");
        space.write("host.cpp", "int host() { return 1; }\n");
        let of_clang = match *option {
            "-ftime-trace=traces/" => "-ccbin clang++-19",
            _ => "",
        };
        let line = format!("-c host.cpp -o out.o {of_clang} -Xcompiler @options");
        let wanted = left_by(&space, &Program::Nvcc, &line);
        assert!(
            wanted.iter().any(|name| name.starts_with("traces/")),
            "{wanted:?}"
        );
        for _ in 0..2 {
            assert_eq!(left_by(&space, &Program::Launcher, &line), wanted);
        }
    }
}

/// clang puts a relative output there too, and reads another source.
#[test]
fn an_object_below_clangs_working_directory_is_there() {
    let space = space("working-directory", "");
    space.write("sub/case.cpp", "int in_sub() { return 1; }\n");
    space.write("case.cpp", "int beside() { return 1; }\n");
    let folder = "-Xcompiler -working-directory={work}/sub";
    let line = format!("-c case.cpp -o out.o -ccbin clang++-14 {folder}");
    let wanted = left_by(&space, &Program::Nvcc, &line);
    assert_eq!(wanted, ["sub/out.o"]);
    for _ in 0..2 {
        assert_eq!(left_by(&space, &Program::Launcher, &line), wanted);
    }
}

#[test]
fn a_profile_is_looked_for_beside_the_object() {
    let space = space("beside-profile", "-fprofile-use -Wno-missing-profile");
    is_nvccs(&space, &format!("{ONE} -Xcompiler @options"));
}

#[test]
fn side_files_are_there_where_nothing_is_stored() {
    let mut space = space("beside-readonly", "-fstack-usage");
    space.set_env("WARPCC_READONLY", "1");
    let line = &format!("{ONE} -Xcompiler @options");
    let wanted = left_by(&space, &Program::Nvcc, line);
    assert_eq!(left_by(&space, &Program::Launcher, line), wanted);
    assert!(wanted.len() > 1, "{wanted:?}");
}

/// The program writes its profile beside its object, whose name it has.
#[test]
fn an_object_that_names_its_profile_is_nvccs() {
    let space = space("profile-made", "-fprofile-generate");
    is_nvccs(&space, &format!("{ONE} -Xcompiler @options"));
}

/// In a folder for the profiles of all objects, which have the objects' whole names.
#[test]
fn a_profile_is_looked_for_in_a_folder_of_profiles() {
    let space = space(
        "profile-folder",
        "-fprofile-use=profiles -Wno-missing-profile",
    );
    is_nvccs(&space, &format!("{ONE} -Xcompiler @options"));
}

#[test]
fn a_wrapper_finds_its_settings_in_tmpdir() {
    let space = space("beside-tmpdir", "");
    space.script(
        "cc.sh",
        "#!/bin/sh\nexec g++ -DSETTING=$(cat $TMPDIR/setting) \"$@\"\n",
    );
    std::fs::write(space.tmp().join("setting"), "7").expect("a setting");
    space.write(
        "case.cu",
        "__global__ void k() {}\nint set() { return SETTING; }\n",
    );
    let words = space.words(&format!("{ONE} -ccbin {{work}}/cc.sh"));
    let nvccs = space.run(&space.reference(), &words);
    assert_eq!(nvccs.code, 0, "{}", nvccs.stderr_text());
    let ours = demand_bypass(&space, || space.run(&Program::Launcher, &words));
    assert_eq!(ours.code, 0, "{}", ours.stderr_text());
}

#[test]
fn a_warning_is_not_said_again_by_the_nvcc_that_takes_over() {
    let space = space("beside-warning", "-fstack-usage");
    space.write("case.cu", "__global__ void k() { int unused; }\n");
    let words = space.words(&format!("{ONE} -Xcompiler @options"));
    let nvccs = space.run(&space.reference(), &words);
    assert!(nvccs.stderr_text().contains("\"unused\""), "{nvccs:?}");
    let ours = demand_bypass(&space, || space.run(&Program::Launcher, &words));
    assert_eq!(ours.stderr_text(), nvccs.stderr_text());
}

#[test]
fn a_later_command_than_the_one_that_fails_leaves_no_file() {
    let space = space("beside-killed", "");
    space.write("case.cu", "__global__ void k() { asm(\"nonsense;\"); }\n");
    space.write("later.cpp", "int later() { return 1; }\n");
    let script = "#!/bin/sh\ncase \"$*\" in *later.cpp*)\n  : > {work}/side\n  echo ran >> {beside}/log\n  \
                  for i in 1 2 3 4 5 6 7 8 9; do sleep 1; done;;\nesac\nexec g++ \"$@\"\n";
    space.script("cc.sh", &space.fill(script));
    std::fs::write(space.beside("log"), "began\n").expect("a log");
    let line = "-c case.cu later.cpp -arch=sm_90 -ccbin {work}/cc.sh";
    let build = space.agree(line);
    build.demand_no_fallback();
    assert_ne!(build.outcome.code, 0, "nonsense was assembled");
    let log = std::fs::read_to_string(space.beside("log")).expect("a log");
    assert_eq!(log, "began\n", "the later command ran");
}

/// The host compile would otherwise write assembly first, under another name.
#[test]
fn a_file_of_a_host_compile_is_named_after_the_object() {
    let space = space("whole-host-compile", "-dumpdir traces/ -fstack-usage");
    space.write("traces/kept", "");
    let line = format!("{ONE} -Xcompiler @options");
    let wanted = left_by(&space, &Program::Nvcc, &line);
    assert!(wanted.contains(&"traces/out.su".to_owned()), "{wanted:?}");
    for _ in 0..2 {
        assert_eq!(left_by(&space, &Program::Launcher, &line), wanted);
    }
}

#[test]
fn a_script_under_a_compilers_name_runs_as_often_as_with_nvcc() {
    let space = space("counted-wrapper", "");
    for (number, added) in ["", "-S"].iter().enumerate() {
        let script = "#!/bin/sh\necho ran >> {beside}/log\nexec g++ \"$@\" ADDED\n";
        let script = space.fill(script).replace("ADDED", added);
        space.script("bin/g++", &script);
        let runs = |program: &Program| {
            _ = std::fs::remove_file(space.beside("log"));
            let line = format!("{ONE} -ccbin {{work}}/bin/g++");
            let left = left_by(&space, program, &line);
            (
                left,
                std::fs::read_to_string(space.beside("log")).expect("a log"),
            )
        };
        assert_eq!(runs(&Program::Launcher), runs(&Program::Nvcc), "{number}");
    }
}

#[test]
fn a_wrapper_finds_the_new_object_under_its_own_name() {
    let space = space("object-copied", "");
    space.script(
        "cc.sh",
        "#!/bin/sh\ng++ \"$@\" || exit\nif [ -e out.o ]; then cp out.o saved.o; fi\n",
    );
    let left = is_nvccs(&space, &format!("{ONE} -ccbin {{work}}/cc.sh"));
    assert_eq!(left, ["out.o", "saved.o"]);
}

#[test]
fn messages_that_name_the_output_are_nvccs() {
    let space = space("output-in-messages", "-v");
    let words = space.words(&format!("{ONE} -Xcompiler @options"));
    for _ in 0..2 {
        let ours = demand_bypass(&space, || space.run(&Program::Launcher, &words));
        assert!(ours.stderr_text().contains(" -o out.o "), "{ours:?}");
    }
}

/// A failing build shows its messages too, and may leave files.
#[test]
fn failing_builds_show_and_leave_what_nvccs_do() {
    let assembler = "int host() { __asm__(\"nonsense\"); return 1; }\n";
    let cases = [
        ("-v", "int host() { return VALUE }\n"),
        ("-v", assembler),
        ("", assembler),
        ("-fstack-usage", assembler),
        (
            "-fdump-tree-original",
            "int f() { return 1; }\nint host() { return VALUE; }\n",
        ),
    ];
    for (number, (option, source)) in cases.iter().enumerate() {
        for source_file in ["case.cu", "host.cpp"] {
            let space = space(&format!("failing-{number}-{}", source_file.len()), option);
            space.write(source_file, source);
            let line = format!("-c {source_file} -o out.o -Xcompiler @options");
            let run = |program: &Program| run_and_remove(&space, program, &line);
            let (wanted, left) = run(&Program::Nvcc);
            assert_ne!(wanted.code, 0, "{option}: {source}");
            for call in 1..=2 {
                let (ours, ours_left) = run(&Program::Launcher);
                assert_eq!(ours_left, left, "{option} {source_file}, call {call}");
                assert_eq!(ours.code, wanted.code);
                let text = ours.stderr_text();
                assert!(!text.contains("-builds/"), "{option} {source_file}: {text}");
                let lines = |text: &str| text.lines().count();
                assert_eq!(lines(&text), lines(&wanted.stderr_text()), "{text}");
            }
        }
    }
}

/// cicc leaves a file of a random name in `TMPDIR`.
#[test]
fn a_failing_device_compile_is_not_compiled_twice() {
    let space = space("failing-device", "");
    space.write("case.cu", "__global__ void k(int *x) { *x = undefined; }\n");
    for line in [
        "-ptx case.cu -arch=sm_90",
        "-cubin case.cu -arch=sm_90",
        "-dc case.cu -arch=sm_90",
    ] {
        let build = space.agree(line);
        assert_ne!(build.outcome.code, 0);
        build.demand_no_fallback();
    }
}

/// gcc's programs get their words in a file of one name for all, and passes that run at once read each other's.
#[test]
fn a_file_that_passes_write_and_read_is_nvccs() {
    let space = space("words-of-passes", "-save-temps=cwd");
    let line = format!("{ONE} -Xcompiler @options");
    let wanted = left_by(&space, &Program::Nvcc, &line);
    for _ in 0..2 {
        assert_eq!(left_by(&space, &Program::Launcher, &line), wanted);
    }
}
