//! The words that are warpcc's own subcommands. Any other first word is a compiler to launch.

use std::ffi::OsStr;

/// Subcommands, and the other words that clap answers. Every other word is a compiler.
pub const OWN_WORDS: [&str; 24] = [
    "run",
    "stats",
    "report",
    "monitor",
    "doctor",
    "cache",
    "remote",
    "config",
    "why",
    "why-gpu",
    "explain",
    "fatbin",
    "jit",
    "rtc",
    "setup",
    "shim",
    "compile-commands",
    "completions",
    "man",
    "help",
    "-h",
    "--help",
    "-V",
    "--version",
];

/// Whether warpcc's first argument is for warpcc. If not, the argument names a compiler to launch.
pub fn is_subcommand(first_arg: &OsStr) -> bool {
    OWN_WORDS.iter().any(|word| first_arg == *word)
}

/// The subcommand whose name is close to `first_arg`, which is no subcommand itself; `None` where no name is close.
pub fn nearest_subcommand(first_arg: &str) -> Option<&'static str> {
    let close = |word: &&str| strsim::jaro_winkler(first_arg, word) > 0.84;
    OWN_WORDS
        .into_iter()
        .filter(|word| !word.starts_with('-'))
        .find(close)
}

/// Other names for our commands, each with the command: options of ccache and sccache, and words that people try. Options
/// that nvcc also has, such as `-c`, are left out: a user who writes one forgot the compiler.
const FOREIGN: [(&str, &str); 17] = [
    ("-s", "warpcc stats"),
    ("--show-stats", "warpcc stats"),
    ("--print-stats", "warpcc stats --json"),
    ("--show-compression", "warpcc cache size"),
    ("-z", "warpcc stats --zero"),
    ("--zero-stats", "warpcc stats --zero"),
    ("-C", "warpcc cache clear"),
    ("--clear", "warpcc cache clear"),
    ("--cleanup", "warpcc cache gc"),
    ("--show-config", "warpcc config"),
    ("--get-config", "warpcc config"),
    ("--set-config", "warpcc config"),
    (
        "--max-size",
        "WARPCC_MAX_SIZE=20G, or max_size in the settings file",
    ),
    ("--start-server", "nothing: there is no server"),
    ("--stop-server", "nothing: there is no server"),
    ("version", "warpcc --version"),
    ("clean", "warpcc cache clear"),
];

/// The command that a user of another cache may have meant; `None` for an unknown word.
pub fn meant_by(first_arg: &str) -> Option<&'static str> {
    let option = first_arg
        .split_once('=')
        .map_or(first_arg, |(name, _)| name);
    let known = FOREIGN.iter().find(|(word, _)| *word == option);
    known.map(|(_, ours)| *ours)
}
