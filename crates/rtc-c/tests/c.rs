//! C programs against the library that was just built: compiled as C99 without a warning, and run on PyPI's NVRTCs.

mod built;

use std::path::Path;
use std::process::Command;

use built::{Built, Nvidia};

/// Compiles a program of `tests/c` and runs it in a folder of its own.
fn run(program: &str, nvidia: &Nvidia) -> String {
    let built = Built::new();
    let exe = built.compile(&format!("tests/c/{program}.c"), &[]);
    built.run(&exe, nvidia, &[])
}

#[test]
fn the_whole_path_works_from_c() {
    for nvidia in Nvidia::all() {
        let said = run("whole_path", &nvidia);
        assert!(
            said.contains(&format!("version: {}\n", nvidia.version)),
            "{said}"
        );
        // The wheel of 13.5 has headers in it, those before 13.3 cannot.
        let headers = if nvidia.version == "13.5" {
            "yes"
        } else {
            "no"
        };
        assert!(said.contains(&format!("headers: {headers}\n")), "{said}");
    }
}

#[test]
fn wrong_arguments_are_errors_that_name_them() {
    run("bad_input", &Nvidia::newest());
}

#[test]
fn threads_share_handles_and_keep_their_own_errors() {
    run("threads", &Nvidia::newest());
}

/// Builds the stand-in for the driver into the folder where the program's libraries are.
fn stand_in(built: &Built) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/stand_in_driver.c");
    let driver = built.folder().join("libcuda.so.1");
    built::succeed(
        Command::new("gcc")
            .args([
                "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
            ])
            .args(["-Wl,-soname,libcuda.so.1", "-o"])
            .args([&driver, &source]),
    );
    std::os::unix::fs::symlink(&driver, built.folder().join("libcuda.so")).expect("a link");
}

#[test]
fn functions_contexts_and_launches_reach_the_driver() {
    let built = Built::new();
    stand_in(&built);
    let exe = built.compile("tests/c/driver.c", &["-l:libcuda.so.1"]);
    built.run(&exe, &Nvidia::newest(), &[]);
}

#[test]
fn the_cost_of_a_hit_can_be_measured() {
    let built = Built::new();
    stand_in(&built);
    let exe = built.compile("examples/hit_cost.c", &["-O2"]);
    let said = built.run(&exe, &Nvidia::newest(), &["3"]);
    assert_eq!(said.lines().count(), 3, "{said}");
}

#[test]
fn headers_stand_alone_in_c_and_in_cpp() {
    let built = Built::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (compiler, header, standard) in [
        ("gcc", "warpcc_rtc.h", "-std=c99"),
        ("gcc", "warpcc_rtc.h", "-std=c17"),
        ("g++", "warpcc_rtc.h", "-std=c++11"),
        ("g++", "warpcc_rtc.hpp", "-std=c++17"),
        ("g++", "warpcc_rtc.hpp", "-std=c++20"),
    ] {
        let language = if compiler == "gcc" { "c" } else { "c++" };
        let source = built.folder().join("one.txt");
        std::fs::write(
            &source,
            format!("#include \"{header}\"\nint main(void) {{ return 0; }}\n"),
        )
        .expect("written");
        built::succeed(
            Command::new(compiler)
                .args([
                    standard,
                    "-Wall",
                    "-Wextra",
                    "-Werror",
                    "-pedantic",
                    "-fsyntax-only",
                ])
                .arg("-I")
                .arg(root.join("include"))
                .args(["-x", language])
                .arg(&source),
        );
    }
}

#[test]
fn the_static_library_does_as_well() {
    let built = Built::new();
    let exe = built.compile_static("tests/c/bad_input.c");
    built.run(&exe, &Nvidia::newest(), &[]);
}
