//! Errors in the settings, each with the place to fix it.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

/// A setting that cannot be used; the text names the file and line, or the variable.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The settings file exists, or was asked for by name, and cannot be read.
    #[error("{}: cannot read the settings: {error}", path.display())]
    Unreadable {
        /// The settings file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The settings file is not TOML.
    #[error("{}:{line}: not TOML: {message}", path.display())]
    Syntax {
        /// The settings file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The parser's message.
        message: String,
    },
    /// The settings file has a key that warpcc does not know.
    #[error("{}:{line}: unknown setting `{key}`{hint}", path.display())]
    UnknownKey {
        /// The settings file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The key as written, with its table.
        key: String,
        /// The end of the message: the known key that looks most like it, or all of them.
        hint: String,
    },
    /// A key whose value is of the wrong kind, or that is in the wrong place.
    #[error("{}:{line}: {key} {problem}", path.display())]
    MisplacedKey {
        /// The settings file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The key as written, with its table.
        key: String,
        /// The problem, as the rest of a sentence that begins with the key.
        problem: &'static str,
    },
    /// A value that its setting cannot take.
    #[error("{place}: `{value}` {problem}")]
    Value {
        /// `PATH:LINE: key`, or the name of the variable.
        place: String,
        /// The value as written.
        value: String,
        /// The problem, as the rest of a sentence that begins with the value.
        problem: Cow<'static, str>,
    },
    /// A name on the command line that is no setting's.
    #[error("there is no setting `{name}`, did you mean `{nearest}`?")]
    UnknownName {
        /// The name as written.
        name: String,
        /// The setting that looks most like it.
        nearest: &'static str,
    },
    /// There is no folder to put the settings file in.
    #[error(
        "no folder for the settings file: set WARPCC_CONFIG, XDG_CONFIG_HOME or HOME to an absolute path"
    )]
    NoFile,
    /// There is no folder to put the cache in.
    #[error("no folder for the cache: set WARPCC_DIR, XDG_CACHE_HOME or HOME to an absolute path")]
    NoHome,
}
