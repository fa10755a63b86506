//! Records which files a process looks for: a preloaded library writes them to a log, and this crate reads it.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let library = warpcc_watch::install("/tmp/cache".as_ref())?;
//! let log = std::path::Path::new("/tmp/log");
//! let inherited = std::env::var_os("LD_PRELOAD");
//! let environment = warpcc_watch::environment(&library, log, inherited.as_deref())?;
//! let gcc = std::path::Path::new("/usr/bin/gcc");
//! std::process::Command::new(gcc).args(["-E", "x.c"]).envs(environment).status()?;
//! let observed = warpcc_watch::read_log(&std::fs::read(log)?, gcc, &|_| true)?;
//! # Ok(()) }
//! ```
//!
//! Accesses that the library cannot see, and that do not set [`Observed::untracked`]:
//! - files that the C library looks up for itself: locales and message catalogues, `gconv-modules.cache`, `/etc/localtime`,
//!   `tmpfile`, and the links along a path given to `realpath` (its result is seen);
//! - lookups by the dynamic loader (`LD_LIBRARY_PATH` candidates, a `dlopen` that failed); the libraries that it loads are
//!   seen;
//! - data from an inherited descriptor; a read of an empty standard input is seen;
//! - system calls that a dynamic program makes without the C library's wrappers (Go with cgo does);
//! - a look at variables without `getenv`: a walk over `environ`, or over the third argument of `main`. The caller has to know
//!   which programs do not walk ([`Observed::called`] has them all).
//!
//! A 32-bit child makes the loader print an error and leaves the log incomplete.
//!
//! The grammar of the log is described in `preload/preload.rs`.

mod install;
mod log;
mod log_reader;
mod observed;
mod path_text;
mod programs;

pub use install::{
    ANNOUNCE_VARIABLE, FOLDER_LIBRARY, FOLDER_VARIABLE, HOLD_VARIABLE, LOG_VARIABLE, Unpreloadable,
    announce, available, can_preload_from, environment, hold, install,
};
pub use log::{Identity, LogError};
pub use log_reader::read_log;
pub use observed::Observed;
pub use path_text::PathText;
