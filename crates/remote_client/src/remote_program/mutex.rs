//! What a mutex has, whatever became of the thread that had it before.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits for it.
pub(super) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
