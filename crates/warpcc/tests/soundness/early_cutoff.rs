//! `early_cutoff`: cicc in two halves. After an edit of host code the second one does not run, and after any other edit that
//! can change the PTX it does, also where the device source that cicc prints (`.gpu`) stays the same.

use crate::space::{Build, TestSpace, Toolkit, small};
use crate::{ONE, TWO};

/// Device code, and host code behind it.
const SOURCE: &str = r#"struct Part { int at[8]; };
static __device__ int part = 3;
namespace { __global__ void store(int *p) { *p = part; } }
__device__ double odd[2] = {NAN_OF, 1};
ABI
__device__ __noinline__ int twice(int x) { return x * 2; }
__global__ void BOUNDS take(const GRID Part s, int *p, int n) {
    for (int i = 0; i < n; i++) {
        if (p[i] > 3) LIKELY { p[i] = 1; } else { p[i + 1] = 2; asm volatile("bar.sync 0;"); }
    }
    p[0] = s.at[n] + twice(n);
}
int host(int *p) { store<<<1, 1>>>(p); return 100; }
"#;

/// What stands in the source at first.
const FIRST: [(&str, &str); 5] = [
    ("NAN_OF", "__builtin_nan(\"\")"),
    ("ABI", ""),
    ("BOUNDS", "__maxnreg__(32)"),
    ("GRID", ""),
    ("LIKELY", "[[likely]]"),
];

fn source(change: Option<(&str, &str)>) -> String {
    let mut text = SOURCE.to_owned();
    for (word, first) in FIRST {
        let chosen = change.filter(|(of, _)| *of == word).map_or(first, |c| c.1);
        text = text.replace(word, chosen);
    }
    text
}

fn space(name: &str, toolkit: Toolkit) -> TestSpace {
    let mut space = TestSpace::with_toolkit(name, small(toolkit));
    space.set_env("WARPCC_EARLY_CUTOFF", "1");
    space
}

/// The source with its new text, compared with nvcc.
#[track_caller]
fn edit(space: &TestSpace, text: &str, line: &str) -> Build {
    space.write("case.cu", text);
    space.set_old("case.cu");
    let built = space.agree(line);
    built.demand_no_direct_hit().demand_no_fallback();
    built
}

#[test]
fn host_edits_make_no_ptx() {
    for toolkit in Toolkit::chosen() {
        let space = space("cutoff-host", toolkit);
        let built = edit(&space, &source(None), TWO);
        assert_eq!(built.stats.missed("nvvm"), 2, "{:?}", built.stats);
        for (from, to) in [
            (
                "return 100",
                "auto f = [](int a) { return a + 7; }; return f(100)",
            ),
            (
                "int host",
                "static int on_host(int x) { return x; } int host",
            ),
            ("100; }\n", "100; }\nint more(int x) { return x * 2; }\n"),
        ] {
            let built = edit(&space, &source(None).replace(from, to), TWO);
            assert_eq!(built.stats.hit("nvvm"), 2, "{to}: {:?}", built.stats);
            assert_eq!(built.stats.missed("cicc"), 2, "{to}: {:?}", built.stats);
            assert_eq!(built.stats.missed("ptxas"), 0, "{to}: {:?}", built.stats);
        }
    }
}

#[test]
fn a_comment_line_runs_neither_half() {
    let space = space("cutoff-comment", Toolkit::newest());
    edit(&space, &source(None), TWO);
    let built = edit(&space, &format!("// A comment.\n{}", source(None)), TWO);
    built.demand_hits_of(&["cudafe++", "cicc", "nvvm", "ptxas"]);
}

#[test]
fn what_the_device_text_does_not_show_counts() {
    for toolkit in Toolkit::chosen() {
        let space = space("cutoff-hidden", toolkit);
        let line = format!("{ONE} -std=c++20");
        edit(&space, &source(None), &line);
        for change in [
            ("BOUNDS", "__maxnreg__(64)"),
            ("GRID", "__grid_constant__"),
            ("LIKELY", "[[unlikely]]"),
            ("NAN_OF", "-__builtin_nan(\"\")"),
            ("ABI", "#pragma nv_abi preserve_n_data(10)"),
        ] {
            let built = edit(&space, &source(Some(change)), &line);
            assert_eq!(
                built.stats.missed("nvvm"),
                1,
                "{change:?}: {:?}",
                built.stats
            );
        }
    }
}

#[test]
fn a_wrong_source_is_reported_as_by_nvcc() {
    let space = space("cutoff-wrong", Toolkit::newest());
    edit(&space, &source(None), ONE);
    for (from, to) in [("return 100", "return unknown"), ("*p = part", "*p = gone")] {
        let built = edit(&space, &source(None).replace(from, to), ONE);
        assert_ne!(built.outcome.code, 0);
    }
    let warned = source(None).replace("*p = part", "int unused; *p = part");
    edit(&space, &warned, ONE);
    // On another line: the message names that one.
    edit(&space, &format!("\n\n{warned}"), ONE);
}

#[test]
fn options_that_are_not_known_keep_cicc_whole() {
    let space = space("cutoff-options", Toolkit::newest());
    for option in ["-lineinfo", "-G", "-Xcicc -O1", "-rdc=true -dlto"] {
        let built = edit(&space, &source(None), &format!("{ONE} {option}"));
        let halves = built.stats.missed("nvvm") + built.stats.hit("nvvm");
        assert_eq!(halves, 0, "{option}: {:?}", built.stats);
    }
}
