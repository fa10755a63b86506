//! Keeps writing programs and starting processes apart, since a process that starts holds the files that are open.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A program that is open for writing, here or in a child between fork and exec, cannot be executed. So no thread writes
/// files while another one starts a process.
static FILES_OPEN: RwLock<()> = RwLock::new(());

/// Held while a process is started.
pub fn no_file_open() -> RwLockReadGuard<'static, ()> {
    FILES_OPEN.read().unwrap_or_else(PoisonError::into_inner)
}

/// Held while files are written that may be executed.
pub fn no_process_starting() -> RwLockWriteGuard<'static, ()> {
    FILES_OPEN.write().unwrap_or_else(PoisonError::into_inner)
}
