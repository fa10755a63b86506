//! A result that holds the time of its making is never answered from the cache, however the time came into it.

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::space::{Build, Program, TestSpace};

/// Two calls of which the second must not give the first one's result.
fn is_made_anew(space: &TestSpace, line: &str, output: &str) {
    let mut made = Vec::new();
    for _ in 0..2 {
        let before = space.stats();
        let said = space.run(&Program::Launcher, &space.words(line));
        assert_eq!(said.code, 0, "{}", said.stderr_text());
        let stats = space.stats().since(&before);
        assert_eq!(stats.count("direct_hits"), 0, "{stats:?}");
        assert_eq!(stats.count("fallbacks"), 0, "{stats:?}");
        made.push(space.read(output));
        // The next second, which `__TIME__` tells from this one.
        sleep(Duration::from_millis(1100));
    }
    assert!(made[0] != made[1], "the same time twice");
}

#[test]
fn a_time_that_was_made_a_string_once_more() {
    let space = TestSpace::new("date-string");
    space.write(
        "case.cu",
        "#define TEXT2(x) #x\n#define TEXT(x) TEXT2(x)\n\
         const char *built() { return TEXT(__TIME__); }\n__global__ void k() {}\n",
    );
    is_made_anew(&space, "-c case.cu -o out.o -arch=sm_90", "out.o");
}

#[test]
fn a_time_in_a_cpp_file_beside_a_cu_file() {
    let space = TestSpace::new("date-mixed");
    space.write("case.cu", "__global__ void k() {}\n");
    space.write(
        "main.cpp",
        "const char *built() { return __TIME__; }\nint main() { return built()[0] == 0; }\n",
    );
    is_made_anew(&space, "case.cu main.cpp -o app -arch=sm_90", "app");
}

#[test]
fn a_time_in_a_cpp_file_whose_macro_nobody_names() {
    let space = TestSpace::new("date-joined");
    space.write(
        "main.cpp",
        "#define JOIN2(a, b) a##b\n#define JOIN(a, b) JOIN2(a, b)\n\
         const char *built() { return JOIN(__TI, ME__); }\n",
    );
    is_made_anew(&space, "-c main.cpp -o out.o", "out.o");
}

/// A `.cpp` file without a date still hits, also where it has a time of its own.
#[test]
fn a_fixed_time_is_no_date() {
    let space = TestSpace::new("date-fixed");
    space.write(
        "main.cpp",
        "const char *noon() { return \"12:00:00 on Jan  1 2001\"; }\nint main() {}\n",
    );
    crate::warm(&space, "-c main.cpp -o out.o");
}

/// Nobody names the macro, and a header has the date of today in a comment.
#[test]
fn a_date_that_a_file_has_by_chance() {
    let space = TestSpace::new("date-by-chance");
    let today = Command::new("date")
        .env("LC_ALL", "C")
        .arg("+%b %e %Y")
        .output();
    let today = today.expect("date").stdout;
    space.write("h.h", &format!("// {}", String::from_utf8_lossy(&today)));
    space.write(
        "case.cu",
        "#include \"h.h\"\n#define JOIN2(a, b) a##b\n#define JOIN(a, b) JOIN2(a, b)\n\
         __device__ const char *built = JOIN(__DA, TE__);\n",
    );
    for _ in 0..2 {
        let before = space.stats();
        let said = space.run(&Program::Launcher, &space.words("-ptx case.cu -o out.ptx"));
        assert_eq!(said.code, 0, "{}", said.stderr_text());
        let stats = space.stats().since(&before);
        assert_eq!(stats.count("direct_hits"), 0, "{stats:?}");
        assert_eq!(stats.count("fallbacks"), 0, "{stats:?}");
    }
}

/// Nine headers of one folder, which are known by their times when they are read once more.
fn write_headers(space: &TestSpace) -> String {
    for number in 0..9 {
        space.write(&format!("many/{number}.h"), "#pragma once\n");
    }
    (0..9)
        .map(|number| format!("#include \"many/{number}.h\"\n"))
        .collect()
}

