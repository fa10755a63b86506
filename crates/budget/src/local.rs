//! The budget of this process alone, for when no shared one is available.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::cancel::{Cancel, Cancelled};
use crate::limits::BudgetLimits;

/// The claims of this process.
#[derive(Debug, Default)]
pub struct Local {
    used: Mutex<Used>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Used {
    tasks: usize,
    slots: u64,
    memory_kib: u64,
    alone: bool,
}

/// A share of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Slots.
    pub slots: u32,
    /// KiB.
    pub memory_kib: u64,
    /// Whether nothing runs next to it.
    pub alone: bool,
}

/// How often a waiter checks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(20);

impl Local {
    /// Waits until `share` fits, or nothing else runs.
    ///
    /// # Errors
    /// Cancelled meanwhile.
    pub fn take(
        &self,
        share: Share,
        limits: &BudgetLimits,
        cancel: &Cancel,
    ) -> Result<(), Cancelled> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            cancel.check()?;
            let slots = used.slots.saturating_add(share.slots.into());
            let memory = used.memory_kib.saturating_add(share.memory_kib);
            let fits = !share.alone
                && !used.alone
                && slots <= limits.slots.into()
                && memory <= limits.memory_kib;
            if used.tasks == 0 || fits {
                used.tasks += 1;
                used.slots = slots;
                used.memory_kib = memory;
                used.alone |= share.alone;
                return Ok(());
            }
            let waited = self.changed.wait_timeout(used, LOOK);
            used = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Gives `share` back.
    pub fn give(&self, share: Share) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.tasks = used.tasks.saturating_sub(1);
        used.slots = used.slots.saturating_sub(share.slots.into());
        used.memory_kib = used.memory_kib.saturating_sub(share.memory_kib);
        used.alone &= !share.alone;
        self.changed.notify_all();
    }
}
