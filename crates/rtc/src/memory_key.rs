//! Requests as keys of images in memory, and quick comparisons of long texts.

use warpcc_cache::Key;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// A request for an image, as a key in memory.
pub(crate) trait MemoryKey {
    /// A fast hash: equal values have the same; different values may share it.
    fn quick(&self) -> u64;
    /// A thorough hash: equal values have the same, and different values hardly ever.
    fn thorough(&self) -> u64;
    /// Whether they are equal, if that is visible without reading long texts. It is never true for different values.
    fn is_one(&self, other: &Self) -> bool;
    /// Whether they are equal.
    fn equals(&self, other: &Self) -> bool;
}

impl MemoryKey for Key {
    fn quick(&self) -> u64 {
        xxh3_64(&self.0)
    }

    fn thorough(&self) -> u64 {
        self.quick()
    }

    fn is_one(&self, other: &Self) -> bool {
        self == other
    }

    fn equals(&self, other: &Self) -> bool {
        self == other
    }
}

/// Texts up to this many bytes are hashed as a whole, longer ones by samples.
const SHORT: usize = 1024;
/// The number of samples of a long text, and the bytes of each.
const SAMPLES: usize = 8;
const SAMPLE: usize = 64;

/// Hashes the length of a text and its content, or samples of it, which include its beginning and its end.
pub(crate) fn sample(hasher: &mut Xxh3, text: &[u8]) {
    hasher.update(&(text.len() as u64).to_le_bytes());
    if text.len() <= SHORT {
        hasher.update(text);
        return;
    }
    for index in 0..SAMPLES {
        let at = (text.len() - SAMPLE) * index / (SAMPLES - 1);
        hasher.update(&text[at..at + SAMPLE]);
    }
}

/// Hashes the length of a text and all of it.
pub(crate) fn whole(hasher: &mut Xxh3, text: &[u8]) {
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_see_every_length_and_both_ends() {
        let of = |text: &[u8]| {
            let mut hasher = Xxh3::new();
            sample(&mut hasher, text);
            hasher.digest()
        };
        for length in [0, 1, SHORT - 1, SHORT, SHORT + 1, 30_000] {
            let mut text = vec![b'a'; length + 1];
            let longer = of(&text);
            text.pop();
            let same = of(&text);
            assert_ne!(same, longer, "{length}");
            for at in [0, length.saturating_sub(1)] {
                let Some(byte) = text.get_mut(at) else {
                    continue;
                };
                *byte = b'b';
                assert_ne!(of(&text), same, "{length} {at}");
                text[at] = b'a';
            }
        }
    }
}
