//! Runs a task graph: states, order, processes, and the step level of the cache.
//!
//! The engine uses threads, one per running process, and no async. It prints nothing, and knows no command line and no
//! network: everything that a report needs is in [`event::Finished`] and [`run::Run`].

pub mod admission;
pub mod any_lines;
pub mod artifact;
mod asked_history;
mod asked_lines;
pub mod compiler_cache;
pub mod conditions;
mod context;
mod drain;
pub mod event;
pub mod executor;
pub mod failure;
pub mod folder_in_inputs;
mod folder_in_result;
pub mod key;
mod local;
mod locate;
mod lookup;
pub mod modes;
mod module_id;
pub mod mtimes;
mod options;
mod other_writes;
mod own_name;
mod parent_death;
pub mod pieces;
mod placement;
mod precompiled;
pub mod prefix_map;
mod private_folder;
mod private_names;
pub mod process;
mod relative_names;
mod relocate;
mod remote_exec;
pub mod room;
pub mod run;
pub mod run_environment;
pub mod scene;
mod schedule;
mod search_path;
mod shared_files;
mod shared_libraries;
mod side_files;
mod slot_wait;
mod splice;
mod stall;
pub mod states;
mod store;
mod task;
pub mod terminal;
mod tokens;
pub mod traced_inputs;
mod unwatched_inputs;
mod warning_history;
mod watched_run;

pub use admission::Admission;
pub use event::{Finished, StepOutcome, WaitedFor};
pub use executor::Executor;
pub use options::{Listener, Order, RunOptions};
pub use process::Children;
pub use run::{Run, execute};
pub use terminal::Terminal;
