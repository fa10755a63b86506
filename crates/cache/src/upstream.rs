//! Shared caches as everyone sees them who has a disk store: they are asked on a miss, and told of what is new. Knows no network.

use warpcc_path_map::WorkDir;

use crate::disk::{DiskStore, Level};
use crate::key::Key;
use crate::record::Outcome;

/// Decides about a result from elsewhere before a byte of its outputs is fetched: `false` refuses it whole. It may change
/// the texts, which are shown to people.
pub type Vet<'a> = &'a (dyn Fn(&mut Outcome) -> bool + Sync);

/// Stores elsewhere, behind the one on this disk.
///
/// No call fails, and each must end: trouble is the implementation's to count and to tell, or to keep for
/// [`Upstream::take_warnings`]. Calls may come from any thread.
pub trait Upstream: Send + Sync {
    /// Brings what others know under `keys` into `store`, as far as it holds for a run in `at` and `vet` takes it. True
    /// where that was something: the look-up is then worth repeating.
    fn fetch(
        &self,
        store: &DiskStore,
        level: Level,
        keys: &[Key],
        at: WorkDir<'_>,
        vet: Vet<'_>,
    ) -> bool;

    /// Others are to have what `store` remembers under `key`. Returns at once.
    fn offer(&self, store: &DiskStore, level: Level, key: &Key);

    /// What went wrong since this was last asked, for people. Nothing where the implementation tells them itself.
    fn take_warnings(&self) -> Vec<String> {
        Vec::new()
    }
}