/// The compiler warns where the file that the pragma names is newer than the source: neither file's content changes.
fn counts_by_its_time(space: &TestSpace, source: &str, line: &str) {
    let before = space.stats();
    space.set_old("made.y");
    let warns = |build: &Build| build.outcome.stderr_text().contains("is older than");
    for _ in 0..2 {
        let build = space.agree(line);
        build.demand_no_direct_hit();
        assert!(!warns(&build), "{line}");
    }
    space.set_old(source);
    space.touch("made.y");
    let build = space.agree(line);
    build.demand_no_direct_hit();
    assert!(warns(&build), "{line}: {}", build.outcome.stderr_text());
    let stats = space.stats().since(&before);
    assert_eq!(stats.count("fallbacks"), 0, "{line}: {stats:?}");
}

#[test]
fn the_time_of_a_file_that_a_pragma_names() {
    let long = "// a long comment that makes the header longer than a piece of it\n".repeat(4000);
    for (name, file, text) in [
        (
            "source",
            "case.cu",
            "#pragma GCC dependency \"made.y\" make it again\n".to_owned(),
        ),
        (
            "header",
            "many/8.h",
            "_Pragma(\"GCC dependency \\\"../made.y\\\"\")\n".to_owned(),
        ),
        (
            "long",
            "many/8.h",
            format!("{long}#pragma GCC dependency \"../made.y\"\n{long}"),
        ),
        (
            "host",
            "main.cpp",
            "#pragma GCC dependency \"made.y\"\n".to_owned(),
        ),
        (
            "included",
            "case.cu",
            "#include \"made.y\"\n#pragma GCC depen\\\ndency \"made.y\"\n".to_owned(),
        ),
    ] {
        let space = TestSpace::new(&format!("date-pragma-{name}"));
        let include_all = write_headers(&space);
        space.write("made.y", "// a grammar\n");
        space.write(
            "case.cu",
            &format!("{include_all}__global__ void k() {{}}\n"),
        );
        space.write("main.cpp", "int main() { return 0; }\n");
        let old = std::fs::read_to_string(space.work().join(file)).expect("a file");
        space.write(file, &format!("{text}{old}"));
        let line = match name {
            "host" => "-c main.cpp -o out.o",
            _ => "-c case.cu -o out.o -arch=sm_90",
        };
        counts_by_its_time(&space, file, line);
    }
}

/// An option has the words and a file that the source includes, so that gcc opens it only once.
#[test]
fn the_time_of_a_file_that_a_pragma_in_an_option_names() {
    let space = TestSpace::new("date-pragma-option");
    space.write("made.y", "// a grammar\n");
    space.write(
        "case.cu",
        "#include <made.y>\n#define MAKE2(x) _Pragma(#x)\n#define MAKE(x) MAKE2(x)\n\
         MAKE(WHAT)\n__global__ void k() {}\n",
    );
    counts_by_its_time(
        &space,
        "case.cu",
        "-c case.cu -o out.o -arch=sm_90 -I. '-DWHAT=GCC dependency <made.y>'",
    );
}

/// No text has the words. gcc closes the file unread.
#[test]
fn the_time_of_a_file_that_a_pragma_of_parts_names() {
    for (name, text) in [("text", "// a grammar\n"), ("nothing", "")] {
        let space = TestSpace::new(&format!("date-pragma-of-parts-{name}"));
        space.write("made.y", text);
        space.write(
            "case.cu",
            "#define JOIN(a, b) a##b\n#define MAKE2(x) _Pragma(#x)\n#define MAKE(x) MAKE2(x)\n\
             MAKE(GCC JOIN(depen, dency) \"made.y\")\n__global__ void k() {}\n",
        );
        counts_by_its_time(&space, "case.cu", "-c case.cu -o out.o -arch=sm_90");
    }
}

/// An empty header, one that is only looked for, and one that is read twice: none of them is closed unread.
#[test]
fn headers_whose_times_do_not_count() {
    let space = TestSpace::new("date-no-pragma");
    space.write("empty.h", "");
    space.write("found.h", "#error not included\n");
    space.write("twice.h", "#ifdef ONCE\nint twice;\n#endif\n#define ONCE\n");
    space.write("once.h", "#pragma once\n");
    space.write("again/again.h", "#include \"../once.h\"\n");
    space.write(
        "case.cu",
        "#include \"empty.h\"\n#if __has_include(\"found.h\")\nint found;\n#endif\n#include \"twice.h\"\n\
         #include \"once.h\"\n#include \"again/again.h\"\n#include \"twice.h\"\n__global__ void k() {}\n",
    );
    crate::warm(&space, "-c case.cu -o out.o -arch=sm_90");
}
