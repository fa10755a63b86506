//! Looks that are refused for want of a permission. The tests give up root's right to read every file.

use std::os::unix::fs::MetadataExt;

use crate::space::{Exactness, Program, TestSpace};
use crate::{BY_WRAPPER, ONE, WRAPPED, set_mode, simple, wrapped};

/// warpcc without root's right to pass permissions by. Other users do not have it.
fn without_privilege(space: &TestSpace) -> Program {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !is_root {
        return Program::Launcher;
    }
    let warpcc = TestSpace::warpcc();
    let words = [
        "--bounding-set=-dac_override,-dac_read_search",
        "--inh-caps=-dac_override,-dac_read_search",
        "--",
        &warpcc.to_string_lossy(),
        &space.toolkit.nvcc.to_string_lossy(),
    ];
    Program::Other("setpriv".into(), words.map(str::to_owned).into())
}

#[test]
fn a_file_that_could_not_be_read_can_be_read_now() {
    let script = "#!/bin/bash\nread value 2>/dev/null <notes || value=0\nexec \"${0##*/}\" -DVALUE=$value \"$@\"\n";
    let space = wrapped("refused-file", WRAPPED, script);
    let program = without_privilege(&space);
    let words = space.words(BY_WRAPPER);
    space.write("notes", "7\n");
    set_mode(&space, "notes", 0);
    let (outcome, ..) = space.observe(&program, &words);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    let refused = space.read("out.o");
    let (.., stats) = space.observe(&program, &words);
    assert_eq!(stats.count("direct_hits"), 1, "the state is tried again");
    set_mode(&space, "notes", 0o644);
    space
        .agree_as(&program, BY_WRAPPER, Exactness::Bytes)
        .demand_no_direct_hit();
    assert!(refused != space.read("out.o"), "the note is in the object");
}

#[test]
fn a_script_asks_what_it_may_do() {
    for (name, question) in [("read", "-r"), ("write", "-w")] {
        let script = format!(
            "#!/bin/sh\nvalue=0\n[ {question} notes ] && value=1\nexec ${{0##*/}} -DVALUE=$value \"$@\"\n"
        );
        let space = wrapped(&format!("asks-to-{name}"), WRAPPED, &script);
        let program = without_privilege(&space);
        let words = space.words(BY_WRAPPER);
        space.write("notes", "7\n");
        let permitted = space.agree_as(&program, BY_WRAPPER, Exactness::Bytes);
        permitted.demand_no_fallback();
        let permitted = space.read("out.o");
        set_mode(&space, "notes", 0);
        let (.., stats) = space.observe(&program, &words);
        assert_eq!(stats.count("direct_hits"), 0, "{name}: the mode counts");
        assert!(permitted != space.read("out.o"), "{name}");
        let (.., stats) = space.observe(&program, &words);
        assert_eq!(stats.count("direct_hits"), 1, "{name}: and it is stored");
    }
}

/// `su` and `sudo` often leave root's folders in `PATH`.
#[test]
fn a_folder_of_the_path_that_nobody_may_enter() {
    let mut space = simple("refused-folder");
    let program = without_privilege(&space);
    space.write("shut/bin/notes", "");
    set_mode(&space, "shut", 0);
    space.set_env("PATH", "{work}/shut/bin:/usr/local/bin:/usr/bin:/bin");
    space.set_env("LIBRARY_PATH", "{work}/shut/lib");
    space
        .agree_as(&program, ONE, Exactness::Bytes)
        .demand_no_fallback();
    space
        .agree_as(&program, ONE, Exactness::Bytes)
        .demand_direct_hit();
    set_mode(&space, "shut", 0o755);
    space
        .agree_as(&program, ONE, Exactness::Bytes)
        .demand_no_direct_hit();
}

/// Another user, another group or another privilege with the same cache: the file and its times stay the same.
#[test]
fn a_header_that_another_process_may_read() {
    let space = simple("refused-header");
    space.write(
        "case.cu",
        "#include \"notes.h\"\nint host() { return VALUE; }\n",
    );
    space.write("notes.h", "#define VALUE 1\n");
    set_mode(&space, "notes.h", 0);
    let words = space.words(ONE);
    space.observe(&Program::Launcher, &words);
    let (.., stats) = space.observe(&Program::Launcher, &words);
    assert_eq!(stats.count("direct_hits"), 1, "it is stored");
    let (outcome, ..) = space.observe(&without_privilege(&space), &words);
    assert_eq!(outcome.code, 1, "the header cannot be read");
    set_mode(&space, "notes.h", 0o644);
    space
        .agree_as(&without_privilege(&space), ONE, Exactness::Bytes)
        .demand_no_fallback();
}

/// What is refused is a change of the folder, so the folder's permissions count.
#[test]
fn a_folder_in_which_nothing_may_be_changed() {
    for (name, attempt) in [
        ("made", ": >shut/new"),
        ("folder", "python3 -c 'import os; os.mkdir(\"shut/new\")'"),
        ("removed", "rm -f shut/notes"),
        (
            "renamed",
            "python3 -c 'import os; os.rename(\"shut/notes\", \"shut/new\")'",
        ),
    ] {
        let script = format!(
            "#!/bin/bash\nvalue=1\n[ -e shut/new ] || {{ {attempt}; }} 2>/dev/null || value=0\nexec \"${{0##*/}}\" -DVALUE=$value \"$@\"\n"
        );
        let space = wrapped(&format!("forbidden-{name}"), WRAPPED, &script);
        let program = without_privilege(&space);
        let words = space.words(BY_WRAPPER);
        space.write("shut/notes", "7\n");
        set_mode(&space, "shut", 0o555);
        space.observe(&program, &words);
        let refused = space.read("out.o");
        let (.., stats) = space.observe(&program, &words);
        assert_eq!(stats.count("direct_hits"), 1, "{name}: it is stored");
        set_mode(&space, "shut", 0o755);
        let (.., stats) = space.observe(&program, &words);
        assert_eq!(stats.count("direct_hits"), 0, "{name}");
        assert!(refused != space.read("out.o"), "{name}");
        let is_made = space.exists("shut/new");
        assert_eq!(is_made, name != "removed", "{name}: the change is made");
    }
}

#[test]
fn an_interpreter_that_was_missing_or_refused() {
    let script = "#!/bin/bash\nvalue=1\n./tool 2>/dev/null || value=0\nexec \"${0##*/}\" -DVALUE=$value \"$@\"\n";
    let space = wrapped("refused-interpreter", WRAPPED, script);
    let words = space.words(BY_WRAPPER);
    let interpreter = space.work().join("sh");
    space.script("tool", &format!("#!{}\nexit 0\n", interpreter.display()));
    space.observe(&Program::Launcher, &words);
    let missing = space.read("out.o");
    std::fs::copy("/bin/sh", &interpreter).expect("a shell");
    set_mode(&space, "sh", 0o644);
    space.observe(&Program::Launcher, &words);
    assert!(missing == space.read("out.o"), "it may not be executed");
    set_mode(&space, "sh", 0o755);
    space
        .agree(BY_WRAPPER)
        .demand_no_direct_hit()
        .demand_no_fallback();
    assert!(missing != space.read("out.o"), "the tool runs now");
}
