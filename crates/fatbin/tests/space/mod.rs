//! What the tests stand on: toolkits, what nvcc makes, what cuobjdump says.

pub mod cuobjdump;

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use warpcc_fatbin::{Binary, Depth, Input, Limits, Listing};

/// A toolkit that the tests compile with.
pub struct Toolkit {
    /// `13.5`.
    pub name: &'static str,
    /// The folder above `bin`.
    pub top: PathBuf,
}

impl Toolkit {
    /// The newest: also the one with cuobjdump, which older wheels lack.
    pub fn newest() -> Self {
        Self::find("13.5", "WARPCC_TEST_NVCC")
    }

    /// Every one of the suite.
    pub fn all() -> [Self; 2] {
        [Self::newest(), Self::find("13.0", "WARPCC_TEST_NVCC_130")]
    }

    /// One that is not there is an error, never a skipped test.
    fn find(name: &'static str, variable: &str) -> Self {
        let nvcc = std::env::var_os(variable).map_or_else(
            || toolkits().join(name).join("nvidia/cu13/bin/nvcc"),
            PathBuf::from,
        );
        let found = nvcc.canonicalize().ok();
        let top = found.and_then(|nvcc| Some(nvcc.parent()?.parent()?.to_owned()));
        let top = top.unwrap_or_else(|| {
            panic!(
                "no CUDA {name} toolkit at {}: run `cargo xtask toolkit {name}`, or set {variable}",
                nvcc.display()
            )
        });
        Self { name, top }
    }

    /// One of the toolkit's programs.
    pub fn program(&self, name: &str) -> Command {
        Command::new(self.top.join("bin").join(name))
    }

    /// Runs nvcc on `source` in a folder.
    pub fn nvcc(&self, folder: &Path, words: &str) {
        let mut command = self.program("nvcc");
        command.current_dir(folder).args(words.split_whitespace());
        for name in ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"] {
            command.env_remove(name);
        }
        run(&mut command);
    }
}

/// Where `cargo xtask toolkit` installs.
pub fn toolkits() -> PathBuf {
    std::env::var_os("WARPCC_TOOLKITS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.toolkits"),
        PathBuf::from,
    )
}

/// Runs a command that must succeed; gives its output.
pub fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Two kernels, a function that is not inlined, shared, constant and global memory, and a stack.
pub const SOURCE: &str = "
__device__ int table[64];
__constant__ float factor[4];
template <typename T> __device__ __noinline__ T slow(T x) { return x * x + table[(int)x & 63]; }
template <typename T> __global__ void scale(T *p, int n) {
    __shared__ T s[32];
    int a[100];
    for (int i = 0; i < n; i++) a[i % 100] = i * n;
    s[threadIdx.x & 31] = p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] = s[n & 31] * factor[n & 3] + a[n % 100] + slow<T>(p[1]);
}
template __global__ void scale<float>(float *, int);
template __global__ void scale<double>(double *, int);
extern \"C\" __global__ void __launch_bounds__(64) plain(int *p) { *p = 1; }
int main() { plain<<<1, 1>>>(0); return 0; }
";

/// A folder with the source as `a.cu`.
pub fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.cu"), SOURCE).expect("written");
    folder
}

/// Opens a file that must open.
pub fn open(path: &Path) -> Binary {
    let input = Input {
        path: path.to_owned(),
        member: None,
    };
    Binary::open(input, &Limits::default()).expect("it opens")
}

/// Lists a file in which nothing may be wrong.
pub fn listed(path: &Path, depth: Depth) -> Listing {
    let listing = warpcc_fatbin::list(&open(path), depth, &Limits::default());
    assert_eq!(listing.problems, [], "{}", path.display());
    listing
}
