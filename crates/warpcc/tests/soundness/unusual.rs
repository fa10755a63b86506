//! Tests calls with usual arguments in which nvcc does something unusual: a source from a descriptor, intermediate files
//! next to the object, a name that the shell changes, a compiler behind a compiler cache.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use warpcc_plan::depfile::{ENDLESS_MARKER, NO_MARKER, QUOTED_NAME};

use crate::space::{Program, Snapshot, TestSpace, finish};
use crate::{KERNEL, ONE, simple, warm};

#[test]
fn the_source_is_standard_input() {
    let space = simple("stdin-source");
    space.write("other.cu", &format!("#define VALUE 2\n{KERNEL}"));
    let line = "-x cu -c /dev/stdin -o out.o -arch=sm_90";
    let compile = |program: &Program, source: &str| {
        let mut command = space.command(program, &space.words(line));
        command.stdin(Stdio::from(
            File::open(space.work().join(source)).expect("a source"),
        ));
        let said = finish(command);
        assert_eq!(said.code, 0, "{}", said.stderr_text());
        let object = space.read("out.o");
        space.remove("out.o");
        object
    };
    for source in ["case.cu", "other.cu", "case.cu"] {
        let wanted = compile(&space.reference(), source);
        assert!(
            compile(&Program::Launcher, source) == wanted,
            "{source}: another object"
        );
    }
}

/// The exit code of a program for a command line, and the names of the files that it leaves.
fn leaves(space: &TestSpace, program: &Program, line: &str) -> (i32, Vec<String>) {
    let before = Snapshot::take(&space.work());
    let said = space.run(program, &space.words(line));
    let left = Snapshot::take(&space.work()).since(&before);
    left.delete_from(&space.work());
    (said.code, left.entries.into_keys().collect())
}

#[test]
fn intermediate_files_beside_the_object() {
    let space = simple("objdir-as-tempdir");
    let line = "-c case.cu --objdir-as-tempdir -o sub/out.o -arch=sm_90";
    crate::space::make_dir(&space.work().join("sub"));
    let wanted = leaves(&space, &Program::Nvcc, line);
    assert_eq!(wanted.0, 0);
    assert_eq!(leaves(&space, &Program::Launcher, line), wanted);
}

#[test]
fn a_name_that_the_shell_changes() {
    let mut space = simple("dollar-name");
    space.set_env("lar", "LAR");
    crate::warm(&space, ONE);
    let line = "-c case.cu -o dol$lar.o -arch=sm_90";
    let wanted = leaves(&space, &Program::Nvcc, line);
    assert_eq!(wanted, (0, vec!["dolLAR.o".to_owned()]));
    assert_eq!(leaves(&space, &Program::Launcher, line), wanted);
}

/// gcc looks for cc1plus relative to the name that it is called by. ccache calls gcc by its whole path.
#[test]
fn a_compiler_cache_in_a_folder_of_its_own() {
    let mut space = simple("cache-elsewhere");
    space.script(
        "tools/bin/ccache",
        "#!/bin/sh\nexec /usr/bin/${0##*/} \"$@\"\n",
    );
    crate::space::make_dir(&space.work().join("tools/lib"));
    for name in ["gcc", "g++"] {
        space.link(&format!("tools/lib/{name}"), "../bin/ccache");
    }
    let path = std::env::var("PATH").expect("a PATH");
    space.set_env("PATH", &format!("{{work}}/tools/lib:{path}"));
    let said = space.run(&Program::Launcher, &space.words(ONE));
    assert_eq!(said.code, 0, "{}", said.stderr_text());
}

/// nvcc writes the bytes of a name, whatever they mean.
#[test]
fn a_header_whose_name_is_not_utf8_in_a_dependency_file() {
    let space = TestSpace::new("latin-header");
    let header = |name: &[u8]| space.work().join(OsStr::from_bytes(name));
    for name in [&b"h\xe9.h"[..], b"h \xff.h"] {
        std::fs::write(header(name), "int x();\n").expect("a header");
    }
    let source = b"#include \"h\xe9.h\"\n#include \"h \xff.h\"\n__global__ void k() {}\n";
    std::fs::write(header(b"case.cu"), source).expect("a source");
    let line = &format!("{ONE} -MMD -MP -MF case.d");
    warm(&space, line);
    space.agree(line).demand_direct_hit();
    assert!(space.read("case.d").contains(&0xff));
    std::fs::write(header(b"h\xe9.h"), "int y();\n").expect("a header");
    space.agree(line).demand_no_direct_hit();
}

