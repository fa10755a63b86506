//! Tests what `warpcc doctor` finds: in a broken setup, and in the calls of a build.

use crate::reports::{FIRST, text};
use crate::space::{Program, TestSpace};

/// The finding whose sentence has this in it.
fn finding<'a>(said: &'a serde_json::Value, part: &str) -> &'a serde_json::Value {
    said["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .find(|one| one["what"].as_str().is_some_and(|what| what.contains(part)))
        .unwrap_or_else(|| panic!("nothing about {part:?} in {said:#}"))
}

#[test]
fn a_broken_setup_is_seen_by_the_doctor() {
    let mut space = TestSpace::new("doctor");
    // A fake ccache that is only a name, first in PATH as g++.
    let (real, links) = (space.beside("real"), space.beside("links"));
    for folder in [&real, &links] {
        crate::space::make_dir(folder);
    }
    std::fs::copy("/bin/true", real.join("ccache")).expect("copying a program");
    std::os::unix::fs::symlink(real.join("ccache"), links.join("g++")).expect("linking");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{{toolkit}}/bin:{path}", links.display());
    space.set_env("PATH", &path);
    space.set_env(
        "WARPCC_RUNTIME_DIR",
        &space.beside("board").display().to_string(),
    );
    space.set_env("NVCC_APPEND_FLAGS", "-time");
    space.set_env("MAKEFLAGS", "-j4 --jobserver-auth=fifo:/none/of/that");
    let file = space.beside("a-file");
    std::fs::write(&file, "not a folder").expect("the file");
    space.set_env("WARPCC_DIR", &file.display().to_string());

    let outcome = space.warpcc_with(&["doctor", "--json"]);
    assert_eq!(outcome.code, 2, "{}", outcome.stderr_text());
    let said = space.json(&["doctor", "--json"]);
    for (part, severity) in [
        ("ccache is in PATH under the name of g++", "note"),
        ("is not a folder", "error"),
        ("NVCC_APPEND_FLAGS has -time", "warning"),
        ("the jobserver of MAKEFLAGS cannot be used", "warning"),
    ] {
        let found = finding(&said, part);
        assert_eq!(found["severity"], severity, "{found:#}");
        assert!(
            found["fix"].as_str().is_some_and(|fix| !fix.is_empty()),
            "{found:#}"
        );
    }
    let nvcc = format!("nvcc {}, which is tested", space.toolkit.name);
    assert_eq!(finding(&said, &nvcc)["severity"], "fine");
    assert_eq!(
        finding(&said, "the watch library loads")["severity"],
        "fine"
    );
    space.demand_no_leftovers("the doctor");

    // A setting that cannot be read is a finding, too, and does not end the command.
    space.set_env("WARPCC_JOBS", "many");
    let outcome = space.warpcc_with(&["doctor"]);
    let said = text(&outcome.stdout);
    assert_eq!(outcome.code, 2, "{}", outcome.stderr_text());
    assert!(
        said.contains("WARPCC_JOBS") && said.contains("fix: "),
        "{said}"
    );
}

#[test]
fn a_flag_that_differs_in_every_call_is_seen_by_the_doctor() {
    let mut space = TestSpace::new("doctor-past");
    let path = std::env::var("PATH").unwrap_or_default();
    space.set_env("PATH", &format!("{{toolkit}}/bin:{path}"));
    space.set_env("WARPCC_BUILD_ID", "stamped");
    space.write("first.cu", FIRST);
    for stamp in 0..4 {
        let line = format!("-arch=sm_90 -DBUILD={stamp} -c first.cu -o first.o");
        let outcome = space.run(&Program::Launcher, &space.words(&line));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    }
    let said = space.json(&["doctor", "--json"]);
    let found = finding(&said, "3 of 4 calls missed because of option");
    assert_eq!(found["severity"], "warning");
    assert!(
        found["what"]
            .as_str()
            .is_some_and(|what| what.contains("BUILD=")),
        "{found:#}"
    );
    assert!(
        found["fix"]
            .as_str()
            .is_some_and(|fix| fix.contains("build number")),
        "{found:#}"
    );
}
