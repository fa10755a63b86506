//! What the engine and the binary see of other stores: they are asked on a miss, and told of what is new. Knows no network.

use std::path::Path;

use crate::disk::{DiskStore, Level};
use crate::key::Key;

/// Stores elsewhere, behind the one on this disk.
///
/// Neither call fails: trouble is the implementation's to count and to tell.
pub trait Upstream: Sync {
    /// Brings what others know under `keys` into `store`, as far as it holds for a run in `base`. True where that was
    /// something: the look-up is then worth repeating.
    fn fetch(&self, store: &DiskStore, level: Level, keys: &[Key], base: &Path) -> bool;

    /// Others are to have what `store` remembers under `key`. Returns at once.
    fn offer(&self, store: &DiskStore, level: Level, key: &Key);
}
