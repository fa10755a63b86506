//! Tests programs that have the name of a compiler or of one of NVIDIA's tools, and take a variable from the list of all of
//! them. No look at this list can be observed. Real ones are wrappers in C++ and Rust; those of Android and ChromeOS are in Go.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::space::{TestSpace, Toolkit};
use crate::toolchain::linked_toolkit;
use crate::{BY_WRAPPER, ONE, WRAPPED, simple, warm};

/// What a program may do to find `DISGUISED=` without asking for it by name; it sets `value`.
const WAYS: [(&str, &str); 3] = [
    ("environ", "extern char **environ; list = environ;"),
    ("third-argument", "list = third;"),
    (
        "procfs",
        "int file = open(\"/proc/self/environ\", O_RDONLY);\
         static char text[65536]; read(file, text, sizeof text - 1);\
         static char *found[1000]; int n = 0;\
         for (char *at = text; *at; at += strlen(at) + 1) found[n++] = at;\
         list = found;",
    ),
];

/// Makes a program that runs `real` with one more argument: `option`, and the variable's value behind it. Without the
/// variable there is no more argument.
fn disguise(space: &TestSpace, file: &Path, way: &str, real: &str, option: &str) {
    let source = space.beside("disguise.c");
    let text = format!(
        "#include <fcntl.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
         int main(int count, char **words, char **third) {{\n  char **list, *value = 0;\n  {way}\n  \
         for (; *list; list++) if (!strncmp(*list, \"DISGUISED=\", 10)) value = *list + 10;\n  \
         char **all = calloc(count + 2, sizeof *all), **at = all;\n  *at++ = \"{real}\";\n  \
         if (value) {{ *at = calloc(1, 100); strcpy(*at, \"{option}\"); strcat(*at++, value); }}\n  \
         memcpy(at, words + 1, count * sizeof *at);\n  execv(\"{real}\", all);\n  return 9;\n}}\n"
    );
    fs::write(&source, text).expect("a source");
    let made = Command::new("gcc")
        .args(["-w", "-O1", "-o"])
        .args([file, &source])
        .status();
    assert!(made.is_ok_and(|ended| ended.success()), "the wrapper");
}

/// Builds with values of the variable that change the result, and with a value that was there before.
fn follow_the_variable(space: &mut TestSpace, line: &str, values: [&str; 2]) {
    space.agree(line);
    for value in values {
        space.set_env("DISGUISED", value);
        space.agree(line).demand_no_direct_hit();
    }
    space.unset_env("DISGUISED");
    space.agree(line);
    space.set_env("DISGUISED", values[0]);
    space.agree(line);
}

#[test]
fn a_host_compilers_name_proves_nothing() {
    for (name, way) in WAYS {
        let mut space = TestSpace::new(&format!("disguised-host-{name}"));
        space.write("case.cu", WRAPPED);
        fs::create_dir(space.work().join("bin")).expect("a folder");
        for compiler in ["gcc", "g++"] {
            let file = space.work().join("bin").join(compiler);
            let real = format!("/usr/bin/{compiler}");
            disguise(&space, &file, way, &real, "-DVALUE=");
        }
        follow_the_variable(&mut space, BY_WRAPPER, ["1", "2"]);
    }
}

#[test]
fn the_name_of_a_tool_of_nvidia_proves_nothing() {
    for (name, way) in WAYS {
        let mut space = simple(&format!("disguised-ptxas-{name}"));
        space.toolkit = Toolkit::newest();
        linked_toolkit(&space);
        let real = space.toolkit.top().join("bin/ptxas");
        space.toolkit.nvcc = space.beside("toolkit/bin/nvcc");
        let ptxas = space.beside("toolkit/bin/ptxas");
        fs::remove_file(&ptxas).expect("the link");
        let real = real.to_str().expect("a path").to_owned();
        disguise(&space, &ptxas, way, &real, "-O");
        follow_the_variable(&mut space, ONE, ["0", "1"]);
    }
}

#[test]
fn for_the_usual_compilers_another_variable_does_not_count() {
    for compiler in ["g++", "clang++-14"] {
        let mut space = simple(&format!("undisguised-{compiler}"));
        let line = &format!("{ONE} -ccbin {compiler}");
        warm(&space, line);
        space.set_env("DISGUISED", "1");
        space.agree(line).demand_direct_hit();
        // With links to the programs, as Nix and Bazel have them.
        let found = Path::new("/usr/bin").join(compiler);
        space.link("g++", found.to_str().expect("a path"));
        let line = &format!("{ONE} -ccbin {{work}}/g++");
        warm(&space, line);
        space.set_env("DISGUISED", "2");
        space.agree(line).demand_direct_hit();
    }
}

/// What a library does when it is loaded: it shows the variable.
const SHOWS: &str = "#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\nextern char **environ;\n\
    __attribute__((constructor)) static void shows(void) {\n  char name[4096] = \"\";\n  \
    readlink(\"/proc/self/exe\", name, sizeof name - 1);\n  \
    if (!strstr(name, \"cc1plus\") && !strstr(name, \"clang\")) return;\n  \
    for (char **list = environ; *list; list++)\n    \
    if (!strncmp(*list, \"DISGUISED=\", 10)) fprintf(stderr, \"%s\\n\", *list);\n}\n";

/// A plugin of a known compiler, and a library that the user preloads, are no part of it.
#[test]
fn a_library_inside_a_known_compiler_reads_all_variables() {
    let plugin = "-ccbin clang++-14 -Xcompiler -Xclang,-load,-Xclang,{work}/shows.so";
    for (name, option, is_preloaded) in [("plugin", plugin, false), ("preloaded", "", true)] {
        let mut space = simple(&format!("library-{name}"));
        space.write("shows.c", SHOWS);
        let made = Command::new("gcc")
            .args(["-w", "-shared", "-fPIC", "-o", "shows.so", "shows.c"])
            .current_dir(space.work())
            .status();
        assert!(made.is_ok_and(|ended| ended.success()), "the library");
        if is_preloaded {
            let library = space.work().join("shows.so");
            space.set_env("LD_PRELOAD", library.to_str().expect("a path"));
        }
        let line = format!("{ONE} {option}");
        follow_the_variable(&mut space, &line, ["1", "2"]);
        space.set_env("DISGUISED", "1");
        space.agree(&line).demand_direct_hit();
    }
}
