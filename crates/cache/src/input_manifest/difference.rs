//! What a run would see differently, and how it is said.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The name of a variable in [`Difference::VariableChanged`] where a program ran that may look at every variable, and
/// any of them changed.
pub const ANY_VARIABLE: &str = "*";

/// The name of a variable in [`Difference::VariableChanged`] where it is the working directory that a program asked for.
pub const WORKING_DIRECTORY: &str = "the working directory";

/// One thing a run would see differently.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Difference {
    /// A file has another content.
    FileChanged {
        /// The file.
        path: PathBuf,
    },
    /// A file that was read is gone, cannot be read, or is no file any more.
    FileMissing {
        /// The file.
        path: PathBuf,
    },
    /// A path that led nowhere leads somewhere.
    FileAppeared {
        /// The path.
        path: PathBuf,
    },
    /// An environment variable that a tool asked for has another value.
    VariableChanged {
        /// Its name.
        name: String,
    },
}

impl Difference {
    /// The path it is about, or the variable's name.
    pub fn path(&self) -> &Path {
        match self {
            Difference::FileChanged { path }
            | Difference::FileMissing { path }
            | Difference::FileAppeared { path } => path,
            Difference::VariableChanged { name } => Path::new(name),
        }
    }

    /// The file, where it is one with another content.
    pub(crate) fn changed_file(&self) -> Option<&Path> {
        match self {
            Difference::FileChanged { path } => Some(path),
            _ => None,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Difference::FileChanged { .. } => "changed",
            Difference::FileMissing { .. } => "is missing",
            Difference::FileAppeared { .. } => "appeared",
            Difference::VariableChanged { name } if name == ANY_VARIABLE => {
                let text =
                    "an environment variable changed, and a program ran that may read them all";
                return f.write_str(text);
            }
            Difference::VariableChanged { name } if name == WORKING_DIRECTORY => {
                return f.write_str("the working directory changed, and a program asked for it");
            }
            Difference::VariableChanged { name } => {
                return write!(f, "the environment variable {name} changed");
            }
        };
        write!(f, "{} {what}", self.path().display())
    }
}
