//! Tests what a wrapper around the host compiler may ask of a file besides its content, and files that it gets by other
//! means than `open`.

use std::fs;
use std::process::Command;

use crate::space::TestSpace;
use crate::{BY_WRAPPER, ONE, WRAPPED, rebuilt, set_mode, warm};

/// A space whose host compilers are this script.
fn wrapped(name: &str, script: &str) -> TestSpace {
    crate::wrapped(name, WRAPPED, script)
}

/// A wrapper in C, whose `text` sets `value`.
fn in_c(name: &str, text: &str) -> TestSpace {
    let space = TestSpace::new(name);
    space.write("case.cu", WRAPPED);
    space.write(
        "wrapper.c",
        &format!(
            "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <spawn.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
             #include <string.h>\n#include <dirent.h>\n#include <sys/mman.h>\n#include <sys/stat.h>\n#include <sys/wait.h>\n#include <sys/xattr.h>\n\
             #include <unistd.h>\nextern char **environ;\n\
             int main(int count, char **words) {{\n  char value[100] = \"\";\n  {text}\n  \
             value[strcspn(value, \"\\n\")] = 0;\n  char define[200];\n  sprintf(define, \"-DVALUE=%s\", value);\n  \
             char **all = calloc(count + 2, sizeof *all);\n  char *name = strrchr(words[0], '/');\n  \
             all[0] = name ? name + 1 : words[0];\n  all[1] = define;\n  \
             memcpy(all + 2, words + 1, count * sizeof *all);\n  execvp(all[0], all);\n  return 9;\n}}\n"
        ),
    );
    fs::create_dir(space.work().join("bin")).expect("a folder");
    for compiler in ["gcc", "g++"] {
        let made = Command::new("gcc")
            .args(["-w", "wrapper.c", "-o", &format!("bin/{compiler}")])
            .current_dir(space.work())
            .status();
        assert!(made.is_ok_and(|ended| ended.success()), "the wrapper");
    }
    space
}

#[test]
fn a_script_asks_whether_a_file_may_run() {
    let script = "#!/bin/bash\n[ -x notes ] && v=1 || v=2\nexec ${0##*/} -DVALUE=$v \"$@\"\n";
    let space = wrapped("may-run", script);
    space.write("notes", "");
    set_mode(&space, "notes", 0o644);
    space.agree(BY_WRAPPER);
    set_mode(&space, "notes", 0o755);
    rebuilt(&space, BY_WRAPPER);
    set_mode(&space, "notes", 0o644);
    space.agree(BY_WRAPPER).demand_direct_hit();
    set_mode(&space, "notes", 0o755);
    space.agree(BY_WRAPPER).demand_direct_hit();
    space.remove("notes");
    rebuilt(&space, BY_WRAPPER);
}

#[test]
fn a_file_that_is_read_and_then_written() {
    // Once an entry of a queue, which is removed; once a counter, which stays.
    for end in ["rm notes", ":"] {
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in\n*__CUDA_ARCH__=*) ;;\n*-E*case.cu*)\n  v=$(cat notes)\n  echo 1 >notes\n  \
             ${{0##*/}} -DVALUE=$v \"$@\"\n  code=$?\n  {end}\n  exit $code;;\nesac\nexec ${{0##*/}} \"$@\"\n"
        );
        let space = wrapped("consumed", &script);
        for value in ["22", "33"] {
            // nvcc and warpcc run separately, because each consumes the file.
            space.write("notes", value);
            space.build(BY_WRAPPER).demand_no_direct_hit();
            let ours = space.read("out.o");
            space.remove("out.o");
            space.write("notes", value);
            space.run(&space.reference(), &space.words(BY_WRAPPER));
            assert!(ours == space.read("out.o"), "{value}, then {end}");
        }
    }
}

#[test]
fn a_source_asks_whether_its_own_object_is_there() {
    let space = TestSpace::new("has-include-output");
    let source =
        format!("{WRAPPED}#if __has_include(\"out.o\")\nint again() {{ return 1; }}\n#endif\n");
    space.write("case.cu", &source);
    space.agree(ONE).demand_no_fallback();
    let first = space.read("out.o");
    space.build(ONE).demand_no_direct_hit();
    let ours = space.read("out.o");
    assert!(first != ours, "the object was not looked for");
    space.run(&space.reference(), &space.words(ONE));
    assert!(ours == space.read("out.o"), "another object than nvcc's");
    space.remove("out.o");
    space.build(ONE).demand_direct_hit();
    assert!(first == space.read("out.o"));
}

#[test]
fn a_file_that_a_spawned_process_is_given() {
    let text = "posix_spawn_file_actions_t plan;\n  int ends[2];\n  pipe(ends);\n  \
                posix_spawn_file_actions_init(&plan);\n  \
                posix_spawn_file_actions_addopen(&plan, 0, \"notes\", O_RDONLY, 0);\n  \
                posix_spawn_file_actions_adddup2(&plan, ends[1], 1);\n  char *cat[] = {\"cat\", 0};\n  pid_t child;\n  \
                if (posix_spawn(&child, \"/bin/cat\", &plan, 0, cat, environ)) strcpy(value, \"9\");\n  \
                close(ends[1]);\n  read(ends[0], value, 99);\n  waitpid(child, 0, 0);";
    let space = in_c("spawn-open", text);
    space.write("notes", "11\n");
    warm(&space, BY_WRAPPER);
    space.write("notes", "22\n");
    rebuilt(&space, BY_WRAPPER);
    space.remove("notes");
    space.agree(BY_WRAPPER).demand_no_direct_hit();
}

#[test]
fn content_without_a_name() {
    let by_handle = "char space[200]; struct file_handle *handle = (void *)space; int mount;\n  \
                     handle->handle_bytes = 128;\n  name_to_handle_at(AT_FDCWD, \"notes\", handle, &mount, 0);\n  \
                     int folder = open(\".\", O_RDONLY);\n  \
                     read(open_by_handle_at(folder, handle, O_RDONLY), value, 99);";
    let shared = "read(shm_open(getenv(\"SEGMENT\"), O_RDONLY, 0), value, 99);";
    let attribute = "getxattr(\"notes\", \"user.value\", value, 99);";
    let segment = format!("warpcc-test-{}", std::process::id());
    for (name, text) in [
        ("by-handle", by_handle),
        ("shared-memory", shared),
        ("attribute", attribute),
    ] {
        let mut space = in_c(name, text);
        space.set_env("SEGMENT", &format!("/{segment}"));
        for value in ["11", "22"] {
            space.write("notes", value);
            let memory = format!("/dev/shm/{segment}");
            fs::write(&memory, value).expect("shared memory");
            // A file system may have no attributes; then the value is empty each time.
            let notes = space.work().join("notes");
            let _ = rustix::fs::setxattr(
                &notes,
                "user.value",
                value.as_bytes(),
                rustix::fs::XattrFlags::empty(),
            );
            space.agree(BY_WRAPPER);
            fs::remove_file(memory).expect("shared memory");
        }
    }
}

/// Ways to look at `place` that see whether it is a folder or a link to one, or which folder is behind it, each with the two
/// states.
const LOOKS: [(&str, &str, [&str; 2]); 6] = [
    (
        "lstat",
        "struct stat found; lstat(\"place\", &found); strcpy(value, S_ISLNK(found.st_mode) ? \"1\" : \"2\");",
        ["mkdir place", "ln -s first place"],
    ),
    (
        "descriptor-of-the-name",
        "struct stat found; fstat(open(\"place\", O_PATH | O_NOFOLLOW), &found); strcpy(value, S_ISLNK(found.st_mode) ? \"1\" : \"2\");",
        ["mkdir place", "ln -s first place"],
    ),
    (
        "below-a-descriptor",
        "read(openat(open(\"place\", O_RDONLY | O_DIRECTORY), \"notes\", O_RDONLY), value, 1);",
        ["ln -s first place", "ln -s second place"],
    ),
    (
        "below-a-listed-folder",
        "read(openat(dirfd(opendir(\"place\")), \"notes\", O_RDONLY), value, 1);",
        ["ln -s first place", "ln -s second place"],
    ),
    (
        "from-inside",
        "int back = open(\".\", O_RDONLY); chdir(\"place\"); read(open(\"notes\", O_RDONLY), value, 1); fchdir(back);",
        ["ln -s first place", "ln -s second place"],
    ),
    (
        "going-there-in-vain",
        "int back = open(\".\", O_RDONLY); strcpy(value, chdir(\"place\") ? \"1\" : \"2\"); fchdir(back);",
        ["touch place", "mkdir place"],
    ),
];

#[test]
fn a_name_becomes_a_link_or_leads_elsewhere() {
    for (name, look, states) in LOOKS {
        let space = in_c(&format!("leads-{name}"), look);
        space.write("first/notes", "1");
        space.write("second/notes", "2");
        let enter = |state: &str| {
            let script = format!("rm -rf place; {state}");
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", &script]).current_dir(space.work());
            assert!(shell.status().is_ok_and(|ended| ended.success()), "{state}");
        };
        enter(states[0]);
        warm(&space, BY_WRAPPER);
        enter(states[1]);
        rebuilt(&space, BY_WRAPPER);
    }
}

/// gcc passes a missing folder of headers by, and complains of a link that leads to itself.
#[test]
fn a_missing_folder_of_headers_becomes_a_link_to_itself() {
    let space = crate::simple("link-to-itself");
    let line = format!("{ONE} -I headers");
    space.link("headers", "nowhere");
    warm(&space, &line);
    space.remove("headers");
    space.link("headers", "headers");
    space.agree(&line).demand_no_direct_hit();
}
