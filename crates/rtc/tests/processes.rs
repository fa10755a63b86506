//! The cache of many processes: one compiles, and one that dies does not block the others.

mod space;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use space::{Nvrtc, open_compiler, request};
use warpcc_rtc::{CacheSettings, CallLimits, CompileRequest, Found, KernelCache};

fn cache_in(folder: &Path) -> KernelCache {
    KernelCache::with(
        open_compiler(&Nvrtc::newest()),
        CacheSettings::in_folder(folder),
        None,
    )
}

/// Many small kernels: the compiler takes some milliseconds for each.
fn kernel(lines: usize) -> CompileRequest {
    let text: String = (0..lines)
        .map(|index| {
            format!("extern \"C\" __global__ void k{index}(int* x) {{ *x += {index}; }}\n")
        })
        .collect();
    request("k", &text, "sm_90")
}

/// This program again, as another process that wants the kernel.
fn another(folder: &Path, lines: usize) -> Child {
    Command::new(std::env::current_exe().expect("a path"))
        .args(["--ignored", "--exact", "child", "--nocapture"])
        .env("WARPCC_TEST_FOLDER", folder)
        .env("WARPCC_TEST_LINES", lines.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

#[test]
#[ignore = "started by the others, as a process of its own"]
fn child() {
    let folder = std::env::var_os("WARPCC_TEST_FOLDER").expect("a folder");
    let lines = std::env::var("WARPCC_TEST_LINES")
        .expect("lines")
        .parse()
        .expect("a number");
    let cache = cache_in(Path::new(&folder));
    let image = cache
        .get(&kernel(lines), &CallLimits::default())
        .expect("compiles");
    println!("found={:?} {:?}", image.found, cache.remarks());
}

fn found_by(child: Child) -> String {
    let output = child.wait_with_output().expect("it ends");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.lines()
        .find_map(|line| line.split_once("found=").map(|(_, found)| found))
        .expect("an answer")
        .to_owned()
}

#[test]
fn sixty_four_processes_compile_it_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let children: Vec<_> = (0..64).map(|_| another(folder.path(), 60)).collect();
    let found: Vec<_> = children.into_iter().map(found_by).collect();
    let count = |what: &str| found.iter().filter(|found| *found == what).count();
    assert_eq!((count("Made []"), count("Disk []")), (1, 63), "{found:?}");
    assert!(locks(folder.path()).is_empty(), "a lock is left behind");
}

fn locks(folder: &Path) -> Vec<std::path::PathBuf> {
    let Ok(listing) = std::fs::read_dir(folder.join("tmp")) else {
        return Vec::new();
    };
    listing.flatten().map(|found| found.path()).collect()
}

#[test]
fn one_that_is_killed_while_compiling_holds_nobody_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut first = another(folder.path(), 400);
    while locks(folder.path()).is_empty() {
        assert!(
            first.try_wait().expect("a child").is_none(),
            "it ended before it was killed"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    // In the middle of it.
    std::thread::sleep(Duration::from_millis(300));
    let waiting = another(folder.path(), 400);
    std::thread::sleep(Duration::from_millis(300));
    first.kill().expect("killed");
    assert!(!first.wait().expect("a child").success());
    assert_eq!(found_by(waiting), "Made []");
    assert_eq!(found_by(another(folder.path(), 400)), "Disk []");
    let cache = cache_in(folder.path());
    let image = cache
        .get(&kernel(400), &CallLimits::default())
        .expect("whole");
    assert_eq!(image.found, Found::Disk);
    assert!(locks(folder.path()).is_empty());
}

#[test]
fn one_that_is_stopped_while_compiling_holds_nobody_up_for_long() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = another(folder.path(), 400);
    while locks(folder.path()).is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let signal = |signal: &str| {
        let status = Command::new("kill")
            .args([signal, &first.id().to_string()])
            .status();
        assert!(status.expect("kill").success());
    };
    signal("-STOP");
    let second = found_by(another(folder.path(), 400));
    signal("-CONT");
    // Its own work is not lost, nor in the way. It may have been stopped after the last moment that counts.
    let first = found_by(first);
    assert!(
        second == "Made []" || first == "Made []",
        "{first} {second}"
    );
}

#[test]
fn a_full_disk_costs_no_kernel() {
    let folder = tempfile::tempdir().expect("a folder");
    // No file may grow beyond 4 KiB, and a write that would is an error, as on a full disk.
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().expect("a path"))
        .args(["--ignored", "--exact", "child", "--nocapture"])
        .env("WARPCC_TEST_FOLDER", folder.path())
        .env("WARPCC_TEST_LINES", "60")
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let found = said
        .lines()
        .find(|line| line.contains("found="))
        .expect("an answer");
    assert!(
        found.contains("Made [\"") && found.contains("failed to write"),
        "{found}"
    );
    assert!(
        locks(folder.path()).is_empty(),
        "a half-written file is left behind"
    );
    assert_eq!(found_by(another(folder.path(), 60)), "Made []");
}
