//! The fake toolkit: one C program, built once, copied under the names of the tools. A copy's release number is written
//! over the one in the program, so that another release of a tool is another program and makes other results.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

const MARK: &[u8] = b"@@RELEASE@@";

macro_rules! sources {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../soak/", $name)))),*]
    };
}

/// The program's sources, which are part of this binary, so that a soak can run on a machine without this repository.
const SOURCES: [(&str, &str); 12] = sources!(
    "fake.h" "plan.h" "tools.h" "text.c" "stages.c" "host.c" "link.c" "device.c" "nvcc.c" "plan.c" "marks.c" "wrapper.c"
);

/// The path of each program in a toolkit.
const TOOLS: [&str; 6] = [
    "bin/nvcc",
    "bin/cudafe++",
    "bin/ptxas",
    "bin/fatbinary",
    "bin/nvlink",
    "nvvm/bin/cicc",
];

/// The program behind all fake tools.
#[derive(Clone, Debug)]
pub struct FakeTool {
    bytes: Vec<u8>,
    release_at: usize,
    /// The same program, but it looks through the list of all variables.
    walker: Vec<u8>,
    /// A compiler's wrapper that is linked statically; `None` where there is no static C library.
    wrapper: Option<Vec<u8>>,
}

impl FakeTool {
    /// Builds the program with the machine's C compiler, and leaves it in `folder`.
    ///
    /// # Errors
    /// There is no C compiler, or it fails.
    pub fn build(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        for (name, text) in SOURCES {
            fs::write(folder.join(name), text)?;
        }
        let is_part = |name: &&str| name.ends_with(".c") && *name != "wrapper.c";
        let names = SOURCES.map(|(name, _)| name);
        for (name, more) in [("tool", &[][..]), ("walker", &["-DWALKS"][..])] {
            let mut cc = Command::new("cc");
            cc.args(["-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o"])
                .arg(folder.join(name))
                .args(more)
                .args(
                    names
                        .iter()
                        .copied()
                        .filter(is_part)
                        .map(|name| folder.join(name)),
                );
            process::output(&mut cc)?;
        }
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-static", "-o"])
            .arg(folder.join("wrapper"))
            .arg(folder.join("wrapper.c"));
        // There need not be a static C library.
        _ = process::output(&mut cc);
        Self::load(folder)
    }

    /// Reads the programs that were built in `folder`.
    ///
    /// # Errors
    /// A program is not there.
    pub fn load(folder: &Path) -> Result<Self> {
        let bytes = fs::read(folder.join("tool"))?;
        let release_at = bytes
            .windows(MARK.len())
            .position(|w| w == MARK)
            .context("no release in the fake program")?
            + MARK.len();
        Ok(Self {
            bytes,
            release_at,
            walker: fs::read(folder.join("walker"))?,
            wrapper: fs::read(folder.join("wrapper")).ok(),
        })
    }

    /// Puts a tool that looks through all variables at `path`.
    pub fn install_walker(&self, path: &Path) -> std::io::Result<()> {
        put(path, &self.walker)
    }

    /// Puts the static wrapper at `path`.
    pub fn install_wrapper(&self, path: &Path) -> std::io::Result<()> {
        match &self.wrapper {
            Some(bytes) => put(path, bytes),
            None => Ok(()),
        }
    }

    /// Puts a release of the tool at `path`, as an installer does: under another name first.
    pub fn install(&self, path: &Path, release: u32) -> std::io::Result<()> {
        let mut bytes = self.bytes.clone();
        let number = format!("{release:08}");
        bytes[self.release_at..self.release_at + 8].copy_from_slice(number.as_bytes());
        put(path, &bytes)
    }

    /// Puts a whole toolkit at `top`.
    pub fn install_toolkit(&self, top: &Path, release: u32) -> std::io::Result<()> {
        for tool in TOOLS {
            self.install(&top.join(tool), release)?;
        }
        for (name, text) in [
            ("include/cuda_runtime.h", "runtime header\n"),
            ("bin/crt/link.stub", "link stub\n"),
            ("bin/nvcc.profile", "profile\n"),
            ("lib/libcudadevrt.a", "device runtime\n"),
            ("lib/libcudart_static.a", "host runtime\n"),
        ] {
            let path = top.join(name);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(path, text)?;
        }
        Ok(())
    }

    /// Puts the host's programs into `folder`.
    pub fn install_host(&self, folder: &Path, release: u32) -> std::io::Result<()> {
        for tool in ["gcc", "g++", "as", "ld", "ar"] {
            self.install(&folder.join(tool), release)?;
        }
        Ok(())
    }
}

fn put(path: &Path, program: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let new = path.with_extension("new");
    fs::write(&new, program)?;
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755))?;
    fs::rename(&new, path)
}

/// Makes `to` a toolkit of links to the files of `from`, as Nix, Spack and conda make them.
pub fn link_toolkit(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let inner = ["bin", "nvvm"].iter().any(|n| name == *n);
        if inner && entry.path().is_dir() {
            link_toolkit(&entry.path(), &to.join(name))?;
        } else {
            std::os::unix::fs::symlink(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}

/// Copies a toolkit, file by file.
pub fn copy_toolkit(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_toolkit(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
