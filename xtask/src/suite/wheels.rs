//! What only the tests need from PyPI: pinned by hash, into folders of our own, so that what the machine has stays as it is.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{process, repo};

const MARKER: &str = ".warpcc-tool";

/// Wheels in a folder.
pub struct Wheels {
    /// The folder, and the lock file in `xtask/tools`.
    name: &'static str,
    /// What must be there afterwards.
    file: &'static str,
}

/// The ninja of the jobserver tests: the distribution's knows no jobserver, and builds other projects here.
pub const NINJA: Wheels = Wheels {
    name: "ninja",
    file: "ninja/bin/ninja",
};

/// The oldest NVRTC that `warpcc-rtc` takes, with its linker. There are no wheels of it but for x86_64.
pub const OLDEST_NVRTC: Wheels = Wheels {
    name: "nvrtc-12.0",
    file: "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
};

impl Wheels {
    /// The file that they are wanted for, once they are installed.
    pub fn file(&self) -> PathBuf {
        repo::tools_dir().join(self.name).join(self.file)
    }

    /// Installs them unless they are there.
    pub fn install(&self) -> Result<()> {
        let lock_file = repo::root().join(format!("xtask/tools/{}.txt", self.name));
        let wanted = fs::read_to_string(&lock_file)
            .with_context(|| format!("failed to read {}", lock_file.display()))?;
        let tools = repo::tools_dir();
        fs::create_dir_all(&tools)
            .with_context(|| format!("failed to create {}", tools.display()))?;
        let home = tools.join(self.name);
        // Clones may share the folder: whoever waited here finds the work done.
        let lock = File::create(tools.join(format!(".{}.lock", self.name)))
            .with_context(|| format!("failed to lock {}", home.display()))?;
        lock.lock()
            .with_context(|| format!("failed to lock {}", home.display()))?;
        let marker = home.join(MARKER);
        if fs::read_to_string(&marker).is_ok_and(|found| found == wanted) && self.file().is_file() {
            return Ok(());
        }
        if home.exists() {
            // Half of one, or another version.
            fs::remove_dir_all(&home)
                .with_context(|| format!("failed to remove {}", home.display()))?;
        }
        process::run(
            Command::new("python3")
                .args(["-m", "pip", "install", "--quiet", "--no-input", "--no-deps"])
                .args(["--require-hashes", "--only-binary=:all:", "--no-compile"])
                .args(["--disable-pip-version-check", "--no-warn-script-location"])
                .args(["--root-user-action=ignore", "--no-user", "--target"])
                .arg(&home)
                .arg("-r")
                .arg(&lock_file),
        )
        .with_context(|| format!("failed to install {} into {}", self.name, home.display()))?;
        ensure!(
            self.file().is_file(),
            "the wheels of {} were installed without {}",
            self.name,
            self.file
        );
        fs::write(&marker, wanted).with_context(|| format!("failed to write {}", marker.display()))
    }
}
