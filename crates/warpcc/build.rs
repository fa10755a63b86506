//! Tells the program what it was built from, by and for.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let set_variable = |name: &str, value: &str| println!("cargo:rustc-env=BUILT_{name}={value}");
    set_variable("FOR", &variable("TARGET"));
    set_variable("AS", &variable("PROFILE"));
    set_variable("BY", &compiler());
    if let Some(commit) = commit() {
        set_variable("FROM", &commit);
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// `rustc 1.95.0 (59807616e 2026-04-14)`.
fn compiler() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(rustc).arg("--version").output();
    let line = said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
    line.unwrap_or_else(|_| "rustc".to_owned())
}

/// The commit of the sources: the one that `cargo xtask dist` names, else that of a packaged crate, else that of a
/// checkout. `None` where the sources are neither.
fn commit() -> Option<String> {
    println!("cargo:rerun-if-env-changed=WARPCC_COMMIT");
    let named = Some(variable("WARPCC_COMMIT")).filter(|commit| !commit.is_empty());
    named.or_else(packaged_commit).or_else(checked_out_commit)
}

/// The commit that `cargo package` wrote into the crate.
fn packaged_commit() -> Option<String> {
    let info = fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, after) = info.split_once("\"sha1\"")?;
    let commit = after.split('"').nth(1)?;
    let is_commit = commit.len() >= 12 && commit.bytes().all(|b| b.is_ascii_hexdigit());
    let changed = match info.contains("\"dirty\": true") {
        true => "+",
        false => "",
    };
    is_commit.then(|| format!("{}{changed}", &commit[..12]))
}

/// The commit that is checked out, with a `+` where files differ from it. `None` in a debug build, which would be linked
/// again after each commit.
fn checked_out_commit() -> Option<String> {
    if variable("PROFILE") != "release" {
        return None;
    }
    // A packaged crate may lie inside a repository of something else.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    // A checkout without it is not looked at again: cargo would take a missing file for a changed one.
    if Path::new(&log).exists() {
        println!("cargo:rerun-if-changed={log}");
    }
    println!("cargo:rerun-if-changed=..");
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(match changed.as_str() {
        "" => commit,
        _ => commit + "+",
    })
}

/// What git prints; `None` where it fails.
fn git(words: &[&str]) -> Option<String> {
    let said = Command::new("git").args(words).output().ok()?;
    let text = said.status.success().then_some(said.stdout)?;
    Some(String::from_utf8(text).ok()?.trim().to_owned())
}
