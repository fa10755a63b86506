//! Images in memory, by request; the least recently used are removed first.
//!
//! A request is compared as a whole before an image is returned, but cheaply if possible: texts in the same `Arc` are equal,
//! and a long text is found by samples of it. Only if several entries have the same samples is the request hashed as a
//! whole.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use warpcc_cache::{InputManifest, Key};

use crate::compiler::Compiled;
use crate::memory_key::MemoryKey;

/// Images by request `K`, which is compared as a whole: hashes only find it quickly.
#[derive(Debug)]
pub(crate) struct Memory<K> {
    images: HashMap<u64, Vec<(K, Remembered)>>,
    bytes: u64,
    most: u64,
    clock: AtomicU64,
}

/// An image, and the state of the files that went into it.
#[derive(Debug)]
pub(crate) struct Remembered {
    pub compiled: Arc<Compiled>,
    pub key: Key,
    pub manifest: InputManifest,
    /// The working directory; empty if it does not matter for the image.
    pub directory: PathBuf,
    /// The [`MemoryKey::thorough`] hash of its request.
    thorough: u64,
    used: AtomicU64,
}

impl Remembered {
    pub(crate) fn new(
        compiled: &Arc<Compiled>,
        key: Key,
        manifest: InputManifest,
        directory: PathBuf,
    ) -> Self {
        Self {
            compiled: compiled.clone(),
            key,
            manifest,
            directory,
            thorough: 0,
            used: AtomicU64::new(0),
        }
    }

    fn size(&self) -> u64 {
        self.compiled.image.len() as u64
    }
}

impl<K: MemoryKey> Memory<K> {
    /// Memory for `most` bytes of images.
    pub(crate) fn new(most: u64) -> Self {
        Self {
            images: HashMap::new(),
            bytes: 0,
            most,
            clock: AtomicU64::new(0),
        }
    }

    pub(crate) fn get(&self, asked: &K) -> Option<&Remembered> {
        let alike = self.images.get(&asked.quick())?;
        let at = position(alike, asked)?;
        let (_, found) = alike.get(at)?;
        self.touch(found);
        Some(found)
    }

    /// Stores an image, in place of an earlier one. An image that is larger than the limit is not stored.
    pub(crate) fn put(&mut self, asked: K, mut image: Remembered) {
        if image.size() > self.most {
            return;
        }
        self.touch(&image);
        image.thorough = asked.thorough();
        self.bytes += image.size();
        let alike = self.images.entry(asked.quick()).or_default();
        if let Some(at) = position(alike, &asked) {
            let (_, old) = alike.swap_remove(at);
            self.bytes -= old.size();
        }
        alike.push((asked, image));
        if self.bytes > self.most {
            self.shrink();
        }
    }

    /// Forgets the image of a request.
    pub(crate) fn remove(&mut self, asked: &K) {
        let Some(alike) = self.images.get_mut(&asked.quick()) else {
            return;
        };
        if let Some(at) = position(alike, asked) {
            let (_, old) = alike.swap_remove(at);
            self.bytes -= old.size();
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.images.clear();
        self.bytes = 0;
    }

    fn touch(&self, image: &Remembered) {
        image.used.store(
            self.clock.fetch_add(1, Ordering::Relaxed),
            Ordering::Relaxed,
        );
    }

    /// Removes images down to nine tenths of the limit, so that the next removal is not due at once.
    fn shrink(&mut self) {
        let all = self.images.values().flatten();
        let mut ages: Vec<(u64, u64)> = all
            .map(|(_, image)| (image.used.load(Ordering::Relaxed), image.size()))
            .collect();
        ages.sort_unstable();
        let goal = self.most / 10 * 9;
        let mut newest_gone = None;
        for (age, size) in ages {
            if self.bytes <= goal {
                break;
            }
            self.bytes -= size;
            newest_gone = Some(age);
        }
        for same in self.images.values_mut() {
            same.retain(|(_, image)| Some(image.used.load(Ordering::Relaxed)) > newest_gone);
        }
        self.images.retain(|_, same| !same.is_empty());
    }
}

/// The position of the requested entry among those with the same samples.
fn position<K: MemoryKey>(alike: &[(K, Remembered)], asked: &K) -> Option<usize> {
    if let Some(at) = alike.iter().position(|(known, _)| known.is_one(asked)) {
        return Some(at);
    }
    if let [(only, _)] = alike {
        return only.equals(asked).then_some(0);
    }
    // Many programs may differ in a number deep inside: each would be read up to that place.
    let thorough = asked.thorough();
    alike
        .iter()
        .position(|(known, image)| image.thorough == thorough && known.equals(asked))
}

/// Locks for reading, also after a panic, which leaves at worst a wrong sum of bytes.
pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Locks for writing, also after a panic.
pub(crate) fn written<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use warpcc_cache::{Hashing, KeySink};

    use super::*;
    use crate::target::{RealArch, Target};

    /// Numbers of which ten share their samples.
    impl MemoryKey for i32 {
        fn quick(&self) -> u64 {
            u64::from(self.unsigned_abs() / 10)
        }

        fn thorough(&self) -> u64 {
            u64::from(self.unsigned_abs())
        }

        fn is_one(&self, _other: &Self) -> bool {
            false
        }

        fn equals(&self, other: &Self) -> bool {
            self == other
        }
    }

    fn image(size: usize) -> Remembered {
        let compiled = Compiled {
            target: Target::Cubin(RealArch::new(90)),
            image: vec![0; size].into(),
            lowered: Vec::new(),
            log: String::new(),
        };
        let mut key = Hashing::new("test");
        key.part("size", &size.to_le_bytes());
        Remembered::new(
            &Arc::new(compiled),
            key.finish(),
            InputManifest::default(),
            PathBuf::new(),
        )
    }

    #[test]
    fn the_one_used_longest_ago_leaves_first() {
        let mut memory = Memory::new(100);
        for index in 0..10 {
            memory.put(index, image(10));
        }
        assert!(memory.get(&0).is_some());
        memory.put(10, image(10));
        let left: Vec<_> = (0..=10)
            .filter(|index| memory.get(index).is_some())
            .collect();
        assert_eq!(left, [0, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(memory.bytes, 90);
        memory.put(11, image(101));
        assert!(memory.get(&11).is_none());
        memory.put(10, image(20));
        assert_eq!(memory.bytes, 100);
        memory.remove(&10);
        assert!(memory.get(&10).is_none() && memory.bytes == 80);
        memory.clear();
        assert!(memory.get(&3).is_none() && memory.bytes == 0);
    }
}
