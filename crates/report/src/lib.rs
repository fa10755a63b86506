//! What happened in a build? Records of every call, their summary, the page, the live view and
//! the doctor's findings. Prints nothing, reads no environment, and of our crates knows only `markup`.

pub mod build;
pub mod build_id;
pub mod device_trace;
pub mod doctor;
pub mod history;
pub mod json;
pub mod log;
pub mod monitor;
pub mod page;
pub mod record;
pub mod sample;
mod seconds;
pub mod summary;
pub mod trace;

pub use build::Build;
pub use build_id::{Ancestry, BuildId};
pub use history::{History, HistoryLimits};
pub use record::InvocationRecord;
pub use summary::Summary;
