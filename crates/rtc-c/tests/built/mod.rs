//! The library as cargo has just built it, NVIDIA's libraries of PyPI, and programs compiled and run with both.
#![allow(dead_code, reason = "each test program needs another part")]

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// NVIDIA's libraries of one version, as variables that name them.
pub struct Nvidia {
    /// NVRTC's version.
    pub version: &'static str,
    nvrtc: PathBuf,
    nvjitlink: PathBuf,
    nvfatbin: PathBuf,
    nvcc: Option<PathBuf>,
}

impl Nvidia {
    /// The newest that the tests use.
    pub fn newest() -> Self {
        Self::of_toolkit("13.5", "WARPCC_TEST_NVCC")
    }

    /// The newest, 13.0, and where there are wheels of it 12.0.
    pub fn all() -> Vec<Self> {
        let mut all = vec![
            Self::newest(),
            Self::of_toolkit("13.0", "WARPCC_TEST_NVCC_130"),
        ];
        if cfg!(target_arch = "x86_64") {
            let file = named("WARPCC_TEST_NVRTC_120")
                .unwrap_or_else(|| tools().join("nvrtc-12.0/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"));
            all.push(Self {
                version: "12.0",
                nvjitlink: there(&file.with_file_name("../../nvjitlink/lib/libnvJitLink.so.12")),
                nvfatbin: nvfatbin("nvidia/nvfatbin/lib/libnvfatbin.so.12"),
                nvrtc: there(&file),
                nvcc: None,
            });
        }
        all
    }

    fn of_toolkit(version: &'static str, variable: &str) -> Self {
        let nvcc = named(variable)
            .unwrap_or_else(|| toolkits().join(version).join("nvidia/cu13/bin/nvcc"));
        let library = |name: &str| there(&nvcc.with_file_name(format!("../lib/{name}.so.13")));
        Self {
            version,
            nvrtc: library("libnvrtc"),
            nvjitlink: library("libnvJitLink"),
            nvfatbin: nvfatbin("nvidia/cu13/lib/libnvfatbin.so.13"),
            nvcc: Some(there(&nvcc)),
        }
    }

    /// The compiler of the same toolkit.
    pub fn nvcc(&self) -> &Path {
        self.nvcc.as_deref().expect("a toolkit has nvcc")
    }

    /// Has a command find these libraries, and nothing that belongs to the user who runs the tests.
    pub fn set(&self, command: &mut Command) {
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("WARPCC_") || name.starts_with("CUDA_") {
                command.env_remove(&*name);
            }
        }
        command
            .env("WARPCC_NVRTC", &self.nvrtc)
            .env("WARPCC_NVJITLINK", &self.nvjitlink)
            .env("WARPCC_NVFATBIN", &self.nvfatbin);
    }
}

fn nvfatbin(library: &str) -> PathBuf {
    let home = named("WARPCC_TEST_NVFATBIN").and_then(|file| {
        // …/nvidia/cu13/lib/libnvfatbin.so.13
        file.ancestors().nth(4).map(Path::to_path_buf)
    });
    there(
        &home
            .unwrap_or_else(|| tools().join("nvfatbin"))
            .join(library),
    )
}

/// One that is not there is an error, never a skipped test.
fn there(file: &Path) -> PathBuf {
    file.canonicalize().unwrap_or_else(|error| {
        panic!(
            "{}: {error}; `cargo xtask test` installs it",
            file.display()
        )
    })
}

fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn toolkits() -> PathBuf {
    named("WARPCC_TOOLKITS").map_or_else(|| root().join(".toolkits"), |dir| root().join(dir))
}

/// As xtask's `repo::tools_dir`.
fn tools() -> PathBuf {
    named("WARPCC_TOOLKITS").map_or_else(
        || root().join(".tools"),
        |dir| root().join(dir).with_file_name("tools"),
    )
}

/// A library of ours, as cargo built it with this test.
pub fn library(ending: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this program");
    // target/debug/deps, where a library lies under its plain name.
    let file = test.with_file_name(format!("libwarpcc_rtc_c.{ending}"));
    there(&file)
}

/// A folder with the library under the name by which programs ask for it.
pub struct Built {
    folder: TempDir,
}

impl Built {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["libwarpcc_rtc_c.so", "libwarpcc_rtc_c.so.1"] {
            std::os::unix::fs::symlink(library("so"), folder.path().join(name)).expect("a link");
        }
        Self { folder }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Compiles a C program of this crate.
    pub fn compile(&self, source: &str, more: &[&str]) -> PathBuf {
        let mut link = vec![format!("-L{}", self.folder().display())];
        link.push("-lwarpcc_rtc_c".to_owned());
        link.push(format!("-Wl,-rpath,{}", self.folder().display()));
        link.extend(more.iter().map(ToString::to_string));
        self.gcc(source, &link)
    }

    /// Compiles a C++ program of this crate.
    pub fn compile_cpp(&self, source: &str) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let exe = self.folder().join("program");
        let mut gcc = Command::new("g++");
        gcc.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic"])
            .args(["-pthread", "-g", "-I"])
            .arg(root.join("include"))
            .arg("-o")
            .args([&exe, &root.join(source)])
            .arg(format!("-L{}", self.folder().display()))
            .args(["-lwarpcc_rtc_c", "-ldl"])
            .arg(format!("-Wl,-rpath,{}", self.folder().display()));
        succeed(&mut gcc);
        exe
    }

    /// Compiles the same with the library inside.
    pub fn compile_static(&self, source: &str) -> PathBuf {
        let library = library("a").display().to_string();
        // As named by `rustc --print native-static-libs`.
        let system = [
            "-lgcc_s",
            "-lutil",
            "-lrt",
            "-lpthread",
            "-lm",
            "-ldl",
            "-lc",
        ];
        let link: Vec<_> = [library]
            .into_iter()
            .chain(system.map(str::to_owned))
            .collect();
        self.gcc(source, &link)
    }

    fn gcc(&self, source: &str, link: &[String]) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let exe = self.folder().join("program");
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"])
            .args(["-pthread", "-g", "-I"])
            .arg(root.join("include"))
            .arg("-o")
            .args([&exe, &root.join(source)])
            .args(link);
        succeed(&mut gcc);
        exe
    }

    /// Runs a program with an empty folder as its first argument; what it said.
    pub fn run(&self, exe: &Path, nvidia: &Nvidia, more: &[&str]) -> String {
        let empty = self.folder().join("empty");
        std::fs::create_dir_all(&empty).expect("a folder");
        let mut command = Command::new(exe);
        nvidia.set(&mut command);
        command.env("LD_LIBRARY_PATH", self.folder());
        succeed(command.arg(empty).args(more))
    }
}

/// Runs a command to its good end; what it said.
pub fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{said}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    said
}
