//! The interface between a disk store and shared caches: the store asks them after a miss, and offers them new results.
//! It knows no network.

use warpcc_path_map::WorkDir;

use crate::disk::{DiskStore, Level};
use crate::key::Key;
use crate::record::Outcome;

/// Decides about a result from another machine before any of its outputs is fetched: `false` refuses the whole result. It
/// may change the texts, which are shown to people.
pub type Vet<'a> = &'a (dyn Fn(&mut Outcome) -> bool + Sync);

/// A result to fetch.
#[derive(Clone, Copy)]
pub struct FetchRequest<'a> {
    /// The level: a call, a step or a kernel.
    pub level: Level,
    /// Its key.
    pub key: &'a Key,
    /// The working directory in which it must be valid.
    pub at: WorkDir<'a>,
    /// Decides whether a result is accepted.
    pub vet: Vet<'a>,
}

/// Other stores, behind the one on this disk.
///
/// No call fails, and each must end: the implementation counts and reports errors itself, or collects them for
/// [`Upstream::take_warnings`]. Calls may come from any thread.
pub trait Upstream: Send + Sync {
    /// Fetches results for `wanted` from other stores into `store`, if they are valid. All are requested at once, so
    /// many take no longer than one. Returns true if there was a result; the caller then repeats the look-up.
    fn fetch(&self, store: &DiskStore, wanted: &[FetchRequest<'_>]) -> bool;

    /// Offers the entry of `store` under `key` to other stores. Returns at once.
    fn offer(&self, store: &DiskStore, level: Level, key: &Key);

    /// Warnings for the user since the last call; empty if the implementation reports them itself.
    fn take_warnings(&self) -> Vec<String> {
        Vec::new()
    }
}
