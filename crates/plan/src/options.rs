//! nvcc's options: one row for each, with the kind of its value and its effect on the cache.
//!
//! The rows are those of `nvcc --help` of 13.0 and 13.5. Most options only need to be part of the key ([`Effect::Keyed`]),
//! because the dry run shows their effect. The others change which files a hit must restore, or leave nothing to cache. An
//! option without a row is forwarded to the host compiler if the user asked for that. Otherwise the call is bypassed: a new
//! option may write a file that a hit would not restore.

// tidy: long because it is a table with a row for each of nvcc's options.

/// Whether an option has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// A switch.
    Nothing,
    /// One value.
    One,
    /// A comma list.
    List,
}

/// The effect of an option on the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The option is part of the key as it is.
    Keyed,
    /// Changes how nvcc runs, not its results.
    Unkeyed,
    /// `-t`: like [`Effect::Unkeyed`], and it changes the order of a failing build's messages.
    Threads,
    /// Compile only: `-c`, `-dc`, `-dw`.
    Compile,
    /// `-lib`.
    Library,
    /// `-o`.
    Output,
    /// `-odir`.
    OutputDirectory,
    /// The user keeps the intermediate files.
    Keep,
    /// The folder for the intermediate files.
    KeepDir,
    /// `-MD`.
    Depend,
    /// `-MMD`.
    DependNonSystem,
    /// `-MF`.
    DependOutput,
    /// `-MT`.
    DependTarget,
    /// `-MP`.
    DependPhony,
    /// `-optf`: more arguments are in a file.
    OptionsFile,
    /// `-Xcompiler`, `-Xlinker`, `-Xarchive`: options of the host's tools, see `host_options`.
    HostOptions,
    /// Host debug information, which contains the working directory.
    HostDebug,
    /// Unknown options go to the host compiler.
    ForwardUnknown,
    /// `-arch`, `-code`, `-gencode`: `native` depends on the machine.
    Architecture,
    /// `-ccbin`.
    CompilerBindir,
    /// `-x`.
    Language,
    /// There is nothing to cache, or nothing that is supported: plain nvcc runs. The text is the reason.
    Plain(&'static str),
}

/// One option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The name without dashes; nvcc accepts one or two.
    pub long: &'static str,
    /// The short name without the dash; empty if there is none.
    pub short: &'static str,
    /// Its value.
    pub takes: Takes,
    /// Its meaning.
    pub effect: Effect,
}

const fn row(long: &'static str, short: &'static str, takes: Takes, effect: Effect) -> Row {
    Row {
        long,
        short,
        takes,
        effect,
    }
}

