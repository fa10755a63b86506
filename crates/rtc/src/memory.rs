//! Images in memory, by request; the least recently used leave first.
//!
//! A request is compared whole before an image is given, but cheaply where possible: texts that are one `Arc` are
//! equal, and a long text is found by samples of it. Only where several entries have the same samples is the request
//! hashed whole.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use warpcc_cache::{InputManifest, Key};

use crate::asked::Asked;
use crate::compiler::Compiled;

/// Images by `K`, compared whole: hashes only find them quickly.
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
    pub manifest: InputManifest,
    /// The working directory; empty where it has no part in the image.
    pub directory: PathBuf,
    /// [`Asked::thorough`] of what it is kept by.
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

impl<K: Asked> Memory<K> {
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
        let alike = self.images.get(&asked.quick())?;
        let at = position(alike, asked)?;
        let (_, found) = alike.get(at)?;
        self.touch(found);
        Some(found)
    }

    /// Keeps an image, in place of what was there. One that is larger than everything may be is not kept.
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

/// Where the entry is that was asked for, of those with the same samples.
fn position<K: Asked>(alike: &[(K, Remembered)], asked: &K) -> Option<usize> {
    if let Some(at) = alike.iter().position(|(known, _)| known.is_one(asked)) {
        return Some(at);
    }
    if let [(only, _)] = alike {
        return only.equals(asked).then_some(0);
    }
    // Many programs that differ in a number deep inside: each would be read up to there.
    let thorough = asked.thorough();
    alike
        .iter()
        .position(|(known, image)| image.thorough == thorough && known.equals(asked))
}

/// For reading. A panic elsewhere leaves at worst a wrong sum of bytes behind.
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
    impl Asked for i32 {
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
    }
}
