//! Tests diagnostics on a terminal: they have the colours, links and widths of nvcc's tools.
//!
//! The terminal is the one that script(1) makes.

use crate::space::{Outcome, Program, TestSpace};

/// A source with warnings of the preprocessor, cudafe++ and the host compiler, long enough to be cut at a width.
const TALKATIVE: &str = "#warning from the preprocessor\n\
    __global__ void k(float *x) { int unused; x[threadIdx.x] *= 2; }\n\
    static int f(int a) { return __builtin_printf(\"%s and some more text, so that this line is wider than sixty columns\", a); }\n\
    int main() { k<<<1, 32>>>(nullptr); return f(1); }\n";

const ARGS: &str = "-arch=sm_90 -Xcompiler -Wall -c case.cu -o out.o";

fn talkative(name: &str) -> TestSpace {
    let mut space = TestSpace::new(name);
    space.write("case.cu", TALKATIVE);
    space.set_env("TERM", "xterm-256color");
    space
}

/// Runs a command line on a terminal `columns` wide. Gives the exit code and the terminal's text.
fn on_terminal(space: &TestSpace, columns: u16, line: &str) -> Shown {
    let line = format!("stty cols {columns}; exec {line}");
    let first = ["-qefc", &line, "/dev/null"].map(str::to_owned);
    let Outcome { code, stdout, .. } =
        space.run(&Program::Other("script".into(), first.to_vec()), &[]);
    (code, String::from_utf8_lossy(&stdout).into_owned())
}

type Shown = (i32, String);

fn nvcc(space: &TestSpace, columns: u16) -> Shown {
    on_terminal(
        space,
        columns,
        &format!("{} {ARGS}", space.toolkit.nvcc.display()),
    )
}

/// The screen after a call of warpcc, and whether the call was a direct hit.
fn warpcc(space: &TestSpace, columns: u16) -> (Shown, bool) {
    let before = space.stats().count("direct_hits");
    let launcher = TestSpace::warpcc();
    let line = format!(
        "{} {} {ARGS}",
        launcher.display(),
        space.toolkit.nvcc.display()
    );
    let outcome = on_terminal(space, columns, &line);
    (outcome, space.stats().count("direct_hits") > before)
}

#[test]
fn a_terminal_shows_what_nvcc_shows_built_and_hit() {
    let space = talkative("terminal");
    let want = nvcc(&space, 100);
    assert!(
        want.1.contains("\u{1b}[01;35m"),
        "nvcc shows no colours: {want:?}"
    );
    for hits in [false, true] {
        let (got, hit) = warpcc(&space, 100);
        assert_eq!(got, want);
        assert_eq!(hit, hits);
    }
}

#[test]
fn another_width_and_a_pipe_have_diagnostics_of_their_own() {
    let space = talkative("terminal-width");
    let wide = nvcc(&space, 200);
    let narrow = nvcc(&space, 60);
    assert_ne!(
        wide, narrow,
        "the width shows nowhere: the test tests nothing"
    );
    assert_eq!(warpcc(&space, 200), (wide.clone(), false));
    assert_eq!(warpcc(&space, 60), (narrow, false));
    let args = space.words(ARGS);
    let piped = space.run(&Program::Nvcc, &args);
    for _ in 0..2 {
        assert_eq!(space.run(&Program::Launcher, &args), piped);
    }
    assert_eq!(warpcc(&space, 200), (wide, true));
}

#[test]
fn results_without_messages_are_shared_with_a_pipe() {
    let space = talkative("terminal-silent");
    space.write("case.cu", "__global__ void k(float *x) { *x = 1; }\n");
    assert_eq!(space.run(&Program::Launcher, &space.words(ARGS)).code, 0);
    let (outcome, hit) = warpcc(&space, 80);
    assert_eq!((outcome.0, hit), (0, true));
    space.clear_cache();
    assert_eq!(warpcc(&space, 80).0.0, 0);
    let before = space.stats().count("direct_hits");
    assert_eq!(space.run(&Program::Launcher, &space.words(ARGS)).code, 0);
    assert_eq!(space.stats().count("direct_hits"), before + 1);
}

/// bash opens the terminal for reading and writing when it starts.
#[test]
fn a_script_as_host_compiler_hits_on_a_terminal() {
    let space = talkative("terminal-script");
    for compiler in ["gcc", "g++"] {
        let script = "#!/bin/bash\nexec \"${0##*/}\" \"$@\"\n";
        space.script(&format!("bin/{compiler}"), script);
    }
    let call = |program: &str| {
        let before = space.stats().count("direct_hits");
        let shown = on_terminal(&space, 80, &format!("{program} {ARGS} -ccbin bin"));
        (shown, space.stats().count("direct_hits") > before)
    };
    let nvcc = space.toolkit.nvcc.display();
    let want = call(&nvcc.to_string()).0;
    let launcher = format!("{} {nvcc}", TestSpace::warpcc().display());
    assert_eq!(call(&launcher), (want.clone(), false));
    assert_eq!(call(&launcher), (want, true));
}
