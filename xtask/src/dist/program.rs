//! The programs that every form carries: built for an old C library, their debug information apart.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{elf, metadata};
use crate::programs::OURS;
use crate::suite::fetched::Fetched;
use crate::{process, repo};

/// The C library of CentOS 7, which Rust's own library asks for too: nothing older can be had.
pub const OLDEST_GLIBC: elf::Glibc = (2, 17);

const ZIGBUILD: Fetched = Fetched {
    name: "zigbuild",
    program: "bin/cargo-zigbuild",
};

const PROFILE: &str = "dist";

/// How large a program may be, in bytes, without symbols. Each call of nvcc starts the first (docs/design/size.md).
const LARGEST: [(&str, u64); 2] = [("warpcc", 10_000_000), ("warpcc-remote", 12_000_000)];

/// A processor that the program is built for.
#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
pub enum Arch {
    /// AMD's and Intel's
    #[value(name = "x86-64")]
    X86_64,
    /// ARM's
    Aarch64,
}

impl Arch {
    /// As in names of wheels, and of Rust's targets.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    pub fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    pub fn target(self) -> String {
        format!("{}-unknown-linux-gnu", self.name())
    }

    /// Whether programs for this processor run on this machine.
    pub fn is_here(self) -> bool {
        env::consts::ARCH == self.name()
    }

    fn binutils(self, tool: &str) -> String {
        match self.is_here() {
            true => tool.to_owned(),
            false => format!("{}-linux-gnu-{tool}", self.name()),
        }
    }
}

/// A program and what was taken out of it.
pub struct DistProgram {
    /// What it is called.
    pub name: &'static str,
    pub stripped: PathBuf,
    /// For a debugger, which finds it by its name.
    pub debug: PathBuf,
}

/// Builds them.
pub fn build(arch: Arch) -> Result<Vec<DistProgram>> {
    let mut cargo = zigbuild(arch)?;
    cargo.args(["--profile", PROFILE]);
    for program in OURS {
        cargo.args(["--package", program]);
    }
    cargo.arg("--message-format=json-render-diagnostics");
    cargo.stdin(Stdio::null()).stderr(Stdio::inherit());
    let shown = process::show(&cargo);
    eprintln!("{shown}");
    let said = cargo
        .output()
        .with_context(|| format!("failed to start `{shown}`"))?;
    if !said.status.success() {
        bail!("`{shown}` failed: {}", said.status);
    }
    let said = String::from_utf8(said.stdout).context("cargo's messages are not text")?;
    let built = Built::read(&said)?;
    for library in ["libwarpcc_watch.so", "libwarpcc_folder.so"] {
        print_needs(library, &built.libraries.join(library))?;
    }
    split_all(&built.program, arch)
}

/// The programs that cargo built.
#[derive(Debug, PartialEq)]
struct Built {
    /// warpcc; the others are next to it.
    program: PathBuf,
    /// The folder of the preloaded libraries that are embedded in it.
    libraries: PathBuf,
}

impl Built {
    /// Reads their paths from cargo's messages, one JSON object on each line.
    fn read(messages: &str) -> Result<Self> {
        let (mut program, mut libraries) = (None, None);
        for line in messages.lines() {
            let message: Value = serde_json::from_str(line)?;
            let text = |name: &str| message[name].as_str().unwrap_or_default();
            match text("reason") {
                "compiler-artifact" if message["target"]["name"] == OURS[0] => {
                    program = message["executable"].as_str().map(PathBuf::from);
                }
                // `path+file:///…/crates/watch#warpcc-watch@0.1.0`
                "build-script-executed" if text("package_id").contains("#warpcc-watch@") => {
                    libraries = Some(PathBuf::from(text("out_dir")));
                }
                _ => {}
            }
        }
        Ok(Self {
            program: program.context("cargo made no program `warpcc`")?,
            libraries: libraries.context("cargo made no watch library")?,
        })
    }
}

