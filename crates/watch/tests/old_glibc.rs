//! Under a C library before glibc 2.34 nothing hangs: there `dlsym` allocates, and cicc's allocator calls hooks of ours
//! while it starts.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::Bench;

/// With both at hand: `WARPCC_TEST_OLD_LOADER=…/ld-linux-x86-64.so.2 WARPCC_TEST_NVCC=… cargo test -p warpcc-watch`.
#[test]
fn every_tool_starts_and_ends() {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (Some(loader), Some(nvcc)) = (
        variable("WARPCC_TEST_OLD_LOADER"),
        variable("WARPCC_TEST_NVCC"),
    ) else {
        return;
    };
    let libraries = loader.parent().expect("a folder");
    let usr = libraries.join("../../usr/lib/x86_64-linux-gnu");
    let path = format!("{}:{}", libraries.display(), usr.display());
    let bin = nvcc.parent().expect("a folder");
    for tool in [
        "../nvvm/bin/cicc",
        "ptxas",
        "cudafe++",
        "fatbinary",
        "nvlink",
        "nvcc",
    ] {
        let tool = bin.join(tool);
        let plain = run(&mut Command::new(&loader), &path, &tool);
        let bench = Bench::new();
        let mut command = bench.watched(&loader.display().to_string());
        let watched = run(&mut command, &path, &tool);
        assert_eq!(plain, watched, "{}", tool.display());
        assert!(plain.is_some(), "{} hangs by itself", tool.display());
        assert!(bench.path("log").exists(), "{} was watched", tool.display());
    }
}

/// The exit code of `TOOL --version`, `None` where it did not end within a minute.
fn run(command: &mut Command, libraries: &str, tool: &Path) -> Option<Option<i32>> {
    let mut child = command
        .args(["--library-path", libraries])
        .arg(tool)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the old loader starts");
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(60) {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            return Some(status.code());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("it runs");
    child.wait().expect("it was killed");
    None
}
