//! The programs that call nvcc: which words in which files show each, and what to set for it.

/// A program that calls nvcc.
pub(super) struct Caller {
    pub(super) name: &'static str,
    /// Names of the files that show it; a `*` at the beginning stands for anything.
    pub(super) files: &'static [&'static str],
    /// One of these words is in the file.
    pub(super) words: &'static [&'static str],
    /// The lines to run before the build.
    pub(super) set: &'static [&'static str],
    /// The command that writes them into a shell's start file.
    pub(super) setup: Option<&'static str>,
    /// What else to know.
    pub(super) note: &'static str,
}

const SHIM: &str = "warpcc shim ~/cuda-warpcc";

pub(super) const IN_PATH: &str = "warpcc setup --shell";

const PYTHON: &[&str] = &["*.py", "pyproject.toml", "*.cfg", "*requirements*.txt"];

const RUST: &[&str] = &["Cargo.toml", "build.rs"];

const MAKE: &[&str] = &["Makefile", "makefile", "GNUmakefile", "*.mk"];

/// A row for each program.
pub(super) const CALLERS: [Caller; 11] = [
    Caller {
        name: "CMake",
        files: &["CMakeLists.txt"],
        words: &["CUDA"],
        set: &["export CMAKE_CUDA_COMPILER_LAUNCHER=warpcc"],
        setup: Some("warpcc setup --cmake"),
        note: "CMake reads it when it configures a build folder for the first time.",
    },
    Caller {
        name: "Kokkos' nvcc_wrapper",
        files: &["CMakeLists.txt", "*.cmake", "Makefile", "*.mk"],
        words: &["nvcc_wrapper"],
        set: &[SHIM, "export CUDA_ROOT=~/cuda-warpcc"],
        setup: None,
        note: "",
    },
    Caller {
        name: "PyTorch extensions",
        files: PYTHON,
        words: &["cpp_extension", "CUDAExtension", "load_inline"],
        set: &[
            "export PYTORCH_NVCC='warpcc nvcc'",
            "export WARPCC_BASE_DIR=auto",
        ],
        setup: Some("warpcc setup --pip"),
        note: "With WARPCC_BASE_DIR builds in random folders hit. The objects differ from nvcc's in the names of folders.",
    },
    Caller {
        name: "FlashInfer",
        files: PYTHON,
        words: &["flashinfer"],
        set: &["export FLASHINFER_NVCC_LAUNCHER=warpcc"],
        setup: None,
        note: "",
    },
    Caller {
        name: "DeepGEMM",
        files: PYTHON,
        words: &["deep_gemm", "deep-gemm", "DeepGEMM"],
        set: &[SHIM, "export DG_JIT_NVCC_COMPILER=~/cuda-warpcc/bin/nvcc"],
        setup: None,
        note: "",
    },
    Caller {
        name: "CuPy with nvcc",
        files: &["*.py"],
        words: &["backend='nvcc'", "backend=\"nvcc\""],
        set: &["export NVCC='warpcc nvcc'"],
        setup: None,
        note: "",
    },
    Caller {
        name: "the cc crate",
        files: &["build.rs"],
        words: &[".cuda(true)"],
        set: &[SHIM, "export NVCC=~/cuda-warpcc/bin/nvcc"],
        setup: None,
        note: "",
    },
    Caller {
        name: "cudaforge, as candle has it",
        files: RUST,
        words: &["cudaforge", "candle-kernels"],
        set: &[SHIM, "export NVCC=~/cuda-warpcc/bin/nvcc"],
        setup: None,
        note: "",
    },
    Caller {
        name: "bindgen_cuda",
        files: RUST,
        words: &["bindgen_cuda"],
        set: &[IN_PATH],
        setup: Some(IN_PATH),
        note: "It starts nvcc by its name, and reads no variable.",
    },
    Caller {
        name: "rules_cuda (Bazel)",
        files: &[
            "MODULE.bazel",
            "WORKSPACE",
            "WORKSPACE.bazel",
            "BUILD",
            "BUILD.bazel",
        ],
        words: &["rules_cuda"],
        set: &[
            SHIM,
            "bazel build --repo_env=CUDA_PATH=$HOME/cuda-warpcc --action_env=WARPCC_DIR=$HOME/.cache/warpcc \
             --sandbox_writable_path=$HOME/.cache/warpcc …",
        ],
        setup: None,
        note: "The options were not tried with Bazel.",
    },
    Caller {
        name: "make",
        files: MAKE,
        words: &["$(NVCC)", "${NVCC}"],
        set: &["make NVCC='warpcc nvcc'"],
        setup: None,
        note: "",
    },
];