/// The wheel of the Python package warpcc-rtc. maturin builds it, with the same zig.
pub fn rtc_wheel(arch: Arch, to: &Path) -> Result<PathBuf> {
    crate::suite::maturin::install()?;
    let mut maturin = with_zig(Command::new(
        crate::suite::maturin::packages().join("bin/maturin"),
    ))?;
    maturin
        .current_dir(repo::root().join("crates/rtc-py"))
        .args(["build", "--locked", "--release", "--zig", "--out"])
        .arg(to)
        .args(["--target", &arch.target()])
        .args(["--compatibility", "manylinux2014"]);
    process::run(&mut maturin)?;
    let mut wheels = Vec::new();
    for entry in fs::read_dir(to)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("warpcc_rtc-") && name.contains(arch.name()) {
            wheels.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    let newest = wheels.into_iter().max();
    newest
        .map(|(_, wheel)| wheel)
        .context("maturin made no wheel")
}

/// Cargo with zig as its linker.
fn zigbuild(arch: Arch) -> Result<Command> {
    let (major, minor) = OLDEST_GLIBC;
    let target = format!("{}.{major}.{minor}", arch.target());
    let mut cargo = with_zig(process::cargo("zigbuild"))?;
    cargo.args(["--locked", "--target", &target]);
    // Incremental files are for who builds again after a small change.
    cargo.env("CARGO_INCREMENTAL", "0");
    if let Some(commit) = metadata::commit() {
        cargo.env("WARPCC_COMMIT", commit);
    }
    Ok(cargo)
}

fn with_zig(mut command: Command) -> Result<Command> {
    ZIGBUILD.install_wheels()?;
    let program = ZIGBUILD.path();
    let bin = program.parent().context("a program is in a folder")?;
    let home = bin.parent().context("bin is in a folder")?;
    let old = env::var_os("PATH").unwrap_or_default();
    let path = [bin.to_owned()].into_iter().chain(env::split_paths(&old));
    // zig is a Python package, started as `python3 -m ziglang`.
    command
        .env("PATH", env::join_paths(path)?)
        .env("PYTHONPATH", home);
    Ok(command)
}

/// As [`split`], for the program `warpcc` in the file `built`, and those of ours next to it.
pub fn split_all(built: &Path, arch: Arch) -> Result<Vec<DistProgram>> {
    let beside = |name: &str| match name == OURS[0] {
        true => built.to_owned(),
        false => built.with_file_name(name),
    };
    OURS.into_iter()
        .map(|name| split(name, &beside(name), arch))
        .collect()
}

/// Takes the debug information and the symbols out of a built program, and checks what is left.
fn split(name: &'static str, built: &Path, arch: Arch) -> Result<DistProgram> {
    let folder = repo::target_dir().join("dist-parts").join(arch.name());
    fs::create_dir_all(&folder)
        .with_context(|| format!("failed to create {}", folder.display()))?;
    let program = DistProgram {
        name,
        stripped: folder.join(name),
        debug: folder.join(format!("{name}.debug")),
    };
    for old in [&program.stripped, &program.debug] {
        if old.exists() {
            fs::remove_file(old)?;
        }
    }
    let objcopy = || Command::new(arch.binutils("objcopy"));
    process::run(
        objcopy()
            .args(["--only-keep-debug", "--compress-debug-sections"])
            .args([built, &program.debug]),
    )?;
    let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
    link.push(&program.debug);
    process::run(
        objcopy()
            .args(["--strip-all", "--remove-section=.comment"])
            .arg(link)
            .args([built, &program.stripped]),
    )?;
    print_needs(name, &program.stripped)?;
    elf::check_position_independent(&program.stripped)?;
    check_size(name, fs::metadata(&program.stripped)?.len())?;
    Ok(program)
}

fn check_size(name: &str, bytes: u64) -> Result<()> {
    println!("{name}: {:.2} MB", bytes as f64 / 1e6);
    match LARGEST.into_iter().find(|(program, _)| *program == name) {
        Some((_, largest)) if bytes <= largest => Ok(()),
        Some((_, largest)) => bail!(
            "{name} has {bytes} bytes, more than the {largest} that are allowed: docs/design/size.md says what takes them"
        ),
        None => bail!("there is no size limit for {name}: add one next to that of warpcc"),
    }
}

fn print_needs(name: &str, file: &Path) -> Result<()> {
    let (major, minor) = elf::check(file, OLDEST_GLIBC)?;
    let needed = elf::needed(file)?.join(", ");
    println!("{name}: glibc {major}.{minor}; needs {needed}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_a_largest_size() {
        for program in OURS {
            assert!(check_size(program, 9_000_000).is_ok());
            assert!(check_size(program, 12_000_001).is_err());
        }
        assert!(check_size("warpcc", 10_000_001).is_err());
        assert!(check_size("another", 1).is_err());
    }

    #[test]
    fn program_and_libraries_stand_in_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"warpcc_watch"},"executable":null}
{"reason":"build-script-executed","package_id":"path+file:///w/crates/watch#warpcc-watch@0.1.0","out_dir":"/t/out"}
{"reason":"build-script-executed","package_id":"registry+x#ring@0.17.14","out_dir":"/t/ring"}
{"reason":"compiler-artifact","target":{"name":"warpcc"},"executable":"/t/warpcc"}
{"reason":"build-finished","success":true}"#;
        let built = Built::read(messages).expect("both are there");
        assert_eq!(built.program, Path::new("/t/warpcc"));
        assert_eq!(built.libraries, Path::new("/t/out"));
        assert!(Built::read(r#"{"reason":"build-finished","success":true}"#).is_err());
    }
}
