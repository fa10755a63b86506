//! The free space of a store: a result of another machine is accepted only if it fits.

use super::store::DiskStore;

impl DiskStore {
    /// The most bytes that one result may have: half of the store's limit, and half of the free disk space.
    pub fn room(&self) -> u64 {
        let may_hold = match self.options.max_size {
            0 => u64::MAX,
            most => most / 2,
        };
        // A file system may not report its free space; then writing finds out.
        let free = rustix::fs::statvfs(&self.root).map_or(u64::MAX, |found| {
            found.f_bavail.saturating_mul(found.f_frsize)
        });
        may_hold.min(free / 2)
    }
}
