//! Lets one process on a machine compile a kernel at a time, with a lock that the system releases when its holder dies.
//!
//! A holder shows that it is alive by touching the lock's file. A waiter waits as long as that continues, which is the time
//! to compile. If a holder was stopped, or the file system has no locks, the wait takes a few seconds once, and then two
//! processes compile the same kernel.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use warpcc_cache::Key;

use crate::call_limits::CallLimits;
use crate::error::Error;

/// How often a holder touches the file.
const BEAT: Duration = Duration::from_millis(500);
/// How long a holder may go without touching the file: a machine can be very busy.
const PATIENCE: Duration = Duration::from_secs(10);

/// The right to compile one kernel, released when it is dropped.
pub(crate) struct Lock {
    path: PathBuf,
    over: Arc<AtomicBool>,
    beating: Option<std::thread::JoinHandle<()>>,
    /// Closing the file releases the lock.
    _file: File,
}

/// Waits for the right to compile the kernel `key`. `None` if no lock can be taken, or if its holder is not alive: the
/// caller then compiles without a lock.
///
/// # Errors
/// A limit of `what` was reached.
pub(crate) fn wait(
    folder: &Path,
    key: &Key,
    limits: &CallLimits,
    what: &str,
) -> Result<Option<Lock>, Error> {
    let path = folder.join(format!(".warpcc-lock-{}", key.hex()));
    let mut seen = (None, Instant::now());
    let mut pause = Duration::from_millis(1);
    loop {
        let Ok(file) = open(folder, &path) else {
            return Ok(None);
        };
        match file.try_lock() {
            // The previous holder removes the file: then this lock protects nothing.
            Ok(()) if is_linked(&file) => return Ok(Some(Lock::from_locked(path, file))),
            Ok(()) => continue,
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(_)) => return Ok(None),
        }
        let beat = file.metadata().and_then(|found| found.modified()).ok();
        if seen.0 != beat {
            seen = (beat, Instant::now());
        } else if seen.1.elapsed() > PATIENCE {
            return Ok(None);
        }
        limits.check(what)?;
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn open(folder: &Path, path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.append(true).create(true);
    options.open(path).or_else(|_| {
        std::fs::create_dir_all(folder)?;
        options.open(path)
    })
}

fn is_linked(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.metadata().is_ok_and(|found| found.nlink() > 0)
}

impl Lock {
    fn from_locked(path: PathBuf, file: File) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let beating = file.try_clone().ok().and_then(|file| {
            let over = over.clone();
            let beat = move || {
                while !over.load(Ordering::Acquire) {
                    // If this fails once, there is only one sign of life less.
                    drop(file.set_modified(SystemTime::now()));
                    std::thread::park_timeout(BEAT);
                }
            };
            // Without the thread, other processes may compile the same kernel.
            std::thread::Builder::new()
                .name("warpcc-rtc-lock".to_owned())
                .spawn(beat)
                .ok()
        });
        Self {
            path,
            over,
            beating,
            _file: file,
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(beating) = self.beating.take() {
            beating.thread().unpark();
            // The thread has a handle of the file, which would keep the lock.
            drop(beating.join());
        }
        // The file is removed while the lock is held, so that no other process's lock is removed.
        drop(std::fs::remove_file(&self.path));
    }
}
