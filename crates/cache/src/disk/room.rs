//! How much room a store has: an offer of another machine is taken only if it fits.

use super::store::DiskStore;

impl DiskStore {
    /// The most bytes that one result may bring: half of what the store may hold, and half of what the disk has left.
    pub fn room(&self) -> u64 {
        let may_hold = match self.options.max_size {
            0 => u64::MAX,
            most => most / 2,
        };
        // A file system that does not tell is asked by writing to it.
        let free = rustix::fs::statvfs(&self.root).map_or(u64::MAX, |found| {
            found.f_bavail.saturating_mul(found.f_frsize)
        });
        may_hold.min(free / 2)
    }
}
