//! How often images were found, and where.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::found::Found;

/// How often images were found, and where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Found in memory.
    pub memory: u64,
    /// Found in a folder.
    pub disk: u64,
    /// Found in a shared cache.
    pub shared: u64,
    /// Not found, so made.
    pub made: u64,
}

/// The counters behind [`Counts`]. Any thread may count.
#[derive(Debug, Default)]
pub(crate) struct Counters([AtomicU64; 4]);

impl Counters {
    pub(crate) fn count(&self, found: Found) {
        let index = match found {
            Found::Memory => 0,
            Found::Disk => 1,
            Found::Shared => 2,
            Found::Made => 3,
            Found::Given => return,
        };
        self.0[index].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Counts {
        let [memory, disk, shared, made] =
            [0, 1, 2, 3].map(|index: usize| self.0[index].load(Ordering::Relaxed));
        Counts {
            memory,
            disk,
            shared,
            made,
        }
    }
}
