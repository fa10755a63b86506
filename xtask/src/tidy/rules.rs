//! Rules about a file's name, size and text.

use super::complaint::{Complaint, Source};

const LONGEST: usize = 500;
const LARGEST: usize = 1 << 20;
const LONG_REASON: &str = "// tidy: long because ";
const TELL_NOTHING: &[&str] = &[
    "util", "utils", "helper", "helpers", "common", "misc", "manager", "imp",
];
/// Names of functions that say nothing of what is done (docs/design/names.md).
const NO_VERBS: &[&str] = &["look", "tell", "told", "held"];

/// Checks that every Rust file begins with a sentence about its purpose.
pub fn opens_with_a_sentence(source: &Source) -> Vec<Complaint> {
    let opens = source
        .text
        .lines()
        .take(3)
        .any(|line| line.starts_with("//! "));
    complain(is_rust(source.path) && !opens, || {
        "open the file with a `//!` sentence: what it does and, where that helps, what it does \
         not know"
            .to_owned()
    })
}

/// Checks that a file is short, or gives the reason for its length.
pub fn is_not_too_long(source: &Source) -> Vec<Complaint> {
    if !is_rust(source.path) || is_test_path(source.path) {
        return Vec::new();
    }
    let lines = source
        .text
        .lines()
        .count()
        .min(first_test_line(source.text));
    complain(
        lines > LONGEST && !source.text.contains(LONG_REASON),
        || {
            format!(
                "{lines} lines outside tests: split the file by what its parts answer (aim below 400), \
             or say why it is one piece with a line `{LONG_REASON}…`"
            )
        },
    )
}

/// Checks that a module's name tells its contents.
pub fn has_a_telling_name(source: &Source) -> Vec<Complaint> {
    let Some(module) = source.path.strip_suffix(".rs") else {
        return Vec::new();
    };
    let vague = module.split('/').find(|part| TELL_NOTHING.contains(part));
    let message = |part| {
        format!("`{part}` does not say what is inside: name the file after the question it answers")
    };
    vague
        .map(|part| Complaint::whole(message(part)))
        .into_iter()
        .collect()
}

/// Checks that no function has a name that says nothing of what it does.
pub fn functions_have_verbs(source: &Source) -> Vec<Complaint> {
    if !is_rust(source.path) {
        return Vec::new();
    }
    let name_of = |line: &str| {
        let (before, rest) = line.split_once("fn ")?;
        let is_definition = !before.ends_with(is_word) && !before.contains('"');
        let name = rest.split(|c: char| !is_word(c)).next()?;
        NO_VERBS
            .iter()
            .copied()
            .find(|no| is_definition && *no == name)
    };
    code_lines(source.text)
        .filter_map(|(number, line)| {
            let name = name_of(line)?;
            let message =
                format!("`{name}` does not say what is done: name the function by a verb");
            Some(Complaint::at(number, message))
        })
        .collect()
}

/// Checks that `warpcc-plan` is a function of its arguments, and so is `warpcc-path-map` but for one file.
pub fn plans_and_maps_are_pure(source: &Source) -> Vec<Complaint> {
    let may_look = source.path == "crates/path_map/src/discover.rs";
    let pure = ["plan", "path_map"];
    let crate_name = pure
        .into_iter()
        .find(|name| source.path.starts_with(&format!("crates/{name}/src/")));
    let Some(crate_name) = crate_name.filter(|_| is_rust(source.path) && !may_look) else {
        return Vec::new();
    };
    let impure = ["fs", "process", "env", "time", "net"];
    code_lines(source.text)
        .filter_map(|(number, line)| {
            let module = impure.iter().find(|module| names_std_module(line, module))?;
            Some(Complaint::at(
                number,
                format!(
                    "{crate_name} touches no files, processes, environment, clock or network, so it \
                     can be fuzzed and tested without a toolkit: take what std::{module} would give \
                     as an argument or a closure, and let the caller use std::{module}"
                ),
            ))
        })
        .collect()
}

