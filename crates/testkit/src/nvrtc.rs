//! The NVRTCs and nvFatbins that the tests compile with.

use std::path::{Path, PathBuf};

use crate::places::{named, toolkits, tools};

/// An NVRTC to test with.
pub struct Nvrtc {
    /// Its version.
    pub version: &'static str,
    /// The folder with the library.
    pub folder: PathBuf,
}

impl Nvrtc {
    /// The newest that the tests use.
    pub fn newest() -> Self {
        Self::of_toolkit("13.5", "WARPCC_TEST_NVCC")
    }

    /// The oldest that is supported. On other machines than x86_64, for which there are no wheels of it, 13.0.
    pub fn oldest() -> Self {
        if !cfg!(target_arch = "x86_64") {
            return Self::of_toolkit("13.0", "WARPCC_TEST_NVCC_130");
        }
        let file = named("WARPCC_TEST_NVRTC_120")
            .unwrap_or_else(|| tools().join("nvrtc-12.0/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"));
        Self::of_file("12.0", &file)
    }

    /// Newest, 13.0 and oldest.
    pub fn all() -> Vec<Self> {
        vec![
            Self::newest(),
            Self::of_toolkit("13.0", "WARPCC_TEST_NVCC_130"),
            Self::oldest(),
        ]
    }

    fn of_toolkit(version: &'static str, variable: &str) -> Self {
        let nvcc = named(variable)
            .unwrap_or_else(|| toolkits().join(version).join("nvidia/cu13/bin/nvcc"));
        Self::of_file(version, &nvcc.with_file_name("../lib/libnvrtc.so.13"))
    }

    /// One that is not there is an error, never a skipped test.
    fn of_file(version: &'static str, file: &Path) -> Self {
        let found = file.canonicalize().ok();
        let folder = found.and_then(|file| Some(file.parent()?.to_path_buf()));
        let folder = folder.unwrap_or_else(|| {
            panic!(
                "no NVRTC {version} at {}: `cargo xtask test` installs it",
                file.display()
            )
        });
        Self { version, folder }
    }
}

/// nvFatbin, newest and oldest.
pub fn nvfatbin() -> [PathBuf; 2] {
    let home = named("WARPCC_TEST_NVFATBIN").and_then(|file| {
        // …/nvidia/cu13/lib/libnvfatbin.so.13
        file.ancestors().nth(4).map(Path::to_path_buf)
    });
    let home = home.unwrap_or_else(|| tools().join("nvfatbin"));
    [
        "cu13/lib/libnvfatbin.so.13",
        "nvfatbin/lib/libnvfatbin.so.12",
    ]
    .map(|library| {
        let file = home.join("nvidia").join(library);
        assert!(
            file.is_file(),
            "no nvFatbin at {}: `cargo xtask test` installs it",
            file.display()
        );
        file
    })
}
