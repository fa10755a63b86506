//! A setting's value, with the place where it was set.

use std::fmt;
use std::path::PathBuf;

/// The place where a setting was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingSource {
    /// Nowhere: it is warpcc's default.
    Default,
    /// The settings file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// The environment variable of this name.
    Environment(&'static str),
}

impl SettingSource {
    /// The same place, in another line of the file if one is given.
    pub(super) fn in_line(&self, line: Option<usize>) -> Self {
        match (self, line) {
            (Self::File { path, .. }, Some(line)) => Self::File {
                path: path.clone(),
                line,
            },
            _ => self.clone(),
        }
    }
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "file {}:{line}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
        }
    }
}

/// A value and the place where it was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value in force.
    pub value: T,
    /// The place where it was set.
    pub source: SettingSource,
}

impl<T> Setting<T> {
    /// The default value.
    pub fn default_of(value: T) -> Self {
        Self {
            value,
            source: SettingSource::Default,
        }
    }

    /// Replaces the value and its source.
    pub fn assign(&mut self, value: T, source: &SettingSource) {
        self.value = value;
        self.source = source.clone();
    }
}

impl<T> Setting<Option<T>> {
    /// A secret as a row of a list: whether it is set, and who decided it.
    pub(super) fn hidden_row(&self) -> (String, &SettingSource) {
        let shown = match self.value {
            Some(_) => "(not shown)",
            None => "",
        };
        (shown.to_owned(), &self.source)
    }
}

/// Where the log goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTarget {
    /// Standard error, between nvcc's own messages.
    Stderr,
    /// Appended to this file.
    File(PathBuf),
}

impl fmt::Display for LogTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stderr => f.write_str("stderr"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// One setting as text, for `warpcc config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingRow {
    /// The key in the settings file.
    pub name: &'static str,
    /// The environment variable.
    pub variable: &'static str,
    /// The value in force; empty where there is none.
    pub value: String,
    /// The place where it was set.
    pub source: SettingSource,
}
