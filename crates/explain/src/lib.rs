//! A compilation explained: every command of nvcc's plan, its options in words, the files that it read and wrote, and
//! what matters in each new one.
//!
//! The caller runs the plan and hands over bytes ([`Recorder::step`]). The result is an [`Explanation`], which is data;
//! [`text`], [`page`], [`markdown`] or `serde_json` write it down. Nothing here touches a file, a process or the
//! environment.
//!
//! Statements about nvcc were checked on CUDA 13.0 and 13.5; a file in another shape is described more briefly, never
//! with a guess.

mod block;
mod columns;
mod explanation;
mod inspect;
pub mod markdown;
pub mod options;
pub mod page;
mod recorder;
pub mod text;
mod tool_docs;

pub use block::{Block, Line, NamedValue, Table};
pub use explanation::{
    CommandOutcome, Explanation, FORMAT, FileExplanation, FileState, OptionRow, ReadFile, Role,
    StepExplanation, TreeRow, Variable,
};
pub use recorder::{ObservedCall, Recorder, StepRun};
