//! The Rust example: built by cargo with its build script, run twice, and built again after a header was edited.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use warpcc_testkit::Toolkit;
use warpcc_testkit::folders::copy_tree;

/// A command that finds one toolkit's libraries, and nothing of the user's.
fn command(program: &Path, cache: &Path) -> Command {
    let nvcc = Toolkit::newest().nvcc;
    let libraries = nvcc.with_file_name("../lib");
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        let ours = ["WARPCC_", "CUDA_", "CARGO_"];
        if ours.iter().any(|start| name.starts_with(start)) && name != "CARGO_HOME" {
            command.env_remove(&*name);
        }
    }
    command
        .env("NVCC", nvcc)
        .env("WARPCC_NVRTC", &libraries)
        .env("WARPCC_NVJITLINK", &libraries)
        .env("WARPCC_RTC_CACHE", cache);
    command
}

fn said(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{failed}");
    said
}

#[test]
fn the_example_links_once_and_follows_its_headers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().expect("the repository");
    let folder = tempfile::tempdir().expect("a folder");
    let project = folder.path().join("project");
    copy_tree(&root.join("crates/rtc/examples/embed"), &project).expect("copied");
    // The versions that the workspace has; nothing is downloaded.
    std::fs::copy(root.join("Cargo.lock"), project.join("Cargo.lock")).expect("copied");
    let manifest = project.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).expect("Cargo.toml");
    let named = |path: &str| format!("\"{}\"", root.join(path).display());
    let text = text.replace("\"../..\"", &named("crates/rtc"));
    let text = text.replace("\"../../../rtc_build\"", &named("crates/rtc_build"));
    std::fs::write(manifest, text).expect("written");
    // What it depends on is built once for all runs of this test.
    let test = std::env::current_exe().expect("this program");
    let target = test
        .ancestors()
        .nth(3)
        .expect("cargo's folder")
        .join("embed-example");
    let cache = folder.path().join("cache");
    let build = || {
        let cargo = PathBuf::from(env!("CARGO"));
        let mut command = command(&cargo, &cache);
        command.args(["build", "--offline"]).current_dir(&project);
        // A tenth of the size.
        command
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_INCREMENTAL", "0");
        said(
            &command
                .env("CARGO_TARGET_DIR", &target)
                .output()
                .expect("cargo starts"),
        );
    };
    let run = || {
        let program = target.join("debug/warpcc-rtc-embed-example");
        said(&command(&program, &cache).output().expect("it starts"))
    };
    build();
    let first = run();
    assert!(
        first.starts_with("_Z7lengthsIfEvPT_i for sm_90: compiled and linked\n"),
        "{first}"
    );
    let again = run();
    assert!(
        again.starts_with("_Z7lengthsIfEvPT_i for sm_90: found\n"),
        "{again}"
    );
    assert!(again.contains("libnvJitLink is not loaded"), "{again}");
    assert!(again.contains("libnvrtc is not loaded"), "{again}");
    build();
    assert!(run().contains(": found"));
    let header = project.join("kernels/include/geometry/detail/length.cuh");
    let text = std::fs::read_to_string(&header).expect("a header");
    std::fs::write(&header, text.replace("x * x", "1 * x * x")).expect("written");
    build();
    assert!(run().contains("compiled and linked"));
}
