//! gcc takes two files of one content for one, for `#pragma once`, where their times are equal too; clang, where they are
//! one file. Both search two folders of the include path once if they are one.

use crate::space::TestSpace;
use crate::{KERNEL, ONE, rebuilt, warm};

#[test]
fn one_of_two_equal_headers_gets_another_time() {
    let space = TestSpace::new("equal-files");
    space.write(
        "case.cu",
        &format!("#include \"a/x.h\"\n#include \"b/x.h\"\n#define VALUE 1\n{KERNEL}"),
    );
    for folder in ["a", "b"] {
        let header = format!("{folder}/x.h");
        space.write(&header, "#pragma once\nstruct Once {};\n");
        space.set_old(&header);
    }
    warm(&space, ONE);
    // A touch of both, and of one.
    for header in ["a/x.h", "b/x.h"] {
        let text = "#pragma once\nstruct Once {};\n";
        space.write(header, text);
        std::thread::sleep(std::time::Duration::from_millis(1100));
    }
    // nvcc reads both now, and finds the structure twice.
    space.agree(ONE).demand_no_direct_hit();
}

/// A header that says how often it was read.
const COUNTED: &str = "#pragma once\n#ifdef SEEN\n#undef VALUE\n#define VALUE 2\n\
                       #else\n#define VALUE 1\n#endif\n#define SEEN\n";

/// A case that reads a header under two names of one file.
fn space_with_one_header_twice(name: &str) -> TestSpace {
    let space = TestSpace::new(name);
    let case = format!("#include \"a/x.h\"\n#include \"b/x.h\"\n{KERNEL}");
    space.write("case.cu", &case);
    space.write("a/x.h", COUNTED);
    space.set_old("a/x.h");
    space.write("b/y.h", "");
    space.link("b/x.h", "../a/x.h");
    space
}

#[test]
fn a_link_to_a_header_becomes_an_older_copy() {
    let space = space_with_one_header_twice("equal-files-link");
    warm(&space, ONE);
    space.remove("b/x.h");
    space.write("b/x.h", COUNTED);
    rebuilt(&space, ONE);
}

#[test]
fn clang_tells_a_link_to_a_header_from_a_copy() {
    let space = space_with_one_header_twice("equal-files-clang");
    let line = &format!("{ONE} -ccbin clang++-14");
    warm(&space, line);
    space.remove("b/x.h");
    space.write("b/x.h", COUNTED);
    space.set_old("b/x.h");
    rebuilt(&space, line);
    // And back, where only names change.
    let line = &format!("{line} -DMORE");
    warm(&space, line);
    space.link("b/x.h", "../a/x.h");
    rebuilt(&space, line);
}

/// `current` leads to `old`, so that gcc searches them once.
fn space_with_one_folder_twice(name: &str) -> TestSpace {
    let space = TestSpace::new(name);
    space.write("case.cu", &format!("#include <x.h>\n{KERNEL}"));
    space.write("old/y.h", "");
    space.write("new/x.h", "#define VALUE 2\n");
    space.write("last/x.h", "#define VALUE 1\n");
    space.link("current", "old");
    space
}

#[test]
fn one_of_two_names_of_a_folder_leads_to_another() {
    let space = space_with_one_folder_twice("equal-files-folder");
    let line = &format!("{ONE} -I old -I current -I last");
    warm(&space, line);
    space.link("current", "new");
    rebuilt(&space, line);
}

#[test]
fn a_folder_becomes_another_name_of_a_later_one() {
    let space = space_with_one_folder_twice("equal-files-folders");
    // gcc leaves out a folder that is one of the system's.
    let line = &format!("{ONE} -I current -I new -isystem last");
    space.write("old/x.h", "#define VALUE 1\n");
    warm(&space, line);
    space.link("current", "last");
    rebuilt(&space, line);
}
