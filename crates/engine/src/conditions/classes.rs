//! Tables of variables: which never change a result although tools ask for them, and for which a tool is known to ask. A
//! variable in none of these tables counts in full.

use std::ffi::OsStr;

use warpcc_plan::Tool;

/// Variables that tools ask for and that change no result, with the reason.
const HARMLESS: [(&str, &str); 8] = [
    ("TMPDIR", "set by us to the private folder"),
    ("TMP", "asked for besides TMPDIR, which is set"),
    ("TEMP", "asked for besides TMPDIR, which is set"),
    ("TEMPDIR", "asked for besides TMPDIR, which is set"),
    ("LD_PRELOAD", "ours; the user's part is in the direct key"),
    (
        "MAKEFLAGS",
        "names a jobserver: how many run, not what they make",
    ),
    ("PATH", "counts by the programs that it leads to"),
    ("TERM", "in the terminal's key where there is a terminal"),
];

/// Whether the variable changes no result.
pub fn is_harmless(name: &OsStr) -> bool {
    is_ours(name) || HARMLESS.iter().any(|(known, _)| name == *known)
}

/// Whether warpcc sets the variable itself, for its own use.
pub(super) fn is_ours(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"WARPCC_")
}

/// The variables that NVIDIA's tools and host compilers ask for, used for steps that run on another machine, where
/// their requests are not observed. Seen on 11.8, 12.4, 13.0 and 13.5, with gcc 11 and 12 and clang 14 and 19.
/// `docs/design/variables.md` says which tool asks for which variable, and a test of `warpcc` (`variables.rs`) compares
/// this table with the installed toolkits.
#[expect(clippy::too_many_lines, reason = "a table")]
pub fn seen_in(tool: Tool) -> &'static [&'static str] {
    match tool {
        Tool::Cicc | Tool::Nvvm => &[
            "AS_SECURE_LOG_FILE",
            "EDG_BASE",
            "EDG_MODULES_PATH",
            "LIBNVVM_DISABLE_CONCURRENT_API",
            "LLVM_IGNORED_ENV_VAR",
            "LLVM_OVERRIDE_PRODUCER",
            "MALLOC_CONF",
            "NOCOLOR",
            "NVVMCCWIZ",
            "NVVM_IR_VER_CHK",
            "NV_NVVM_VERSION",
            "OPENSSL_ia32cap",
            "PWD",
            "USR_INCLUDE",
            "bar",
        ],
        Tool::CudaFe => &[
            "EDG_BASE",
            "EDG_MODULES_PATH",
            "EDG_SUPPRESS_ASSERTION_LINE_NUMBER",
            "NOCOLOR",
            "USR_INCLUDE",
        ],
        Tool::Ptxas => &[
            "CAN_FINALIZE_DEBUG",
            "DUMP_KNOBS_TO_FILE",
            "FINALIZER_CUBIE",
            "FINALIZER_USE_LEGACY_ELF_BUILDER",
            // Only 13.2.
            "NVIDIA_KEY",
            "OPENSSL_ia32cap",
        ],
        // For link-time optimisation nvlink contains the compilers of cicc and ptxas.
        Tool::Nvlink => &[
            "AS_SECURE_LOG_FILE",
            "CAN_FINALIZE_DEBUG",
            "DUMP_KNOBS_TO_FILE",
            "LIBNVVM_DISABLE_CONCURRENT_API",
            "LIBNVVM_NVVM_VERSION",
            "LIBRARY_PATH",
            "LLVM_IGNORED_ENV_VAR",
            "LLVM_OVERRIDE_PRODUCER",
            "NVVM_IR_VER_CHK",
            "NV_NVVM_VERSION",
            "OPENSSL_ia32cap",
            "bar",
        ],
        Tool::Fatbinary | Tool::FilterDependencies => &[],
        Tool::Preprocess
        | Tool::HostCompile
        | Tool::Clang
        | Tool::HostAssembly
        | Tool::Assemble
        | Tool::HostLink
        | Tool::Archive => &[
            "AS_SECURE_LOG_FILE",
            "BINUTILS_ROOT",
            "CCC_OVERRIDE_OPTIONS",
            "CC_LOG_DIAGNOSTICS",
            "CC_PRINT_HEADERS",
            "CC_PRINT_HEADERS_FORMAT",
            "CC_PRINT_INTERNAL_STAT",
            "CC_PRINT_OPTIONS",
            "CC_PRINT_PROC_STAT",
            "CLANG_NO_DEFAULT_CONFIG",
            "COLLECT_GCC",
            "COLLECT_GCC_OPTIONS",
            "COLLECT_NO_DEMANGLE",
            "COMPILER_PATH",
            "CPATH",
            "CPLUS_INCLUDE_PATH",
            "C_INCLUDE_PATH",
            "DEPENDENCIES_OUTPUT",
            "FORCE_CLANG_DIAGNOSTICS_CRASH",
            "G++_ROOT",
            "GCC_COMPARE_DEBUG",
            "GCC_EXEC_PREFIX",
            "GCC_EXTRA_DIAGNOSTIC_OUTPUT",
            "GCC_ROOT",
            "GNUTARGET",
            "LDEMULATION",
            "LD_RUN_PATH",
            "LIBCTF_DEBUG",
            "LIBRARY_PATH",
            // LLVM's plugin of binutils, which Debian's LLVM packages put into `bfd-plugins`.
            "LLVM_IGNORED_ENV_VAR",
            "LLVM_OVERRIDE_PRODUCER",
            "LPATH",
            "NO_COLOR",
            "OBJCPLUS_INCLUDE_PATH",
            "OBJC_INCLUDE_PATH",
            "PWD",
            "ROCM_PATH",
            "SOURCE_DATE_EPOCH",
            "SUNPRO_DEPENDENCIES",
            "bar",
        ],
    }
}
