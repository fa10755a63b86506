//! The interface of shared caches for users of a disk store: they are asked on a miss, and get new results. Knows no
//! network.

use warpcc_path_map::WorkDir;

use crate::disk::{DiskStore, Level};
use crate::key::Key;
use crate::record::Outcome;

/// Decides about a result from elsewhere before a byte of its outputs is fetched: `false` refuses it whole. It may change
/// the texts, which are shown to people.
pub type Vet<'a> = &'a (dyn Fn(&mut Outcome) -> bool + Sync);

/// A result to fetch.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// The level: a call, a step or a kernel.
    pub level: Level,
    /// Its key.
    pub key: &'a Key,
    /// The working directory that it has to be valid in.
    pub at: WorkDir<'a>,
    /// Decides whether a result is accepted.
    pub vet: Vet<'a>,
}

/// Stores elsewhere, behind the one on this disk.
///
/// No call fails, and each must end: the implementation counts and reports errors itself, or keeps them for
/// [`Upstream::take_warnings`]. Calls may come from any thread.
pub trait Upstream: Send + Sync {
    /// Fetches results for `wanted` from other stores into `store`, as far as they are valid. All are requested at
    /// once: more requests cost no more waiting. Returns true if there was a result: the look-up is then worth
    /// repeating.
    fn fetch(&self, store: &DiskStore, wanted: &[Wanted<'_>]) -> bool;

    /// Offers the entry of `store` under `key` to other stores. Returns at once.
    fn offer(&self, store: &DiskStore, level: Level, key: &Key);

    /// Warnings for the user since the last call. Empty where the implementation reports them itself.
    fn take_warnings(&self) -> Vec<String> {
        Vec::new()
    }
}
