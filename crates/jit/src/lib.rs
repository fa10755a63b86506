//! Predicts what a driver compiles when a program starts, what that costs, and where the driver keeps the results.
//!
//! Pure where possible: settings are read from variables that are given, a folder is judged by facts that are given.
//! The functions that ask the machine say so: [`Folder::examine`], [`Ptxas`], [`Loader`]. Prints nothing and reads no
//! environment. The rules, with their evidence, are in `docs/jit.md`.

mod assemble;
mod attribute;
mod clear;
mod compute_cache;
mod demand;
mod driver;
mod estimate;
mod file_system;
mod loading;
mod process;
mod ptxas;
mod remark;
mod settings;
mod typo;

pub use assemble::{AssembleJob, Assembled, AssemblyCost, assemble};
pub use attribute::{Complaint, complaints};
pub use clear::{Cleared, Refused, clear};
pub use compute_cache::{Contents, Folder, contents, remarks as folder_remarks};
pub use demand::{CompileCause, PtxText, every_text, what_is_compiled};
pub use driver::{DriverError, LoadOptions, Loader};
pub use estimate::{Cost, estimate};
pub use file_system::FileSystem;
pub use loading::{GpuWithDriver, Item, LoadMessage, LoadResult, Loaded, Loading};
pub use ptxas::{AskError, Ptxas};
pub use remark::{Remark, Weight};
pub use settings::{JitSettings, MaxSize, Where, remarks as setting_remarks};
pub use typo::meant;
