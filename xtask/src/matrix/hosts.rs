//! Host compilers: Debian's packages, and setups of other machines that are made from them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{process, repo};

/// A host compiler to try.
pub struct Host {
    /// The name for `--host` and in the table.
    pub name: &'static str,
    kind: HostKind,
}

enum HostKind {
    /// A program and the package that holds it.
    Packaged(&'static str),
    /// conda's: a prefixed name that passes a `--sysroot`.
    Conda,
    /// gcc-toolset's: a named folder with links to another version.
    Toolset,
    /// ccache under the compilers' names, first in PATH.
    Ccache,
    /// A program that says it is nvc++.
    Nvcpp,
}

/// All host compilers that are tried.
pub const ALL: [Host; 15] = [
    packaged("g++-12", "g++-12"),
    packaged("g++-11", "g++-11"),
    packaged("g++-13", "g++-13"),
    packaged("g++-14", "g++-14"),
    packaged("g++-15", "g++-15"),
    packaged("clang++-14", "clang-14"),
    packaged("clang++-15", "clang-15"),
    packaged("clang++-16", "clang-16"),
    packaged("clang++-17", "clang-17"),
    packaged("clang++-18", "clang-18"),
    packaged("clang++-19", "clang-19"),
    Host {
        name: "conda",
        kind: HostKind::Conda,
    },
    Host {
        name: "toolset",
        kind: HostKind::Toolset,
    },
    Host {
        name: "ccache",
        kind: HostKind::Ccache,
    },
    Host {
        name: "nvc++",
        kind: HostKind::Nvcpp,
    },
];

const fn packaged(name: &'static str, package: &'static str) -> Host {
    Host {
        name,
        kind: HostKind::Packaged(package),
    }
}

/// A host compiler that is ready to use.
#[derive(Debug, Default)]
pub struct Compiler {
    pub name: &'static str,
    /// nvcc's arguments.
    pub words: Vec<String>,
    /// The compiler's own name or path.
    pub program: String,
    /// A folder that PATH begins with.
    pub in_front: Option<String>,
    /// The first line of its version.
    pub version: String,
}

impl Host {
    /// Installs or makes the compiler; `None` where that is not possible here.
    pub fn prepare(&self) -> Result<Option<Compiler>> {
        let folder = repo::target_dir().join("matrix/hosts").join(self.name);
        let made = |name: &str, script: &str| write_program(&folder.join(name), script);
        let mut compiler = Compiler {
            name: self.name,
            ..Compiler::default()
        };
        match self.kind {
            HostKind::Packaged(package) => {
                if !is_there(self.name, package)? {
                    return Ok(None);
                }
                self.name.clone_into(&mut compiler.program);
                compiler.words = ccbin(self.name);
            }
            HostKind::Conda => {
                let script = "#!/bin/sh\nexec /usr/bin/g++-11 --sysroot=/ \"$@\"\n";
                let path = made("x86_64-conda-linux-gnu-g++", script)?;
                compiler.words = ccbin(&path);
                compiler.program = path;
            }
            HostKind::Toolset => {
                for name in ["g++", "gcc"] {
                    let target = format!("/usr/bin/{name}-11");
                    link(Path::new(&target), &folder.join(name))?;
                }
                compiler.words = ccbin(&folder.to_string_lossy());
                compiler.program = folder.join("g++").to_string_lossy().into_owned();
            }
            HostKind::Ccache => {
                let Some(ccache) = process::on_path("ccache") else {
                    return Ok(None);
                };
                for name in ["g++", "gcc"] {
                    link(&ccache, &folder.join(name))?;
                }
                compiler.in_front = Some(folder.to_string_lossy().into_owned());
                "g++".clone_into(&mut compiler.program);
            }
            HostKind::Nvcpp => {
                let script = "#!/bin/sh\ncase \" $* \" in\n*\" --version \"* | *\" -V \"*)\n    \
                    echo; echo 'nvc++ 25.1-0 64-bit target on x86-64 Linux -tp haswell'; exit 0 ;;\nesac\n\
                    exec /usr/bin/g++-12 -D__NVCOMPILER=1 -D__PGI=1 \"$@\"\n";
                let path = made("nvc++", script)?;
                compiler.words = ccbin(&path);
                compiler.program = path;
            }
        }
        let said = process::output(Command::new(self.asked(&compiler)).arg("--version"))?;
        let line = said.lines().find(|line| !line.trim().is_empty());
        line.unwrap_or_default().clone_into(&mut compiler.version);
        Ok(Some(compiler))
    }

    fn asked(&self, compiler: &Compiler) -> PathBuf {
        let name = PathBuf::from(&compiler.program);
        compiler
            .in_front
            .as_ref()
            .map_or(name.clone(), |folder| Path::new(folder).join(name))
    }
}

fn ccbin(compiler: &str) -> Vec<String> {
    vec!["-ccbin".to_owned(), compiler.to_owned()]
}

fn is_there(program: &str, package: &str) -> Result<bool> {
    if process::on_path(program).is_some() {
        return Ok(true);
    }
    let install = ["install", "--quiet", "--yes", "--no-install-recommends"];
    let mut apt = Command::new("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive")
        .args(install)
        .arg(package);
    Ok(process::succeeds(&mut apt) && process::on_path(program).is_some())
}

fn write_program(path: &Path, script: &str) -> Result<String> {
    let folder = path.parent().context("a file in a folder")?;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    if fs::read_to_string(path).ok().as_deref() != Some(script) {
        let new = path.with_extension("new");
        fs::write(&new, script)?;
        fs::set_permissions(&new, Permissions::from_mode(0o755))?;
        fs::rename(&new, path).with_context(|| path.display().to_string())?;
    }
    Ok(path.to_string_lossy().into_owned())
}

fn link(target: &Path, path: &Path) -> Result<()> {
    let folder = path.parent().context("a file in a folder")?;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    if fs::read_link(path).is_ok_and(|found| found == target) {
        return Ok(());
    }
    symlink(target, path).with_context(|| path.display().to_string())
}
