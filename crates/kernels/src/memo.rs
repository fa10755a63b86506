//! Remembers values that were made before, by the parts from which each was made.

use std::hash::{BuildHasher as _, Hasher};
use std::sync::{LazyLock, Mutex, PoisonError};

use hashbrown::{DefaultHashBuilder, HashTable};

/// The most entries of one table. Before there are more, all are dropped.
const MOST: usize = 512;

/// Values by the parts from which they were made. A request is hashed and compared part by part, so a look-up builds no
/// key.
pub(crate) struct Memo<K, V>(Mutex<HashTable<(u64, K, V)>>);

impl<K, V: Clone> Memo<K, V> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(HashTable::new()))
    }

    pub(crate) fn get(&self, hash: u64, is: impl Fn(&K) -> bool) -> Option<V> {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = table.find(hash, |(theirs, key, _)| *theirs == hash && is(key));
        found.map(|(_, _, value)| value.clone())
    }

    pub(crate) fn put(&self, hash: u64, key: K, value: V) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if table.len() >= MOST {
            table.clear();
        }
        // Two threads may put the same value. One of them is found, and both are right.
        table.insert_unique(hash, (hash, key, value), |(hash, _, _)| *hash);
    }
}

/// The hash of what `feed` feeds.
pub(crate) fn hashed(feed: impl FnOnce(&mut dyn Hasher)) -> u64 {
    static BUILDER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);
    let mut hasher = BUILDER.build_hasher();
    feed(&mut hasher);
    hasher.finish()
}
