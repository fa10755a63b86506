//! Programs from PyPI that only the tests need, each in a folder of its own, pinned by the hashes of a lock file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{process, repo};

const MARKER: &str = ".warpcc-tool";

/// One of these programs.
pub struct Fetched {
    /// Its folder's name, and its lock file's.
    pub name: &'static str,
    /// The program or library in the folder.
    pub program: &'static str,
}

/// The oldest NVRTC that `warpcc-rtc` takes, with its linker. Its only wheels are for x86_64.
pub const OLDEST_NVRTC: Fetched = Fetched {
    name: "nvrtc-12.0",
    program: "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
};

/// nvFatbin, newest and oldest.
pub const NVFATBIN: Fetched = Fetched {
    name: "nvfatbin",
    program: "nvidia/cu13/lib/libnvfatbin.so.13",
};

/// CuPy, cuda.core and Numba-CUDA, which the Python package has adapters for.
pub const ADAPTERS: Fetched = Fetched {
    name: "adapters",
    program: "cuda/core/__init__.py",
};

impl Fetched {
    fn home(&self) -> PathBuf {
        repo::tools_dir().join(self.name)
    }

    /// The path of the installed program.
    pub fn path(&self) -> PathBuf {
        self.home().join(self.program)
    }

    /// The folder in which Python finds what was installed.
    pub fn packages(&self) -> PathBuf {
        self.home()
    }

    /// Has `install` put the program into a folder, unless it is there. `install` gets the folder and the lock file.
    pub fn install(&self, install: impl FnOnce(&Path, &Path) -> Result<()>) -> Result<()> {
        let lock_file = repo::root().join(format!("xtask/tools/{}.txt", self.name));
        let wanted = fs::read_to_string(&lock_file)
            .with_context(|| format!("failed to read {}", lock_file.display()))?;
        let tools = repo::tools_dir();
        fs::create_dir_all(&tools)
            .with_context(|| format!("failed to create {}", tools.display()))?;
        let home = self.home();
        // Clones may share the folder: a process that waited here finds the work done.
        let lock = File::create(tools.join(format!(".{}.lock", self.name)))
            .with_context(|| format!("failed to lock {}", home.display()))?;
        lock.lock()
            .with_context(|| format!("failed to lock {}", home.display()))?;
        let marker = home.join(MARKER);
        if fs::read_to_string(&marker).is_ok_and(|found| found == wanted) && self.path().is_file() {
            return Ok(());
        }
        if home.exists() {
            // An incomplete install, or another version.
            fs::remove_dir_all(&home)
                .with_context(|| format!("failed to remove {}", home.display()))?;
        }
        install(&home, &lock_file)
            .with_context(|| format!("failed to install {} into {}", self.name, home.display()))?;
        fs::write(&marker, wanted).with_context(|| format!("failed to write {}", marker.display()))
    }

    /// Installs the wheels of the lock file, unless they are there.
    pub fn install_wheels(&self) -> Result<()> {
        self.install(pip_install)
    }
}

/// Has pip install the wheels of `lock_file`, and nothing else, into `home`.
pub fn pip_install(home: &Path, lock_file: &Path) -> Result<()> {
    process::run(
        Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", "--no-input", "--no-deps"])
            .args(["--require-hashes", "--only-binary=:all:", "--no-compile"])
            .args(["--disable-pip-version-check", "--no-warn-script-location"])
            .args(["--root-user-action=ignore", "--no-user", "--target"])
            .arg(home)
            .arg("-r")
            .arg(lock_file),
    )
}
