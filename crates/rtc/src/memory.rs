//! Images in memory, by what was asked for; those used longest ago leave first.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use warpcc_cache::{Key, Witness};
use xxhash_rust::xxh3::Xxh3;

use crate::compiler::Compiled;

/// Images by `K`, compared whole: the hash only finds them quickly.
#[derive(Debug)]
pub(crate) struct Memory<K> {
    images: HashMap<u64, Vec<(K, Remembered)>>,
    bytes: u64,
    most: u64,
    clock: AtomicU64,
}

/// An image and what was seen of the files that went into it.
#[derive(Debug)]
pub(crate) struct Remembered {
    pub compiled: Arc<Compiled>,
    pub key: Key,
    pub witness: Witness,
    used: AtomicU64,
}

impl Remembered {
    pub(crate) fn new(compiled: &Arc<Compiled>, key: Key, witness: Witness) -> Self {
        Self {
            compiled: compiled.clone(),
            key,
            witness,
            used: AtomicU64::new(0),
        }
    }

    fn size(&self) -> u64 {
        self.compiled.image.len() as u64
    }
}

impl<K: Eq + Hash> Memory<K> {
    /// One that holds `most` bytes of images.
    pub(crate) fn new(most: u64) -> Self {
        Self {
            images: HashMap::new(),
            bytes: 0,
            most,
            clock: AtomicU64::new(0),
        }
    }

    pub(crate) fn get(&self, asked: &K) -> Option<&Remembered> {
        let same = self.images.get(&hash_of(asked))?;
        let (_, found) = same.iter().find(|(known, _)| known == asked)?;
        self.touch(found);
        Some(found)
    }

    /// Keeps an image, in place of what was there. One that is larger than everything may be is not kept.
    pub(crate) fn put(&mut self, asked: K, image: Remembered) {
        if image.size() > self.most {
            return;
        }
        self.touch(&image);
        self.bytes += image.size();
        let same = self.images.entry(hash_of(&asked)).or_default();
        if let Some(at) = same.iter().position(|(known, _)| *known == asked) {
            let (_, old) = same.swap_remove(at);
            self.bytes -= old.size();
        }
        same.push((asked, image));
        if self.bytes > self.most {
            self.shrink();
        }
    }

    fn touch(&self, image: &Remembered) {
        image.used.store(
            self.clock.fetch_add(1, Ordering::Relaxed),
            Ordering::Relaxed,
        );
    }

    /// Down to nine tenths, so that the next time does not come at once.
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

fn hash_of(asked: &impl Hash) -> u64 {
    let mut hasher = Xxh3::new();
    asked.hash(&mut hasher);
    hasher.finish()
}

/// For reading. A panic elsewhere leaves at worst a wrong sum of bytes behind.
pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// For writing, likewise.
pub(crate) fn written<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use warpcc_cache::{Hashing, KeySink};

    use super::*;
    use crate::target::{RealArch, Target};

    fn image(size: usize) -> Remembered {
        let compiled = Compiled {
            target: Target::Cubin(RealArch::new(90)),
            image: vec![0; size].into(),
            lowered: Vec::new(),
            log: String::new(),
        };
        let mut key = Hashing::new("test");
        key.part("size", &size.to_le_bytes());
        Remembered::new(&Arc::new(compiled), key.finish(), Witness::default())
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
    }
}
