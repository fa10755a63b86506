//! The errors, each with all details: the full log, the place in the user's text, the places that were tried.

use std::path::PathBuf;

use crate::diagnostics::SourceLocation;

/// Why something was not compiled, linked or loaded.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A library of NVIDIA's was not found, or does not load.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// An argument is wrong.
    #[error("{argument}: {problem}")]
    Invalid {
        /// The argument, in the caller's words.
        argument: String,
        /// The problem with it, and the expected value.
        problem: String,
    },
    /// This version of a library cannot do what was asked for.
    #[error("{what} needs {needs}; {library} is {version}")]
    Unsupported {
        /// The feature that was asked for.
        what: String,
        /// The version that it needs.
        needs: String,
        /// The library.
        library: String,
        /// Its version.
        version: String,
    },
    /// The text does not compile.
    #[error("{0}")]
    Compile(Box<CompileFailure>),
    /// The images do not link.
    #[error("linking {what} for {target} failed ({code}):\n{log}")]
    Link {
        /// The name of the request.
        what: String,
        /// The architecture.
        target: String,
        /// The linker's result.
        code: String,
        /// The linker's log, whole.
        log: String,
    },
    /// An image cannot be put into a fat binary.
    #[error("making a fat binary failed at {what}: {code}")]
    Fatbin {
        /// The image.
        what: String,
        /// nvFatbin's message.
        code: String,
    },
    /// The caller cancelled the request.
    #[error("compiling {what} was cancelled")]
    Cancelled {
        /// The name of the program.
        what: String,
    },
    /// The request took longer than the caller allowed.
    #[error("compiling {what} took longer than allowed")]
    Deadline {
        /// The name of the program.
        what: String,
    },
    /// A call of a library of NVIDIA's failed for a reason other than the text.
    #[error("{call} failed: {code}")]
    Call {
        /// The function.
        call: &'static str,
        /// The library's name for the error.
        code: String,
    },
    /// The driver returned an error.
    #[error(transparent)]
    Driver(#[from] crate::driver_error::DriverError),
    /// A file or folder could not be used.
    #[error("failed to {action} {}: {problem}", path.display())]
    File {
        /// The operation that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        problem: String,
    },
}

impl Error {
    /// An argument that is wrong.
    pub(crate) fn invalid(argument: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid {
            argument: argument.into(),
            problem: problem.into(),
        }
    }

    /// The kind of the error, for branches.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Library(_) => ErrorKind::Library,
            Self::Invalid { .. } => ErrorKind::Invalid,
            Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::Compile(_) => ErrorKind::Compile,
            Self::Link { .. } => ErrorKind::Link,
            Self::Cancelled { .. } => ErrorKind::Cancelled,
            Self::Deadline { .. } => ErrorKind::Deadline,
            Self::Call { .. } => ErrorKind::Call,
            Self::Driver(_) => ErrorKind::Driver,
            Self::File { .. } => ErrorKind::File,
            Self::Fatbin { .. } => ErrorKind::Fatbin,
        }
    }
}

/// The kind of an [`Error`]. The numbers do not change: the C interface uses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(i32)]
pub enum ErrorKind {
    /// [`Error::Library`].
    Library = 1,
    /// [`Error::Invalid`].
    Invalid = 2,
    /// [`Error::Unsupported`].
    Unsupported = 3,
    /// [`Error::Compile`].
    Compile = 4,
    /// [`Error::Link`].
    Link = 5,
    /// [`Error::Cancelled`].
    Cancelled = 6,
    /// [`Error::Deadline`].
    Deadline = 7,
    /// [`Error::Call`].
    Call = 8,
    /// [`Error::Driver`].
    Driver = 9,
    /// [`Error::File`].
    File = 10,
    /// [`Error::Fatbin`].
    Fatbin = 11,
}

/// A library was not found, or does not load.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{library} cannot be used{}; {advice}\ntried:{}", because(.problem), listed(.tried))]
pub struct LibraryError {
    /// The library.
    pub library: &'static str,
    /// The problem of a library that was found.
    pub problem: String,
    /// How to install one.
    pub advice: String,
    /// The places that were tried, in order, each with the result.
    pub tried: Vec<String>,
}

fn because(problem: &str) -> String {
    match problem {
        "" => String::new(),
        problem => format!(": {problem}"),
    }
}

fn listed(tried: &[String]) -> String {
    match tried {
        [] => " nothing".to_owned(),
        tried => tried.iter().map(|line| format!("\n  {line}")).collect(),
    }
}

/// A text that does not compile.
#[derive(Debug, Clone)]
pub struct CompileFailure {
    /// The kernel or program, as the caller named it.
    pub name: String,
    /// The target that it was compiled for.
    pub target: String,
    /// NVRTC's version: `13.5`.
    pub nvrtc: String,
    /// NVRTC's name for the error.
    pub code: String,
    /// All options that NVRTC was given, in order.
    pub options: Vec<String>,
    /// NVRTC's log, complete.
    pub log: String,
    /// The place of the first error, if the log names one.
    pub place: Option<SourceLocation>,
    /// The file with the full source as NVRTC saw it, if it could be saved.
    pub saved: Option<PathBuf>,
}

impl std::fmt::Display for CompileFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} does not compile for {} (NVRTC {}, {})",
            self.name, self.target, self.nvrtc, self.code
        )?;
        if let Some(place) = &self.place {
            write!(f, "\n{place}")?;
        }
        write!(f, "\n{}", self.log.trim_end())?;
        write!(f, "\noptions: {}", self.options.join(" "))?;
        match &self.saved {
            Some(path) => write!(f, "\nthe source as NVRTC saw it: {}", path.display()),
            None => Ok(()),
        }
    }
}
