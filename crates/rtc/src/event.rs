//! What a cache tells a program about each request: name, key, time, and what came of it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use warpcc_cache::Key;

use crate::error::Error;
use crate::found::Found;

/// A request that a cache has answered.
#[derive(Debug, Clone, Copy)]
pub struct CacheEvent<'e> {
    /// The name of the program, the link or the PTX text.
    pub name: &'e str,
    /// The key; `None` if the included files cannot be known, or if the request failed before they were.
    pub key: Option<Key>,
    /// The place where the image was found, [`Found::Made`] for a miss; or why there is no image.
    pub outcome: Result<Found, &'e Error>,
    /// When the request began.
    pub started: SystemTime,
    /// How long it took, waiting for other threads and processes included.
    pub took: Duration,
}

impl CacheEvent<'_> {
    /// The outcome in a word: `failed`, or that of [`Found::word`].
    pub fn word(&self) -> &'static str {
        self.outcome.map_or("failed", Found::word)
    }
}

/// A function that a cache calls after each request, in the thread that asked: see [`crate::CacheSettings::observer`]. The
/// cache holds no lock meanwhile, so the function may use it.
#[derive(Clone)]
pub struct Observer(Arc<dyn Fn(&CacheEvent<'_>) + Send + Sync>);

impl Observer {
    /// An observer that calls `tell`.
    pub fn new(tell: impl Fn(&CacheEvent<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub(crate) fn call(&self, event: &CacheEvent<'_>) {
        (self.0)(event);
    }
}

impl PartialEq for Observer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Observer {}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A function has nothing to show.
        f.write_str("Observer")
    }
}
