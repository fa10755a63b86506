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
