//! Compilation databases: <https://clang.llvm.org/docs/JSONCompilationDatabase.html>.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

/// One command. It has `arguments`, or `command`, which is for a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompileCommand {
    /// The working directory.
    pub directory: String,
    /// The source.
    pub file: String,
    /// The words of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Vec<String>>,
    /// The command, quoted for a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What it makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

impl CompileCommand {
    /// The words of the command; `None` where its quotes are not closed, or it has none.
    pub fn words(&self) -> Option<Vec<String>> {
        match &self.arguments {
            Some(words) => Some(words.clone()),
            None => shlex::split(self.command.as_deref()?),
        }
    }

    /// The source's path, from the root.
    pub fn path(&self) -> PathBuf {
        Path::new(&self.directory).join(&self.file)
    }
}

/// Reads a database.
///
/// # Errors
/// It cannot be read, or is no database.
pub fn read(file: &Path) -> anyhow::Result<Vec<CompileCommand>> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_slice(&bytes)
        .with_context(|| format!("{} is not a compilation database", file.display()))
}