/// Checks that environment variables are read only where the configuration is made.
pub fn environment_has_one_reader(source: &Source) -> Vec<Complaint> {
    let path = source.path;
    let may = path.starts_with("crates/warpcc/src/config")
        || path == "crates/warpcc/src/main.rs"
        || path.starts_with("xtask/")
        || path.starts_with("fuzz/")
        || path.starts_with("crates/testkit/")
        // A library in other programs, without a configuration of ours.
        || path == "crates/rtc/src/environment.rs"
        // Runs in build scripts of others.
        || path == "crates/rtc_build/src/build_script.rs"
        || path.ends_with("build.rs")
        || is_test_path(path);
    if may || !is_rust(path) {
        return Vec::new();
    }
    let tests = first_test_line(source.text);
    code_lines(source.text)
        .filter(|(number, line)| *number < tests && reads_environment(line))
        .map(|(number, _)| {
            Complaint::at(
                number,
                "read the variable in crates/warpcc/src/config/environment.rs and pass the value here: what \
                 can change a result must be seen in one place",
            )
        })
        .collect()
}

/// Checks that files are small, so that the repository stays quick to clone.
pub fn is_small(source: &Source) -> Vec<Complaint> {
    complain(source.bytes.len() > LARGEST, || {
        format!(
            "{} KiB is more than {} KiB: make the file in the test that needs it, or cut it down \
             to the part that matters",
            source.bytes.len() >> 10,
            LARGEST >> 10
        )
    })
}

/// Checks that no file of NVIDIA's is in the repository: their licence does not let us distribute it.
pub fn is_ours(source: &Source) -> Vec<Complaint> {
    let magic: [(&[u8], &str); 3] = [
        (b"\x7fELF", "an ELF file"),
        (b"\x50\xed\x55\xba", "a fat binary"),
        (b"!<arch>\n", "a library"),
    ];
    let binary = magic
        .into_iter()
        .find(|(magic, _)| source.bytes.starts_with(magic));
    if let Some((_, what)) = binary {
        return vec![Complaint::whole(format!(
            "this is {what}, and compiled files may hold NVIDIA's code: build it in the test that \
             needs it, with the toolkit of `cargo xtask toolkit`"
        ))];
    }
    let by_whom = "NVIDIA";
    let theirs = |line: &str| line.contains("Copyright") && line.contains(by_whom);
    let found = source.text.lines().position(theirs);
    let message = "this carries NVIDIA's copyright: read it from the toolkit where it is used, or \
                   write a case of our own";
    found
        .map(|index| Complaint::at(index + 1, message))
        .into_iter()
        .collect()
}

fn complain(when: bool, message: impl FnOnce() -> String) -> Vec<Complaint> {
    if when {
        vec![Complaint::whole(message())]
    } else {
        Vec::new()
    }
}

pub fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

pub fn is_test_path(path: &str) -> bool {
    path.split('/')
        .any(|part| part == "tests" || part == "tests.rs" || part == "benches")
}

/// The line on which the file's unit tests begin; they stand at its end.
pub fn first_test_line(text: &str) -> usize {
    text.lines()
        .position(|line| line.starts_with("#[cfg(test)]"))
        .map_or(usize::MAX, |index| index + 1)
}

/// The lines that are not comments, numbered from 1.
pub fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line));
    numbered.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// `std::fs`, or `fs` inside `std::{…}`, on this line.
fn names_std_module(line: &str, module: &str) -> bool {
    let parts = line.split("std::").skip(1);
    parts.into_iter().any(|rest| match rest.strip_prefix('{') {
        Some(group) => group
            .split(|c: char| !is_word(c))
            .any(|word| word == module),
        None => rest.split(|c: char| !is_word(c)).next() == Some(module),
    })
}

