//! Pools: slots of a second kind, which limit how many of something exist at a time on this machine, in all processes
//! together. Slots have no size, and nobody waits for one. A slot is a locked file, which the kernel unlocks when its
//! holder ends for any reason.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::folder::{BoardPlace, Folder};
use crate::seat;

/// Slots that all processes of a user share. Clones are the same ones.
#[derive(Debug, Clone)]
pub struct Pool {
    /// `None` where the slots are this process's own.
    folder: Option<PathBuf>,
    own: Arc<AtomicUsize>,
    size: usize,
}

/// A slot, given back when it is dropped.
#[derive(Debug)]
pub struct PoolSlot {
    file: Option<File>,
    own: Arc<AtomicUsize>,
}

impl Pool {
    /// `size` slots of the pool with this name, which all its users share. Processes may differ in
    /// their `size`: each takes no slot beyond its own. Where there can be no folder, the slots are this process's own.
    pub fn open(place: &BoardPlace, name: &str, size: usize) -> Self {
        let folder = Folder::find(place).and_then(|folder| {
            let pool = folder.pool(name);
            match std::fs::create_dir_all(&pool) {
                Ok(()) => Ok(pool),
                Err(error) => Err((pool, error)),
            }
        });
        Self {
            folder: folder.ok(),
            own: Arc::default(),
            size,
        }
    }

    /// The number of slots.
    pub fn size(&self) -> usize {
        self.size
    }

    /// A slot, if one is free now.
    pub fn take(&self) -> Option<PoolSlot> {
        // This process never takes more than `size` slots, whatever happens to the folder.
        let taken = |held| (held < self.size).then_some(held + 1);
        let own = self
            .own
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, taken);
        own.ok()?;
        let mut slot = PoolSlot {
            file: None,
            own: Arc::clone(&self.own),
        };
        let Some(folder) = &self.folder else {
            return Some(slot);
        };
        // Processes begin at different slots, so that few try the same one.
        let first = usize::try_from(std::process::id()).unwrap_or(0) % self.size.max(1);
        for at in 0..self.size {
            let number = (first + at) % self.size;
            match seat::lock(&folder.join(number.to_string())) {
                Ok(Some(file)) => {
                    slot.file = Some(file);
                    return Some(slot);
                }
                Ok(None) => {}
                // Without the folder nothing is shared.
                Err(_) => return Some(slot),
            }
        }
        None
    }
}

impl Drop for PoolSlot {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            seat::unlock(file);
        }
        self.own.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(folder: &tempfile::TempDir) -> BoardPlace {
        BoardPlace::At(folder.path().join("board"))
    }

    #[test]
    fn no_more_slots_than_there_are_and_all_come_back() {
        let folder = tempfile::tempdir().expect("a folder");
        // As two processes: nothing of one is known to the other.
        let one = Pool::open(&place(&folder), "x", 3);
        let other = Pool::open(&place(&folder), "x", 3);
        let held = [one.take(), other.take(), one.take()];
        assert!(held.iter().all(Option::is_some));
        assert!(one.take().is_none() && other.take().is_none());
        // Another pool has its own, and a larger size reaches further.
        assert!(Pool::open(&place(&folder), "y", 3).take().is_some());
        assert!(Pool::open(&place(&folder), "x", 4).take().is_some());
        drop(held);
        let again: Vec<_> = std::iter::from_fn(|| other.take()).collect();
        assert_eq!(again.len(), 3);
    }

    #[test]
    fn without_a_folder_a_process_has_its_own() {
        let pool = Pool::open(&BoardPlace::Nowhere, "x", 2);
        let held = [pool.take(), pool.take()];
        assert!(held.iter().all(Option::is_some) && pool.take().is_none());
    }
}
