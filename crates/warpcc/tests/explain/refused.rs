//! Tests commands that cannot be explained: a clear sentence, exit code 2, and no files.

use super::space::TestSpace;
use super::{KERNEL, explain};

#[test]
fn each_reason_is_a_sentence() {
    let space = TestSpace::whole("explain-refused");
    space.write("case.cu", KERNEL);
    space.write("bad.cu", "int main( {\n");
    for (flags, args, expected) in [
        ("", "--version", "nothing to explain"),
        (
            "",
            "-E case.cu",
            "nothing to explain: nvcc does this alone (-E)",
        ),
        (
            "",
            "-c case.cu -o case.o --no-such",
            "unknown option: --no-such",
        ),
        ("", "-c case.cu -o case.o -arch=sm_1", "nvcc refuses it"),
        ("", "-c case.cu -o case.o -DX=$HOME", "shell syntax"),
        ("", "-t 2 -c bad.cu -o bad.o", "leave -t out"),
        (
            "--html nowhere/x.html",
            "-c case.cu -o case.o",
            "cannot write nowhere/x.html",
        ),
    ] {
        let outcome = explain(&space, flags, args);
        let said = outcome.stderr_text();
        assert_eq!(outcome.code, 2, "{args}: {said}");
        let ours = said.lines().find(|line| line.starts_with("warpcc: "));
        assert!(
            ours.is_some_and(|line| line.contains(expected)),
            "{args}: {said}"
        );
        assert_eq!(outcome.stdout, b"", "{args}");
        assert!(!space.exists("case.o"), "{args}");
    }
    let alone = space.warpcc_with(&["explain"]);
    assert_eq!(alone.code, 2);
    assert!(alone.stderr_text().contains("required"));
}
