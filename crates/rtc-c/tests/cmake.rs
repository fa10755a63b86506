//! The C++ example, built by CMake and ninja: inside the project's tree, and against an installed library.

mod built;

use std::path::Path;
use std::process::Command;

use built::{Nvidia, succeed};

fn cmake(arguments: &[&str], folders: [&Path; 2]) {
    let mut command = Command::new("cmake");
    command.args(["-G", "Ninja", "-S"]).arg(folders[0]);
    succeed(command.arg("-B").arg(folders[1]).args(arguments));
    succeed(Command::new("cmake").arg("--build").arg(folders[1]));
}

fn run(build: &Path, cache: &Path) -> String {
    let mut command = Command::new(build.join("scale"));
    Nvidia::newest().set(&mut command);
    // No user's settings file.
    command.env("HOME", build).env_remove("XDG_CONFIG_HOME");
    succeed(command.env("WARPCC_RTC_CACHE", cache))
}

#[test]
fn the_example_builds_and_runs_both_ways() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/cpp");
    let library = format!("-DWARPCC_RTC_LIBRARY={}", built::library("so").display());
    let (inside, cache) = (folder.join("inside"), folder.join("cache"));
    cmake(&[&library], [&example, &inside]);
    let first = run(&inside, &cache);
    let lines: Vec<_> = first.lines().collect();
    assert_eq!(lines[0], "_Z5scaleIfEvPT_i for sm_90: whole, compiled");
    assert_eq!(
        lines[1],
        "_Z5scaleIfEvPT_i for sm_90: whole, found in memory"
    );
    let again = run(&inside, &cache);
    assert!(
        again
            .lines()
            .next()
            .expect("a line")
            .ends_with("whole, found on disk"),
        "{again}"
    );

    let prefix = folder.join("prefix");
    let mut install = Command::new("cmake");
    install
        .arg("--install")
        .arg(&inside)
        .arg("--prefix")
        .arg(&prefix);
    succeed(&mut install);
    let outside = folder.join("outside");
    let found = format!("-DCMAKE_PREFIX_PATH={}", prefix.display());
    cmake(&["-DUSE_INSTALLED=ON", &found], [&example, &outside]);
    // The tree that it was installed from may be removed.
    std::fs::remove_dir_all(&inside).expect("removed");
    let said = run(&outside, &cache);
    assert!(
        said.lines()
            .next()
            .expect("a line")
            .ends_with("whole, found on disk"),
        "{said}"
    );
    let name = std::fs::read_link(prefix.join("lib/libwarpcc_rtc_c.so")).expect("a link");
    assert_eq!(name, Path::new("libwarpcc_rtc_c.so.1"));
}
