//! The build script of a Rust package: finds nvcc, writes to its output folder, tells cargo when to run it again.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::{Embed, EmbedError};

/// The variables that decide which nvcc is used.
const VARIABLES: [&str; 4] = ["NVCC", "CUDA_HOME", "CUDA_PATH", "PATH"];

impl Embed {
    /// Makes the bundle `name` for `warpcc_rtc::embedded!(name)`, from a build script. Paths are relative to the package. nvcc
    /// is the one in `NVCC`, `CUDA_HOME`, `CUDA_PATH` or `PATH`, through warpcc if that is in `PATH`; [`Embed::compiler`] takes
    /// another one.
    ///
    /// # Errors
    /// As [`Embed::make`]; or there is no nvcc, or no output folder.
    pub fn write(mut self, name: &str) -> Result<(), EmbedError> {
        let fails = |path: &Path, error: std::io::Error| {
            EmbedError::new(format!("{} cannot be written: {error}", path.display()))
        };
        let out = variable("OUT_DIR").map(PathBuf::from);
        let out = out.ok_or_else(|| {
            EmbedError::new("there is no OUT_DIR: this is for a build script of cargo".to_owned())
        })?;
        if self.nvcc.command.is_empty() && self.compiles() {
            self.nvcc.command = find_nvcc()?;
            VARIABLES
                .iter()
                .for_each(|name| request_rerun("env-changed", name));
        }
        let scratch = out.join(format!("{name}.scratch"));
        std::fs::create_dir_all(&scratch).map_err(|error| fails(&scratch, error))?;
        let made = self.make(&scratch)?;
        let file = out.join(format!("{name}.warpcc-bundle"));
        std::fs::write(&file, &made.bytes).map_err(|error| fails(&file, error))?;
        let named = self.headers.iter().chain(&self.sources);
        let read = named.chain(&self.header_folders).chain(&made.found);
        for path in read {
            request_rerun("changed", &path.display().to_string());
        }
        // Nobody needs them any more, and the next run writes them again.
        drop(std::fs::remove_dir_all(&scratch));
        Ok(())
    }
}

/// Tells cargo when to run the build script again.
#[expect(
    clippy::print_stdout,
    reason = "cargo reads what a build script prints"
)]
fn request_rerun(what: &str, value: &str) {
    println!("cargo::rerun-if-{what}={value}");
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// nvcc, after warpcc if there is one.
fn find_nvcc() -> Result<Vec<OsString>, EmbedError> {
    let path = variable("PATH").unwrap_or_default();
    let on_path = |name: &str| {
        let mut all = std::env::split_paths(&path).map(|folder| folder.join(name));
        all.find(|file| is_program(file))
    };
    let named = variable("NVCC").map(PathBuf::from);
    let homes = ["CUDA_HOME", "CUDA_PATH"];
    let homes = homes.iter().filter_map(|name| variable(name));
    let mut homes = homes.map(|home| PathBuf::from(home).join("bin/nvcc"));
    let found = named
        .or_else(|| homes.find(|file| is_program(file)))
        .or_else(|| on_path("nvcc"));
    let nvcc = found.ok_or_else(|| {
        EmbedError::new(
            "there is no nvcc, which compiles LTO-IR: put it into PATH, or name it in NVCC or CUDA_HOME".to_owned(),
        )
    })?;
    let words = on_path("warpcc").into_iter().chain([nvcc]);
    Ok(words.map(PathBuf::into_os_string).collect())
}

fn is_program(file: &Path) -> bool {
    let found = std::fs::metadata(file);
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