/// nvcc adds names that no file has.
#[test]
fn a_quote_in_a_dependency_file() {
    let space = simple("quote-dependency");
    let source = format!("#include \"h.h\"\n#define VALUE 1\n{KERNEL}");
    space.write("d/dq\"/case.cu", &source);
    space.write("d/dq\"/h.h", "");
    let line = "-MD -c 'd/dq\"/case.cu' -o case.o -arch=sm_90";
    assert_eq!(space.run(&Program::Nvcc, &space.words(line)).code, 0);
    let wanted = space.read("case.d");
    let built = space.build(line);
    assert!(
        built.stats.reasons.contains_key(QUOTED_NAME),
        "{:?}",
        built.stats
    );
    assert_eq!(space.read("case.d"), wanted);
}

/// nvcc names the source in the rule, wherever the compiler got an option from that leaves markers out.
#[test]
fn a_dependency_file_of_a_text_without_markers() {
    let mut space = simple("no-markers");
    space.set_env("WARPCC_TEST_UNSOUND", "host-option-files");
    for option in ["-P", "-MM"] {
        space.write("options", option);
        let line = &format!("{ONE} -MD -MF case.d -Xcompiler @options");
        let nvccs = space.run(&Program::Nvcc, &space.words(line));
        let wanted = space.read("case.d");
        space.remove("case.d");
        let (ours, _, stats) = space.observe(&Program::Launcher, &space.words(line));
        assert_eq!(ours.code, nvccs.code, "{option}: {}", ours.stderr_text());
        assert!(stats.reasons.contains_key(NO_MARKER), "{option}: {stats:?}");
        assert_eq!(space.read("case.d"), wanted, "{option}");
    }
}

/// nvcc fails, and names its own file in the message.
#[test]
fn a_dependency_file_of_a_raw_string_like_a_marker() {
    let space = simple("endless-marker");
    space.write("case.cu", "const char *text = R\"(\n# 1 \"x\n)\";\n");
    let line = &space.words(&format!("{ONE} -MD -MF case.d"));
    let nvccs = space.run(&Program::Nvcc, line);
    let (ours, _, stats) = space.observe(&Program::Launcher, line);
    assert_ne!(nvccs.code, 0);
    assert_eq!(ours.code, nvccs.code, "{}", ours.stderr_text());
    assert!(stats.reasons.contains_key(ENDLESS_MARKER), "{stats:?}");
    space.agree(ONE).demand_no_fallback();
}

#[test]
fn two_dots_after_a_link_lead_up_from_where_it_leads() {
    let space = simple("dots");
    for (folder, value) in [("far/part", 1), ("part", 2)] {
        let source = format!("#define VALUE {value}\n{KERNEL}");
        space.write(&format!("{folder}/case.cu"), &source);
    }
    space.write("near/file", "");
    space.write("far/inner/file", "");
    let line = "-c link/../part/case.cu -o out.o -arch=sm_90";
    for target in ["near", "far/inner"] {
        space.link("link", target);
        let built = space.agree(line);
        built.demand_no_fallback().demand_no_direct_hit();
        space.agree(line).demand_direct_hit();
    }
}

/// nvcc fails with it, and leaves files in `/`: so a script is called in its place, and tells how often.
#[test]
fn an_empty_tmpdir_is_nvccs() {
    let mut space = TestSpace::new("empty-tmpdir");
    space.set_env("TMPDIR", "");
    space.write("case.cu", KERNEL);
    space.script(
        "bin/nvcc",
        &space.fill("#!/bin/sh\necho \"$*\" >> {beside}/log\n"),
    );
    let program = Program::Other(TestSpace::warpcc(), vec![space.fill("{work}/bin/nvcc")]);
    assert_eq!(space.run(&program, &space.words(ONE)).code, 0);
    let calls = std::fs::read_to_string(space.beside("log")).expect("a log");
    assert_eq!(calls, format!("{}\n", space.words(ONE).join(" ")));
}

/// gcc names a file by its real path where that is shorter.
#[test]
fn the_temporary_folder_has_a_longer_name_than_its_real_one() {
    let mut space = simple("temporary-link");
    let text = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
    let link = space.beside("a-name-that-is-longer-than-the-temporary-folder-itself");
    std::os::unix::fs::symlink(space.tmp(), &link).expect("a link");
    space.set_env("TMPDIR", &text(link));
    warm(&space, ONE);
    let detour = space.work().join("..").join("work").join("..");
    let detour = detour.join(space.tmp().file_name().unwrap_or_default());
    assert!(detour.exists(), "{detour:?}");
    space.set_env("TMPDIR", &text(detour));
    space.agree(ONE).demand_direct_hit();
    space.clear_cache();
    warm(&space, ONE);
}