fn reads_environment(line: &str) -> bool {
    line.match_indices("env::var")
        .any(|(at, _)| !line[..at].ends_with(is_word))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source<'a>(path: &'a str, text: &'a str) -> Source<'a> {
        Source {
            path,
            bytes: text.as_bytes(),
            text,
        }
    }

    fn lines(complaints: &[Complaint]) -> Vec<usize> {
        complaints.iter().map(|complaint| complaint.line).collect()
    }

    #[test]
    fn a_rust_file_opens_with_a_sentence() {
        let rule = opens_with_a_sentence;
        assert_eq!(rule(&source("a.rs", "//! What it is for.\n")), []);
        assert_eq!(
            rule(&source("a.rs", "#!/bin/x\n\n//! What it is for.\n")),
            []
        );
        assert_eq!(rule(&source("a.cu", "int x;\n")), []);
        assert_eq!(lines(&rule(&source("a.rs", "// Not a module doc.\n"))), [0]);
        assert_eq!(lines(&rule(&source("a.rs", ""))), [0]);
    }

    #[test]
    fn a_long_file_has_a_reason_or_is_tests() {
        let long = "//! x\n".repeat(LONGEST + 1);
        let tests = format!("//! x\n#[cfg(test)]\nmod tests {{\n{long}}}\n");
        assert_eq!(
            lines(&is_not_too_long(&source("crates/a/src/b.rs", &long))),
            [0]
        );
        assert_eq!(is_not_too_long(&source("crates/a/tests/b.rs", &long)), []);
        assert_eq!(is_not_too_long(&source("crates/a/src/b.rs", &tests)), []);
        let reasoned = format!("{long}{LONG_REASON}it is one table\n");
        assert_eq!(is_not_too_long(&source("crates/a/src/b.rs", &reasoned)), []);
    }

    #[test]
    fn names_tell() {
        for bad in [
            "crates/a/src/util.rs",
            "crates/a/src/helpers/x.rs",
            "xtask/src/imp.rs",
        ] {
            assert_eq!(lines(&has_a_telling_name(&source(bad, ""))), [0], "{bad}");
        }
        for good in ["crates/a/src/utilisation.rs", "docs/common.md"] {
            assert_eq!(has_a_telling_name(&source(good, "")), [], "{good}");
        }
    }

    #[test]
    fn a_function_is_named_by_a_verb() {
        let text = "fn look(x: u8) {}\n    pub fn looks() {}\n    pub(crate) async fn tell<T>() {}\n\
                    // fn look()\nlet a = \"fn held()\";\nfn look_up() {}\n    fn told(&self);\n";
        let found = functions_have_verbs(&source("crates/a/src/b.rs", text));
        assert_eq!(lines(&found), [1, 3, 7]);
        assert_eq!(functions_have_verbs(&source("docs/a.md", text)), []);
    }

    #[test]
    fn plan_and_path_map_name_no_impure_module() {
        let text = "//! Unlike std::fs.\nuse std::fs;\nuse std::{fmt, env};\nuse std::fmt;\n\
                    use std::fsx;\nlet t = std::time::now();\n";
        assert_eq!(
            lines(&plans_and_maps_are_pure(&source(
                "crates/plan/src/a.rs",
                text
            ))),
            [2, 3, 6]
        );
        for may in [
            "crates/plan/tests/a.rs",
            "crates/cache/src/a.rs",
            "crates/path_map/src/discover.rs",
        ] {
            assert_eq!(plans_and_maps_are_pure(&source(may, text)), [], "{may}");
        }
        let map = source("crates/path_map/src/map.rs", text);
        assert_eq!(lines(&plans_and_maps_are_pure(&map)), [2, 3, 6]);
    }

    #[test]
    fn only_config_reads_the_environment() {
        let text = "let a = std::env::var(\"A\");\nlet b = env::var_os(\"B\");\n\
                    let c = my_env::var(1);\nlet d = env!(\"X\");\n// env::var\n\
                    #[cfg(test)]\nlet e = env::vars();\n";
        let rule = environment_has_one_reader;
        assert_eq!(
            lines(&rule(&source("crates/engine/src/a.rs", text))),
            [1, 2]
        );
        for may in [
            "crates/warpcc/src/config.rs",
            "crates/warpcc/src/config/environment.rs",
            "crates/warpcc/src/main.rs",
            "xtask/src/a.rs",
            "crates/rtc/build.rs",
            "crates/rtc/src/environment.rs",
            "crates/warpcc/tests/a.rs",
        ] {
            assert_eq!(rule(&source(may, text)), [], "{may}");
        }
    }

    #[test]
    fn large_files_stay_out() {
        let large = "x".repeat(LARGEST + 1);
        assert_eq!(lines(&is_small(&source("a.txt", &large))), [0]);
        assert_eq!(is_small(&source("a.txt", &large[..LARGEST])), []);
    }

    #[test]
    fn files_of_nvidia_stay_out() {
        for magic in [&b"\x7fELF..."[..], b"\x50\xed\x55\xba...", b"!<arch>\n..."] {
            let found = is_ours(&Source {
                path: "a.bin",
                bytes: magic,
                text: "",
            });
            assert_eq!(lines(&found), [0], "{magic:?}");
        }
        let header = ["/* x", concat!(" * Copyright 2020 NVI", "DIA CORPORATION")].join("\n");
        assert_eq!(lines(&is_ours(&source("a.h", &header))), [2]);
        assert_eq!(is_ours(&source("a.md", "needs NVIDIA's nvcc")), []);
    }
}
