//! Tests what warpcc says about wrong arguments, missing files and wrong settings: the message, and the exit code.

use std::fmt::Write as _;
use std::fs;

use crate::space::TestSpace;

/// Command lines of warpcc, with the variable that each one sets.
const WRONG: &[(&str, &str)] = &[
    ("", "nosuch -c x.cu"),
    ("", "run"),
    ("", "run -j 0 -- -c x.cu"),
    ("", "run --jobs many -- -c x.cu"),
    ("", "run --graph g.bmp -- -c case.cu"),
    ("", "run sh -c true"),
    ("", "explain"),
    ("", "explain sh -c true"),
    ("", "explain nvcc"),
    ("", "explain nvcc -c nosuch.cu"),
    ("", "stats --jsn"),
    ("", "fatbin list nosuch.so"),
    ("", "fatbin list text.txt"),
    ("", "fatbin list folder"),
    ("", "fatbin size nosuch.so"),
    ("", "fatbin extract nosuch.so"),
    ("", "fatbin thin text.txt -o y"),
    ("", "fatbin thin --gpu foo text.txt -o y"),
    ("", "rtc warm nosuch"),
    ("", "doctor --project nosuch"),
    ("", "shim /proc/x"),
    ("", "setup --ci travis"),
    ("", "remote ping"),
    ("WARPCC_CONFIG=/nosuch.toml", "config"),
    ("WARPCC_CONFIG=c.toml", "config"),
    ("WARPCC_CONFIG=remote.toml", "config"),
    ("WARPCC_CONFIG=table.toml", "stats"),
    ("WARPCC_DIR=/proc/warpcc", "stats"),
    ("WARPCC_DIR=/proc/warpcc", "why"),
    ("WARPCC_DIR=/dev/null/warpcc", "report"),
    ("WARPCC_JOBS=0", "config"),
    ("WARPCC_MAX_SIZE=10Q", "config"),
    ("WARPCC_DIR=relative", "stats"),
    ("WARPCC_BASE_DIR=relative", "config"),
    ("WARPCC_STALL_TIMEOUT=soon", "config"),
    ("WARPCC_REMOTE=ftp://x", "remote ping"),
    ("WARPCC_REMOTE=s3://", "remote ping"),
];

#[test]
fn each_has_a_message() {
    let mut space = TestSpace::new("wrong-use");
    space.write("case.cu", "int main() { return 0; }\n");
    space.write("text.txt", "text\n");
    space.write("c.toml", "maxsize = \"5G\"\n");
    space.write(
        "remote.toml",
        "[remote]\nlayers = [\"http://h\"]\ntimout = 2\n",
    );
    space.write("table.toml", "jobs = 2\n[cache]\nmaxsize = \"5G\"\n");
    fs::create_dir(space.work().join("folder")).expect("a folder");
    let nvcc = space.toolkit.nvcc.display().to_string();
    space.set_env("WARPCC_NVCC", &nvcc);
    let mut all = String::new();
    for (variable, line) in WRONG {
        let set = variable.split_once('=');
        if let Some((name, value)) = set {
            space.set_env(name, value);
        }
        let outcome = space.warpcc_with(&line.split_whitespace().collect::<Vec<_>>());
        if let Some((name, _)) = set {
            space.unset_env(name);
        }
        let said = format!("{}{}", outcome.stdout_text(), outcome.stderr_text());
        let said = said.replace(&space.work().display().to_string(), "FOLDER");
        let first: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
        let shown = first
            .iter()
            .take_while(|line| !line.starts_with("For more"));
        _ = writeln!(all, "$ {variable} warpcc {line}");
        for line in shown {
            _ = writeln!(all, "{}", line.replace("/usr/bin/", "/bin/"));
        }
        _ = writeln!(all, "[{}]\n", outcome.code);
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_log_that_cannot_be_written_is_found_by_doctor() {
    let mut space = TestSpace::new("wrong-log");
    space.set_env("WARPCC_LOG", "/nosuch/log");
    let said = space.warpcc_with(&["doctor"]).stdout_text();
    assert!(said.contains("the log cannot be written"), "{said}");
    assert!(said.contains("/nosuch/log: No such file"), "{said}");
}

#[test]
fn a_source_that_does_not_exist_is_a_failure_and_no_bypass() {
    let space = crate::space("wrong-source");
    let build = space.agree("-c nosuch.cu -o out.o");
    assert_eq!(build.stats.count("fallbacks"), 0, "{:?}", build.stats);
    assert_eq!(build.stats.count("failed"), 1, "{:?}", build.stats);
}
