//! A difference between what a run saw and what it would see now, and its text.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The name in [`Difference::VariableChanged`] if a program ran that may look at every variable, and any of them changed.
pub const ANY_VARIABLE: &str = "*";

/// The name in [`Difference::VariableChanged`] for the working directory that a program asked for.
pub const WORKING_DIRECTORY: &str = "the working directory";

/// One difference that a run would see.
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
    /// A path that did not exist exists now.
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
    /// The path that differs, or the variable's name.
    pub fn path(&self) -> &Path {
        match self {
            Difference::FileChanged { path }
            | Difference::FileMissing { path }
            | Difference::FileAppeared { path } => path,
            Difference::VariableChanged { name } => Path::new(name),
        }
    }

    /// The file, if its content differs.
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
