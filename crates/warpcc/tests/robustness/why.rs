//! Tests what `warpcc why` says of the last build, of a file and of a command.

use crate::reports::text;
use crate::space::{Program, TestSpace};

#[test]
fn why_alone_and_why_of_a_file() {
    let mut space = TestSpace::new("why-last");
    space.set_env("WARPCC_BUILD_ID", "why-last");
    let said = |space: &TestSpace, args: &[&str]| {
        let outcome = space.warpcc_with(args);
        (outcome.code, text(&outcome.stdout), text(&outcome.stderr))
    };
    let (code, _, warned) = said(&space, &["why"]);
    assert_eq!((code, warned.contains("no build is recorded")), (1, true));
    space.write("part.h", "#define VALUE 1\n");
    let kernel = "__global__ void k(int *x) { *x = VALUE; }\n";
    space.write("src/a.cu", &format!("#include \"../part.h\"\n{kernel}"));
    space.write("dated.cu", "const char *day() { return __DATE__; }\n");
    let compile = |file: &str| {
        let line = format!("-arch=sm_90 -c {file} -o out.o");
        let outcome = space.run(&Program::Launcher, &space.words(&line));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    };
    compile("src/a.cu");
    let (_, out, _) = said(&space, &["why", "a.cu"]);
    assert!(
        out.contains("never compiled before") && out.contains("this command hits"),
        "{out}"
    );
    space.write("part.h", "#define VALUE 2\n");
    compile("src/a.cu");
    compile("src/a.cu");
    compile("dated.cu");
    let (code, out, _) = said(&space, &["why"]);
    assert_eq!(code, 0);
    assert!(out.contains("3 of 4 calls not answered"), "{out}");
    for part in [
        "part.h changed",
        "built and not stored: a date macro",
        "keep __DATE__",
    ] {
        assert!(out.contains(part), "{part} is not in\n{out}");
    }
    assert!(
        out.find("date macro") < out.find("part.h"),
        "the newest first: {out}"
    );
    let (_, out, _) = said(&space, &["why", "src/a.cu"]);
    assert!(out.contains("answered from the cache"), "{out}");
    space.write("part.h", "#define VALUE 3\n");
    let (_, out, _) = said(&space, &["why", "src/a.cu"]);
    assert!(out.contains("part.h changed"), "{out}");
    let (code, _, warned) = said(&space, &["why", "b.cu"]);
    assert_eq!(
        (code, warned.contains("no recorded call compiled b.cu")),
        (1, true)
    );
    // A command that fails, one without its source, one whose result is not stored, and one of another compiler.
    space.write("bad.cu", "this is no program\n");
    let nvcc = space.toolkit.nvcc.display().to_string();
    let line = "-arch=sm_90 -c bad.cu -o bad.o";
    assert!(space.run(&Program::Launcher, &space.words(line)).code != 0);
    let words: Vec<&str> = ["why", &nvcc].into_iter().chain(line.split(' ')).collect();
    let (_, out, _) = said(&space, &words);
    assert!(out.contains("failed with exit code"), "{out}");
    space.remove("bad.cu");
    let (_, out, _) = said(&space, &words);
    assert!(out.contains("bad.cu does not exist"), "{out}");
    let nvcc = space.toolkit.nvcc.display().to_string();
    let line = ["why", &nvcc, "-arch=sm_90", "-c", "dated.cu", "-o", "out.o"];
    let (_, out, _) = said(&space, &line);
    assert!(out.contains("not stored: a date macro"), "{out}");
    let (_, out, _) = said(&space, &["why", "g++", "-c", "dated.cu"]);
    assert!(out.contains("is not nvcc"), "{out}");
}
