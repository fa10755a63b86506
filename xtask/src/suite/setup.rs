//! Installs the programs that the test suite needs on the machine.
//!
//! A machine that has everything is not touched. Programs come from the distribution (as root, on
//! Debian), cargo's subcommands from crates.io into cargo's own folder, where the next clone
//! finds them, and toolkits, a ninja, an old NVRTC, nvFatbin, Remote Execution servers, maturin and
//! the servers that Python runs from PyPI.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{casd, fetched, maturin, ninja, old_glibc, servers};
use crate::{process, toolkit};

/// Programs the tests run, with the Debian package that holds each.
const PROGRAMS: [(&str, &str); 19] = [
    ("g++", "g++"),
    ("python3", "python3"),
    ("make", "make"),
    ("cmake", "cmake"),
    ("ninja", "ninja-build"),
    ("ccache", "ccache"),
    // The one host compiler here that knows #embed.
    ("clang++-19", "clang-19"),
    // The oldest compiler that the table of variables was compared with.
    ("clang++-14", "clang-14"),
    // The first CUDA compiler besides nvcc that CUDA 13's fatbinary understands.
    ("clang++-22", "clang-22"),
    // The first that reads CUDA 13's headers wholly.
    ("clangd-22", "clangd-22"),
    ("script", "bsdutils"),
    // Makes a program with another C library, which is watched.
    ("musl-gcc", "musl-tools"),
    // For the tests of `warpcc report` and `warpcc monitor`.
    ("chromium", "chromium"),
    ("tmux", "tmux"),
    // buildbox-casd runs commands inside of it.
    ("bwrap", "bubblewrap"),
    // Shared caches. The tests start them themselves, each on a port of its own.
    ("nginx", "nginx-light"),
    ("redis-server", "redis-server"),
    ("memcached", "memcached"),
    // The database in which BuildGrid keeps its queue.
    ("pg_createcluster", "postgresql"),
];

/// Versions are pinned: a new release must not break CI on main.
const NEXTEST: (&str, &str) = ("cargo-nextest", "0.9.143");
const DENY: (&str, &str) = ("cargo-deny", "0.20.2");

/// Installs what is missing; `thorough` adds what only the whole suite needs.
pub fn install(thorough: bool) -> Result<()> {
    install_programs()?;
    install_subcommand(NEXTEST)?;
    if thorough {
        install_subcommand(DENY)?;
    }
    for version in [toolkit::NEWEST, toolkit::OLDEST] {
        toolkit::install(version)?;
    }
    ninja::install()?;
    casd::install()?;
    servers::install()?;
    maturin::install()?;
    old_glibc::install()?;
    fetched::NVFATBIN.install_wheels()?;
    fetched::ADAPTERS.install_wheels()?;
    match std::env::consts::ARCH {
        "x86_64" => fetched::OLDEST_NVRTC.install_wheels(),
        _ => Ok(()),
    }
}

fn install_programs() -> Result<()> {
    let missing = PROGRAMS
        .iter()
        .filter(|(program, _)| process::on_path(program).is_none());
    let mut packages: Vec<_> = missing.map(|(_, package)| *package).collect();
    if !process::succeeds(Command::new("python3").args(["-m", "pip", "--version"])) {
        packages.push("python3-pip");
    }
    if packages.is_empty() {
        return Ok(());
    }
    let packages = packages.join(" ");
    let root = process::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if !root || process::on_path("apt-get").is_none() {
        bail!("the tests need programs that are not here; as root: apt-get install {packages}");
    }
    process::run(Command::new("apt-get").args(["update", "-qq"]))?;
    process::run(
        Command::new("apt-get")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(["install", "-qq", "--yes", "--no-install-recommends"])
            .args(packages.split(' ')),
    )
}

fn install_subcommand((name, version): (&str, &str)) -> Result<()> {
    let subcommand = name.trim_start_matches("cargo-");
    if process::succeeds(Command::new("cargo").args([subcommand, "--version"])) {
        return Ok(());
    }
    process::run(Command::new("cargo").args(["install", name, "--locked", "--version", version]))
        .with_context(|| format!("the suite runs `cargo {subcommand}`"))
}
