//! The words that are warpcc's own subcommands. Any other first word is a compiler to launch.

use std::ffi::OsStr;

/// Subcommands and what else clap answers; everything else is a compiler.
pub const OWN_WORDS: [&str; 20] = [
    "run",
    "stats",
    "report",
    "monitor",
    "doctor",
    "cache",
    "remote",
    "config",
    "why",
    "explain",
    "fatbin",
    "jit",
    "rtc",
    "completions",
    "man",
    "help",
    "-h",
    "--help",
    "-V",
    "--version",
];

/// Whether warpcc's first argument is for warpcc; if not, it names a compiler to launch.
pub fn is_subcommand(first_arg: &OsStr) -> bool {
    OWN_WORDS.iter().any(|word| first_arg == *word)
}

/// The subcommand that a compiler which could not be found was probably meant to be.
pub fn nearest_subcommand(first_arg: &str) -> Option<&'static str> {
    let close = |word: &&str| strsim::jaro_winkler(first_arg, word) > 0.84;
    OWN_WORDS
        .into_iter()
        .filter(|word| !word.starts_with('-'))
        .find(close)
}
