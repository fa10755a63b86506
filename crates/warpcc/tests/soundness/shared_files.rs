//! Tests files besides the outputs that depend on how warpcc runs a plan: several steps append to one, or its name holds the
//! name of a temporary folder.

use crate::ONE;
use crate::side_files::{REASON, space};
use crate::space::{Program, Snapshot, TestSpace};

/// Runs a call with nvcc and twice with warpcc, and prepares each. The lines of the file that it writes must be nvcc's.
#[track_caller]
fn demand_nvccs_lines(space: &TestSpace, line: &str, file: &str, prepare: impl Fn()) {
    let [nvccs, cold, again] =
        [Program::Nvcc, Program::Launcher, Program::Launcher].map(|program| {
            prepare();
            let said = space.run(&program, &space.words(line));
            assert_eq!(said.code, 0, "{line}: {}", said.stderr_text());
            users_lines(&space.read(file))
        });
    assert!(nvccs.len() > 3, "{line}: {nvccs:?}");
    assert_eq!(nvccs, cold, "{line}, cold");
    assert_eq!(nvccs, again, "{line}, again");
}

/// The lines of a text without those that name intermediate files, which have random names with nvcc.
fn users_lines(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let is_private = |line: &&str| line.contains("tmpxft_") || line.contains("-builds/");
    let users = text.lines().filter(|line| !is_private(line));
    users.map(str::to_owned).collect()
}

/// Every pass of clang appends to the file, in nvcc's order, also if the option is hidden.
#[test]
fn a_list_of_headers_is_nvccs() {
    let options = "-Xclang -header-include-file -Xclang list";
    for words in [&*options.replace(' ', ","), "@options"] {
        let space = space("headers-listed", options);
        let line = format!("{ONE} -ccbin clang++-14 -Xcompiler {words}");
        demand_nvccs_lines(&space, &line, "list", || space.write("list", "old\n"));
        assert_eq!(space.stats().count("fallbacks"), 0, "{words}");
    }
}

/// Programs that an options file names add a line each: in nvcc's order, and once.
#[test]
fn a_log_of_programs_that_an_options_file_names_is_nvccs() {
    let space = crate::simple("log-of-passes");
    space.write("options", &space.fill("-B{work}/tools"));
    let program = "#!/bin/sh\nreal=$(g++ -print-prog-name=cc1plus)\n\
                   case \"$*\" in *__CUDA_ARCH__=900*) pass=90;; *__CUDA_ARCH__=800*) pass=80;; *) pass=host;; esac\n\
                   echo $pass >> {work}/log\nexec $real \"$@\"\n";
    space.script("tools/cc1plus", &space.fill(program));
    let line = "-c case.cu -o out.o -gencode arch=compute_80,code=sm_80 \
                -gencode arch=compute_90,code=sm_90 -Xcompiler @options";
    demand_nvccs_lines(&space, line, "log", || space.remove("log"));
    space.clear_cache();
    demand_nvccs_lines(&space, line, "log", || space.write("log", "old\n"));
}

/// gcc reads what the shell makes of the name, and no file has the name that was typed.
#[test]
fn an_options_file_whose_name_the_shell_changes_is_nvccs() {
    for word in ["@opt\"ions\"", "\"@\"options", "@opt\\ions", "@$NAME"] {
        let mut space = crate::simple("options-through-shell");
        space.set_env("NAME", "options");
        space.write("options", "-Xclang -header-include-file -Xclang list");
        let line = format!("{ONE} -ccbin clang++-14 -Xcompiler {word}");
        demand_nvccs_lines(&space, &line, "list", || space.write("list", "old\n"));
    }
}

#[test]
fn an_options_file_without_effects_is_cached() {
    let space = crate::simple("quiet-options");
    space.write("options", "-Wall -O1");
    let line = format!("{ONE} -Xcompiler @options");
    let built = space.agree(&line);
    built.demand_no_fallback();
    space.again(&line, &built).demand_direct_hit();
    space.write("options", "-fstack-usage");
    let left = space.build(&line);
    assert_eq!(left.stats.count("passed"), 1, "{:?}", left.stats);
}

/// nvcc runs one command after another, so each finds the name unused.
#[test]
fn a_name_in_the_temporary_folder_is_free_for_every_command() {
    let space = crate::simple("name-in-tmpdir");
    let script = "#!/bin/sh\nmkdir $TMPDIR/in-use || exit 9\ng++ \"$@\"\ncode=$?\n\
                  rmdir $TMPDIR/in-use\nexit $code\n";
    space.script("cc.sh", script);
    let archs = [75, 80, 86, 90].map(|arch| format!("-gencode arch=compute_{arch},code=sm_{arch}"));
    let line = format!(
        "-fatbin case.cu -o out.fatbin -ccbin {{work}}/cc.sh {}",
        archs.join(" ")
    );
    for _ in 0..2 {
        let built = space.agree(&line);
        assert_eq!(built.outcome.code, 0, "{}", built.outcome.stderr_text());
    }
}

/// Both front ends write it, one after the other, and the second one's text remains.
#[test]
fn a_file_that_several_commands_overwrite_is_nvccs() {
    let space = space("overwritten", "");
    let line = format!("{ONE} -Xcudafe --list=list");
    for old in [false, true] {
        if old {
            space.write("list", "of an earlier call\n");
        }
        let text = |program: &Program| {
            let said = space.run(program, &space.words(&line));
            assert_eq!(said.code, 0, "{}", said.stderr_text());
            users_lines(&space.read("list"))
        };
        let wanted = text(&Program::Nvcc);
        for call in 1..=2 {
            if !old {
                space.remove("list");
            }
            assert_eq!(text(&Program::Launcher), wanted, "call {call}");
        }
        space.clear_cache();
    }
}

/// gcc names a module after the whole path of its source, which is in a temporary folder.
#[test]
fn a_module_below_gcms_cache_has_no_name_of_ours() {
    let space = space("header-unit", "-fmodule-header");
    let line = format!("{ONE} -Xcompiler @options");
    let left = |program: &Program| {
        let before = Snapshot::take(&space.work());
        let said = space.run(program, &space.words(&line));
        assert_eq!(said.code, 0, "{}", said.stderr_text());
        let left = Snapshot::take(&space.work()).since(&before);
        space.remove("gcm.cache");
        let names = left
            .entries
            .into_keys()
            .map(|name| match name.split_once("tmpxft_") {
                Some((folder, _)) => folder.to_owned(),
                None => name,
            });
        names.collect::<Vec<_>>()
    };
    let wanted = left(&Program::Nvcc);
    assert!(
        wanted.iter().any(|name| name.starts_with("gcm.cache/")),
        "{wanted:?}"
    );
    for _ in 0..2 {
        assert_eq!(left(&Program::Launcher), wanted);
    }
}

/// Also one that another options file names.
#[test]
fn another_text_of_an_options_file_is_another_call() {
    let space = space("options-edited", "-fstack-usage");
    space.write("outer", "-Wall\n\"@options\"\n");
    for file in ["options", "outer"] {
        space.write("options", "-fstack-usage");
        let line = format!("{ONE} -Xcompiler @{file}");
        for _ in 0..2 {
            let build = space.build(&line);
            assert_eq!(
                build.stats.reasons.get(REASON),
                Some(&1),
                "{:?}",
                build.stats
            );
        }
        space.write("options", "-O1");
        space.agree(&line).demand_no_fallback();
    }
}
