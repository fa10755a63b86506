//! Which files did a process look for? A preloaded library writes them down, this crate reads them back.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let library = warpcc_watch::install("/tmp/cache".as_ref())?;
//! let log = std::path::Path::new("/tmp/log");
//! let inherited = std::env::var_os("LD_PRELOAD");
//! let environment = warpcc_watch::environment(&library, log, inherited.as_deref())?;
//! std::process::Command::new("gcc").args(["-E", "x.c"]).envs(environment).status()?;
//! let observed = warpcc_watch::read_log(&std::fs::read(log)?)?;
//! # Ok(()) }
//! ```
//!
//! What the library cannot see, and the log does not admit in [`Observed::blind`]:
//! - lookups by the dynamic loader (`LD_LIBRARY_PATH` candidates, a `dlopen` that failed);
//! - names read out of a listed directory, and what came through standard input or another descriptor;
//! - system calls made without the C library, `nftw`, `fts`, `scandir`, and the shell that `popen` and
//!   `system` start, if it is static (what a dynamic shell does is seen).
//!
//! The grammar of the log is described in `preload/preload.rs`.

mod install;
mod log;
mod observed;

pub use install::{Unpreloadable, available, environment, install};
pub use log::LogError;
pub use observed::{Observed, read_log};