/// Every option, by its long name.
pub const TABLE: &[Row] = &[
    row("Ofast-compile", "Ofc", Takes::One, Effect::Keyed),
    row("Wconversion", "Wconversion", Takes::Nothing, Effect::Keyed),
    row(
        "Wdefault-stream-launch",
        "Wdefault-stream-launch",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row("Werror", "Werror", Takes::List, Effect::Keyed),
    row(
        "Wext-lambda-captures-this",
        "Wext-lambda-captures-this",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row(
        "Wmissing-launch-bounds",
        "Wmissing-launch-bounds",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row(
        "Wno-deprecated-declarations",
        "Wno-deprecated-declarations",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row(
        "Wno-deprecated-gpu-targets",
        "Wno-deprecated-gpu-targets",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row("Wreorder", "Wreorder", Takes::Nothing, Effect::Keyed),
    row(
        "allow-unsupported-compiler",
        "allow-unsupported-compiler",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row(
        "apply-controls",
        "apply-controls",
        Takes::One,
        Effect::Keyed,
    ),
    row(
        "archive-options",
        "Xarchive",
        Takes::List,
        Effect::HostOptions,
    ),
    row("archiver-binary", "arbin", Takes::One, Effect::Keyed),
    row(
        "augment-host-linker-script",
        "aug-hls",
        Takes::Nothing,
        Effect::Plain("-hls"),
    ),
    row("brief-diagnostics", "brief-diag", Takes::One, Effect::Keyed),
    row(
        "clean-targets",
        "clean",
        Takes::Nothing,
        Effect::Plain("-clean"),
    ),
    row("compile", "c", Takes::Nothing, Effect::Compile),
    row(
        "compile-as-tools-patch",
        "astoolspatch",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row(
        "compiler-bindir",
        "ccbin",
        Takes::One,
        Effect::CompilerBindir,
    ),
    row(
        "compiler-options",
        "Xcompiler",
        Takes::List,
        Effect::HostOptions,
    ),
    row("compress-mode", "compress-mode", Takes::One, Effect::Keyed),
    row("concat", "concat", Takes::Nothing, Effect::Keyed),
    row("cubin", "cubin", Takes::Nothing, Effect::Keyed),
    row("cuda", "cuda", Takes::Nothing, Effect::Keyed),
    row("cudadevrt", "cudadevrt", Takes::One, Effect::Keyed),
    row("cudart", "cudart", Takes::One, Effect::Keyed),
    row("debug", "g", Takes::Nothing, Effect::HostDebug),
    row(
        "default-stream",
        "default-stream",
        Takes::One,
        Effect::Keyed,
    ),
    row("define-macro", "D", Takes::List, Effect::Keyed),
    row(
        "dependency-drive-prefix",
        "ddp",
        Takes::One,
        Effect::Plain("windows only"),
    ),
    row("dependency-output", "MF", Takes::One, Effect::DependOutput),
    row(
        "dependency-target-name",
        "MT",
        Takes::One,
        Effect::DependTarget,
    ),
    row("device-c", "dc", Takes::Nothing, Effect::Compile),
    row("device-debug", "G", Takes::Nothing, Effect::HostDebug),
    row(
        "device-entity-has-hidden-visibility",
        "device-entity-has-hidden-visibility",
        Takes::One,
        Effect::Keyed,
    ),
    row("device-link", "dlink", Takes::Nothing, Effect::Keyed),
    row(
        "device-stack-protector",
        "device-stack-protector",
        Takes::One,
        Effect::Keyed,
    ),
    row("device-w", "dw", Takes::Nothing, Effect::Compile),
    row("diag-error", "diag-error", Takes::List, Effect::Keyed),
    row("diag-suppress", "diag-suppress", Takes::List, Effect::Keyed),
    row("diag-warn", "diag-warn", Takes::List, Effect::Keyed),
    row("disable-warnings", "w", Takes::Nothing, Effect::Keyed),
    row(
        "display-error-number",
        "err-no",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row("dlink-time-opt", "dlto", Takes::Nothing, Effect::Keyed),
    row("dont-use-profile", "noprof", Takes::Nothing, Effect::Keyed),
    row("dopt", "dopt", Takes::One, Effect::Keyed),
    row(
        "drive-prefix",
        "dp",
        Takes::One,
        Effect::Plain("windows only"),
    ),
    row(
        "dryrun",
        "dryrun",
        Takes::Nothing,
        Effect::Plain("--dryrun"),
    ),
    row(
        "enable-tile",
        "enable-tile",
        Takes::Nothing,
        Effect::Plain("tile"),
    ),
    row("entries", "e", Takes::List, Effect::Keyed),
    row(
        "expt-extended-lambda",
        "expt-extended-lambda",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row(
        "expt-relaxed-constexpr",
        "expt-relaxed-constexpr",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row(
        "extended-lambda",
        "extended-lambda",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row(
        "extensible-whole-program",
        "ewp",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row(
        "extra-device-vectorization",
        "extra-device-vectorization",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row("fatbin", "fatbin", Takes::Nothing, Effect::Keyed),
    row(
        "fdevice-sanitize",
        "fdevice-sanitize",
        Takes::One,
        Effect::Keyed,
    ),
    row(
        "fdevice-syntax-only",
        "fdevice-syntax-only",
        Takes::Nothing,
        Effect::Plain("-fdevice-syntax-only"),
    ),
    row(
        "fdevice-time-trace",
        "fdevice-time-trace",
        Takes::One,
        Effect::Plain("-fdevice-time-trace"),
    ),
    row("fmad", "fmad", Takes::One, Effect::Keyed),
    row("fmax-errors", "fmax-errors", Takes::One, Effect::Keyed),
    row(
        "force-cl-env-setup",
        "force-cl-env-setup",
        Takes::Nothing,
        Effect::Plain("windows only"),
    ),
    row(
        "forward-unknown-opts",
        "forward-unknown-opts",
        Takes::Nothing,
        Effect::ForwardUnknown,
    ),
    row(
        "forward-unknown-to-host-compiler",
        "forward-unknown-to-host-compiler",
        Takes::Nothing,
        Effect::ForwardUnknown,
    ),
    row(
        "forward-unknown-to-host-linker",
        "forward-unknown-to-host-linker",
        Takes::Nothing,
        Effect::ForwardUnknown,
    ),
    row("frandom-seed", "frandom-seed", Takes::One, Effect::Keyed),
    row(
        "ftemplate-backtrace-limit",
        "ftemplate-backtrace-limit",
        Takes::One,
        Effect::Keyed,
    ),
    row(
        "ftemplate-depth",
        "ftemplate-depth",
        Takes::One,
        Effect::Keyed,
    ),
    row("ftz", "ftz", Takes::One, Effect::Keyed),
    row("gen-opt-lto", "gen-opt-lto", Takes::Nothing, Effect::Keyed),
    row(
        "generate-code",
        "gencode",
        Takes::List,
        Effect::Architecture,
    ),
    row(
        "generate-dependencies",
        "M",
        Takes::Nothing,
        Effect::Plain("-M"),
    ),
    row(
        "generate-dependencies-with-compile",
        "MD",
        Takes::Nothing,
        Effect::Depend,
    ),
    row(
        "generate-dependency-targets",
        "MP",
        Takes::Nothing,
        Effect::DependPhony,
    ),
    row(
        "generate-line-info",
        "lineinfo",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row(
        "generate-nonsystem-dependencies",
        "MM",
        Takes::Nothing,
        Effect::Plain("-MM"),
    ),
    row(
        "generate-nonsystem-dependencies-with-compile",
        "MMD",
        Takes::Nothing,
        Effect::DependNonSystem,
    ),
    row("gpu-architecture", "arch", Takes::One, Effect::Architecture),
    row("gpu-code", "code", Takes::List, Effect::Architecture),
    row("help", "h", Takes::Nothing, Effect::Plain("--help")),
    row("help", "?", Takes::Nothing, Effect::Plain("--help")),
    row(
        "host-linker-script",
        "hls",
        Takes::One,
        Effect::Plain("-hls"),
    ),
    row("include-path", "I", Takes::List, Effect::Keyed),
    row(
        "input-drive-prefix",
        "idp",
        Takes::One,
        Effect::Plain("windows only"),
    ),
    row("jobserver", "jobserver", Takes::Nothing, Effect::Unkeyed),
    row("jump-table-density", "jtd", Takes::One, Effect::Keyed),
    row("keep", "keep", Takes::Nothing, Effect::Keep),
    row(
        "keep-device-functions",
        "keep-device-functions",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row("keep-dir", "keep-dir", Takes::One, Effect::KeepDir),
    row("lib", "lib", Takes::Nothing, Effect::Library),
    row("libdevice-directory", "ldir", Takes::One, Effect::Keyed),
    row("library", "l", Takes::List, Effect::Keyed),
    row("library-path", "L", Takes::List, Effect::Keyed),
    row("link", "link", Takes::Nothing, Effect::Keyed),
    row(
        "linker-options",
        "Xlinker",
        Takes::List,
        Effect::HostOptions,
    ),
    row(
        "list-gpu-arch",
        "arch-ls",
        Takes::Nothing,
        Effect::Plain("--list-gpu"),
    ),
    row(
        "list-gpu-code",
        "code-ls",
        Takes::Nothing,
        Effect::Plain("--list-gpu"),
    ),
    row("lto", "lto", Takes::Nothing, Effect::Keyed),
    row("ltoir", "ltoir", Takes::Nothing, Effect::Keyed),
    row("m64", "m64", Takes::Nothing, Effect::Keyed),
    row("machine", "m", Takes::One, Effect::Keyed),
    row("maxrregcount", "maxrregcount", Takes::One, Effect::Keyed),
    row("no-align-double", "", Takes::Nothing, Effect::Keyed),
    row("no-compress", "no-compress", Takes::Nothing, Effect::Keyed),
    row("no-device-link", "nodlink", Takes::Nothing, Effect::Keyed),
    row(
        "no-display-error-number",
        "no-err-no",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row("no-exceptions", "noeh", Takes::Nothing, Effect::Keyed),
    row(
        "no-host-device-initializer-list",
        "nohdinitlist",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row(
        "no-host-device-move-forward",
        "nohdmoveforward",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row("nvlink-options", "Xnvlink", Takes::List, Effect::Keyed),
    row("nvprune-options", "Xnvprune", Takes::List, Effect::Keyed),
    row(
        "objdir-as-tempdir",
        "objtemp",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row("optimization-info", "opt-info", Takes::List, Effect::Keyed),
    row("optimize", "O", Takes::One, Effect::Keyed),
    row("options-file", "optf", Takes::List, Effect::OptionsFile),
    row("optix-ir", "optix-ir", Takes::Nothing, Effect::Keyed),
    row(
        "output-directory",
        "odir",
        Takes::One,
        Effect::OutputDirectory,
    ),
    row("output-file", "o", Takes::One, Effect::Output),
    row("pre-include", "include", Takes::List, Effect::Keyed),
    row("prec-div", "prec-div", Takes::One, Effect::Keyed),
    row("prec-sqrt", "prec-sqrt", Takes::One, Effect::Keyed),
    row("preprocess", "E", Takes::Nothing, Effect::Plain("-E")),
    row("profile", "pg", Takes::Nothing, Effect::HostDebug),
    row("prune", "prune", Takes::Nothing, Effect::Keyed),
    row("ptx", "ptx", Takes::Nothing, Effect::Keyed),
    row("ptxas-options", "Xptxas", Takes::List, Effect::Keyed),
    row("qpp-config", "qpp-config", Takes::Nothing, Effect::Keyed),
    row("relocatable-device-code", "rdc", Takes::One, Effect::Keyed),
    row("relocatable-link", "r", Takes::Nothing, Effect::Keyed),
    row(
        "relocatable-ptx",
        "reloc-ptx",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row("resource-usage", "res-usage", Takes::Nothing, Effect::Keyed),
    row("restrict", "restrict", Takes::Nothing, Effect::Keyed),
    row("run", "run", Takes::Nothing, Effect::Plain("-run")),
    row("run-args", "run-args", Takes::List, Effect::Plain("-run")),
    row(
        "safety-compatibility",
        "safety-compat",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row("sanitize", "sanitize", Takes::One, Effect::Keyed),
    row("save-temps", "save-temps", Takes::Nothing, Effect::Keep),
    row("shared", "shared", Takes::Nothing, Effect::Keyed),
    row("simt-only", "simt-only", Takes::Nothing, Effect::Keyed),
    row(
        "skip-ptx-semantics-check",
        "skip-ptx-semantics-check",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row("source-in-ptx", "src-in-ptx", Takes::Nothing, Effect::Keyed),
    row("split-compile", "split-compile", Takes::One, Effect::Keyed),
    row(
        "split-compile-extended",
        "split-compile-extended",
        Takes::One,
        Effect::Keyed,
    ),
    row(
        "static-global-template-stub",
        "static-global-template-stub",
        Takes::One,
        Effect::Keyed,
    ),
    row("std", "std", Takes::One, Effect::Keyed),
    row("stdlib", "stdlib", Takes::One, Effect::Keyed),
    row("system-include", "isystem", Takes::List, Effect::Keyed),
    row("target-directory", "target-dir", Takes::One, Effect::Keyed),
    row("threads", "t", Takes::One, Effect::Threads),
    row(
        "tile-only",
        "tile-only",
        Takes::Nothing,
        Effect::Plain("tile"),
    ),
    row(
        "tile-preview",
        "tile-preview",
        Takes::One,
        Effect::Plain("tile"),
    ),
    row("tilebc", "tilebc", Takes::Nothing, Effect::Plain("tile")),
    row(
        "tilecubin",
        "tilecubin",
        Takes::Nothing,
        Effect::Plain("tile"),
    ),
    row(
        "tilefatbin",
        "tilefatbin",
        Takes::Nothing,
        Effect::Plain("tile"),
    ),
    row(
        "tileiras-options",
        "Xtileiras",
        Takes::List,
        Effect::Plain("tile"),
    ),
    row("time", "time", Takes::One, Effect::Plain("-time")),
    row("undefine-macro", "U", Takes::List, Effect::Keyed),
    row(
        "use-local-env",
        "use-local-env",
        Takes::Nothing,
        Effect::Plain("windows only"),
    ),
    row(
        "use_fast_math",
        "use_fast_math",
        Takes::Nothing,
        Effect::Keyed,
    ),
    row("utf-8", "utf-8", Takes::Nothing, Effect::Keyed),
    row("verbose", "v", Takes::Nothing, Effect::Plain("--verbose")),
    row("verbose2", "v2", Takes::Nothing, Effect::Plain("--verbose")),
    row("version", "V", Takes::Nothing, Effect::Plain("--version")),
    row("x", "x", Takes::One, Effect::Language), // Not in --help, but accepted by every nvcc seen, and used by xgboost and CMake.
    row("cudafe-options", "Xcudafe", Takes::List, Effect::Keyed),
    row("cicc-options", "Xcicc", Takes::List, Effect::Keyed),
    row("fatbin-options", "Xfatbin", Takes::List, Effect::Keyed),
    row(
        "fdevice-time-trace-granularity",
        "",
        Takes::One,
        Effect::Plain("-fdevice-time-trace"),
    ),
];

/// An option that was found in an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match<'a> {
    /// The option's row.
    pub row: &'static Row,
    /// The value in the same argument: `-O3`, `--std=c++17`.
    pub attached: Option<&'a str>,
}

/// Finds the option in `argument`, which starts with `-`.
pub fn find(argument: &str) -> Option<Match<'_>> {
    let body = argument
        .strip_prefix("--")
        .or_else(|| argument.strip_prefix('-'))?;
    let (name, attached) = match body.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (body, None),
    };
    let exact = TABLE
        .iter()
        .find(|row| row.long == name || (!row.short.is_empty() && row.short == name));
    if let Some(row) = exact {
        // Arguments such as `-G=x` or `-c=x` have no known meaning.
        return (attached.is_none() || row.takes != Takes::Nothing)
            .then_some(Match { row, attached });
    }
    // One letter with its value directly behind it: -Iinclude, -DX=1, -O3, -t4, -lm.
    if argument.starts_with("--") {
        return None;
    }
    let first = body.chars().next()?;
    let rest = &body[first.len_utf8()..];
    let row = TABLE.iter().find(|row| {
        row.takes != Takes::Nothing && row.short.len() == 1 && row.short.starts_with(first)
    })?;
    Some(Match {
        row,
        attached: Some(rest.strip_prefix('=').unwrap_or(rest)),
    })
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
