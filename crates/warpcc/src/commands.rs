//! warpcc's own commands, a folder each: arguments, work, output.
//!
//! A command has its arguments at the top of its file or in `args`, begins in `run`, and writes in `print`. A file that no
//! command is named after is shared by several. A call of nvcc uses none of this.

pub mod cache;
pub mod compile_commands;
pub mod completions;
pub mod config;
pub mod doctor;
pub mod explain;
pub mod fatbin;
pub mod jit;
pub mod man;
pub mod monitor;
pub mod remote;
pub mod report;
pub mod rtc;
pub mod run;
pub mod setup;
pub mod shim;
pub mod stats;
pub mod version;
pub mod why;
pub mod why_gpu;

mod advice;
mod avoided;
mod binary_errors;
mod build_timeline;
mod graph;
mod nvcc;
mod output;
mod plain_text;
mod timeline;
