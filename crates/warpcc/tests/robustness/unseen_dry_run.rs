//! Tests dry runs that nobody has seen: words of a real one are changed at random, and the call still succeeds. A user who
//! installs a new toolkit gets nvcc's result, whatever its dry run contains.

use std::process::Command;

use fastrand::Rng;

use crate::space::{Program, TestSpace, Toolkit, make_dir};

const LINE: &str = "-c case.cu -o out.o -arch=sm_90 -MD -MF out.d";

/// The reason of a failing build with a release that is not in the table.
const UNTRIED: &str = "a failing build with a CUDA release that warpcc was not tried with";

/// A release that does not exist, in a dry run of the newest one.
const NEXT_RELEASE: &str = "{ gsub(/__CUDACC_VER_MINOR__=[0-9]+/, \"__CUDACC_VER_MINOR__=99\") }\n";

/// Words that a new release might add.
const WORDS: [&str; 14] = [
    "--simt-only",
    "--new-option",
    "-newopt 3",
    "--new-file=/none/x",
    "--gen_new_file \\\"/none/x\\\"",
    "@words",
    "-O7",
    "9",
    "\\\"$NEW_PATH/x\\\"",
    "\\\\&\\\\& true",
    "| cat",
    "-",
    "\\\"a b\\\"",
    "",
];

/// Lines that a new release might add.
const LINES: [&str; 8] = [
    "#$ -- New Phase --",
    "#$ newtool -a b -o c",
    "#$ mkdir -p x",
    "#$ export A=b",
    "#$ NEW=1",
    "#$ rm -f x",
    "#$ ptxas --new-check",
    "#$",
];

/// A toolkit whose nvcc edits its dry run with `edit.awk` of the working directory.
fn edited(space: &mut TestSpace) -> Toolkit {
    let real = space.toolkit.clone();
    let folder = space.beside("edited");
    make_dir(&folder.join("bin"));
    let nvcc = folder.join("bin/nvcc");
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *dryrun*) ;; *) exec {0} \"$@\" ;; esac\n\
         text=$({0} \"$@\" 2>&1 >/dev/null) || exec {0} \"$@\"\n\
         printf '%s\\n' \"$text\" | awk -f {1}/edit.awk >&2\n",
        real.nvcc.display(),
        space.work().display()
    );
    space.script("nvcc", &script);
    std::fs::rename(space.work().join("nvcc"), &nvcc).expect("move");
    space.toolkit = Toolkit {
        name: real.name,
        nvcc,
    };
    real
}

/// The words of each line of the dry run.
fn dry_run(space: &TestSpace, nvcc: &Toolkit) -> Vec<usize> {
    let mut command = Command::new(&nvcc.nvcc);
    command.current_dir(space.work()).arg("--dryrun");
    let output = command.args(LINE.split(' ')).output().expect("nvcc");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines().map(|line| line.split(' ').count()).collect()
}

/// An edit of one place.
fn edit(lines: &[usize], random: &mut Rng) -> String {
    let line = random.usize(0..lines.len());
    let word = random.usize(2..=lines[line].max(2));
    let new = random.choice(WORDS).expect("words");
    let change = match random.u8(0..7) {
        0 => format!("${word} = \"\""),
        1 => format!("${word} = \"{new}\""),
        2 => format!("sub(/[a-z]/, \"X\", ${word})"),
        3 => format!("print \"{}\"", random.choice(LINES).expect("lines")),
        4 => "print".to_owned(),
        5 => format!("$0 = substr($0, 1, {word} * 9)"),
        _ => format!("${word} = ${word} \" {new}\""),
    };
    format!(
        "NR == {} {{ {change} }}\n{NEXT_RELEASE}{{ print }}\n",
        line + 1
    )
}

fn with_kernel(name: &str) -> TestSpace {
    let space = TestSpace::new(name);
    space.write("case.cu", "__global__ void k(int *x) { *x = 1; }\n");
    space
}

#[test]
fn a_changed_dry_run_is_never_an_error() {
    let mut space = with_kernel("unseen");
    let real = edited(&mut space);
    let lines = dry_run(&space, &real);
    assert!(lines.len() > 10, "{lines:?}");
    let mut fallbacks = 0;
    for seed in 0..24 {
        let edit = edit(&lines, &mut Rng::with_seed(seed));
        space.clear_cache();
        for output in ["out.o", "out.d"] {
            let _ = std::fs::remove_file(space.work().join(output));
        }
        space.write("edit.awk", &edit);
        let (got, new, stats) = space.observe(&Program::Launcher, &space.words(LINE));
        let said = format!("seed {seed}:\n{edit}{}", got.text());
        assert_eq!((got.code, got.text().as_str()), (0, ""), "{said}");
        let files: Vec<&String> = new.entries.keys().collect();
        assert_eq!(files, ["out.d", "out.o"], "{said}");
        fallbacks += stats.count("fallbacks");
    }
    assert!((1..24).contains(&fallbacks), "{fallbacks} of 24 fell back");
    space.demand_no_leftovers("changed dry runs");
}

#[test]
fn a_tool_that_rejects_its_command_is_for_nvcc_to_run() {
    let mut space = with_kernel("unseen-option");
    edited(&mut space);
    space.write(
        "edit.awk",
        "/^#\\$ ptxas / { $3 = $3 \" --new\" }\n{ print }\n",
    );
    let (got, _, stats) = space.observe(&Program::Launcher, &space.words(LINE));
    assert_eq!((got.code, got.text().as_str()), (0, ""));
    let reason = "a failing step names no place in a source";
    assert_eq!(stats.reasons.get(reason), Some(&1), "{:?}", stats.reasons);
}

#[test]
fn an_error_in_a_source_is_built_twice_only_with_an_untried_release() {
    let mut space = with_kernel("unseen-error");
    space.write("case.cu", "__global__ void k(int *x) { *x = nothing; }\n");
    edited(&mut space);
    for (edit, asked) in [("", None), (NEXT_RELEASE, Some(&1))] {
        space.clear_cache();
        space.write("edit.awk", &format!("{edit}{{ print }}\n"));
        let want = space.run(&space.reference(), &space.words(LINE));
        let (got, _, stats) = space.observe(&Program::Launcher, &space.words(LINE));
        assert_eq!((want.code, got.code), (2, 2));
        assert_eq!(
            space.stream_rule().differences(&want, &got),
            Vec::<String>::new()
        );
        assert_eq!(stats.reasons.get(UNTRIED), asked, "{:?}", stats.reasons);
    }
}
