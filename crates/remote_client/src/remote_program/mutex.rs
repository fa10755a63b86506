//! Locks a mutex whose last holder may have panicked.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits for it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
