//! A precompiled header of clang has the size and time of each header in it. clang looks at these headers, opens only those
//! from which it takes a word, and refuses the precompiled one if a header was edited or only touched.

use std::fs;
use std::process::Command;

use crate::space::TestSpace;
use crate::{rebuilt, warm};

const LINE: &str =
    "-ccbin clang++-14 -std=c++17 -c case.cpp -o out.o -Xcompiler -include-pch,all.pch";

/// Makes the precompiled header as a build system would, from headers that are older.
fn precompile(space: &TestSpace) {
    let mut clang = Command::new("clang++-14");
    clang.args(["-x", "c++-header", "-std=c++17", "all.h", "-o", "all.pch"]);
    let made = clang
        .current_dir(space.work())
        .output()
        .expect("clang++-14");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{said}");
}

#[test]
fn a_header_in_a_precompiled_header_counts_with_size_and_time() {
    let space = TestSpace::new("precompiled");
    space.write(
        "all.h",
        "#pragma once\n#include \"value.h\"\n#include \"looked_at.h\"\n",
    );
    space.write("value.h", "#define VALUE 1\n");
    space.write("looked_at.h", "struct Part { int at = 1; };\n");
    space.write("case.cpp", "int host() { return VALUE + Part().at; }\n");
    // clang compares whole seconds.
    for header in ["value.h", "looked_at.h"] {
        space.set_old(header);
    }
    precompile(&space);
    warm(&space, LINE);
    for header in ["value.h", "looked_at.h"] {
        space.touch(header);
        assert_eq!(space.agree(LINE).outcome.code, 1);
        precompile(&space);
        rebuilt(&space, LINE);
    }
    space.set_old("looked_at.h");
    precompile(&space);
    space.agree(LINE);
    // Of the same size.
    space.write("looked_at.h", "struct Part { int at = 2; };\n");
    assert_eq!(space.agree(LINE).outcome.code, 1);
    precompile(&space);
    rebuilt(&space, LINE);
    fs::remove_file(space.work().join("looked_at.h")).expect("a header");
    assert_eq!(space.agree(LINE).outcome.code, 1);
}
