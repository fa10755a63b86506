//! Plans what nvcc would do: command line and dry-run text in, typed task graph out.
//!
//! Phases, in order: [`invocation`] parses what the user asked for; [`outputs`] lists the files that must exist afterwards;
//! [`transcript`] assigns a meaning to every line of `nvcc --dryrun`; [`graph`] turns the lines into steps, whose edges come
//! from the files that each tool reads and writes ([`tools`]). If anything is not fully understood, the result is
//! [`Unsupported`], and the caller runs plain nvcc.
//!
//! Invariant: this crate touches no files, processes, clock or environment.

pub mod assumed;
pub mod cicc_halves;
pub mod clang;
pub mod clang_driver;
pub mod depfile;
pub mod file_table;
mod flags;
mod gcc_options;
pub mod graph;
mod host_options;
pub mod invocation;
pub mod lines;
pub mod options;
pub mod outputs;
pub mod overlap;
pub mod prediction;
pub mod source_names;
pub mod step;
pub mod tools;
pub mod transcript;
pub mod words;

pub use graph::TaskGraph;
pub use invocation::Invocation;
pub use outputs::{Output, OutputKind};
pub use step::{Arg, FileId, FileKind, Part, PlanFile, Program, Step, Tool};
pub use transcript::Transcript;

/// Why a command line or a dry run is bypassed.
///
/// The text is the name of a counter in `warpcc stats`. So it names a kind of call and not a path of this build; the detail
/// goes to the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}{}{detail}", if detail.is_empty() { "" } else { ": " })]
pub struct Unsupported {
    /// Short, stable, countable.
    pub reason: &'static str,
    /// The part of the input that caused it, for the log.
    pub detail: String,
}

impl Unsupported {
    /// A reason, with the part of the input that caused it.
    pub fn new(reason: &'static str, detail: impl Into<String>) -> Self {
        Self {
            reason,
            detail: detail.into(),
        }
    }
}
