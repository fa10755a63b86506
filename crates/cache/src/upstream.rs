//! The interface of shared caches for users of a disk store: they are asked on a miss, and get new results. Knows no
//! network.

use warpcc_path_map::WorkDir;

use crate::disk::{DiskStore, Level};
use crate::key::Key;
use crate::record::Outcome;

/// Decides about a result from elsewhere before a byte of its outputs is fetched: `false` refuses it whole. It may change
/// the texts, which are shown to people.
pub type Vet<'a> = &'a (dyn Fn(&mut Outcome) -> bool + Sync);

/// Which result is asked for.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// Of a call, a step or a kernel.
    pub level: Level,
    /// Under which key.
    pub key: &'a Key,
    /// Where it is to hold.
    pub at: WorkDir<'a>,
    /// What it may be.
    pub vet: Vet<'a>,
}

/// Stores elsewhere, behind the one on this disk.
///
/// No call fails, and each must end: trouble is the implementation's to count and to tell, or to keep for
/// [`Upstream::take_warnings`]. Calls may come from any thread.
pub trait Upstream: Send + Sync {
    /// Brings what others know of what is `wanted` into `store`, as far as it holds. Everything is asked for at once: more
    /// questions cost no more waiting. True where that was something: the look-up is then worth repeating.
    fn fetch(&self, store: &DiskStore, wanted: &[Wanted<'_>]) -> bool;

    /// Others are to have what `store` remembers under `key`. Returns at once.
    fn offer(&self, store: &DiskStore, level: Level, key: &Key);

    /// What went wrong since this was last asked, for people. Nothing where the implementation tells them itself.
    fn take_warnings(&self) -> Vec<String> {
        Vec::new()
    }
}
