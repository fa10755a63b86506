//! Hashes one large file in several threads, with the same result as in one.
//!
//! A BLAKE3 is a tree: each thread reads and hashes parts of the file, and the hashes of the parts are merged.

use std::sync::atomic::{AtomicUsize, Ordering};

use blake3::Hasher;
use blake3::hazmat::{
    ChainingValue, HasherExt as _, Mode, left_subtree_len, merge_subtrees_non_root,
    merge_subtrees_root,
};
use rustix::fd::OwnedFd;
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::hash::HashFault;

/// The part that a thread hashes at once: a power of two, so that it is a tree of its own.
const PART: usize = 2 << 20;
/// More threads than this wait for memory.
const MOST_THREADS: usize = 8;
/// How much is read at once. The processor's cache has room for it.
const PIECE: usize = 128 << 10;

/// Whether a file of this size has several parts.
pub(super) fn is_large(size: usize) -> bool {
    size > PART
}

/// The BLAKE3 of the first `size` bytes of a [large](is_large) file, which is then read up to there.
pub(super) fn hash_in_threads(file: &OwnedFd, size: usize) -> Result<blake3::Hash, HashFault> {
    let parts = size.div_ceil(PART);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut buffer = vec![0; PIECE];
        let mut done = Vec::new();
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= parts {
                return Ok(done);
            }
            let length = PART.min(size - part * PART);
            done.push((part, hash_part(file, part * PART, length, &mut buffer)?));
        }
    };
    let done: Vec<Result<Vec<_>, HashFault>> = std::thread::scope(|scope| {
        let started: Vec<_> = (1..threads.min(MOST_THREADS).min(parts))
            // If a thread cannot be started, fewer share the work.
            .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut done = vec![work()];
        for thread in started {
            match thread.join() {
                Ok(more) => done.push(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    let mut hashes = Vec::with_capacity(parts);
    for some in done {
        hashes.extend(some?);
    }
    hashes.sort_unstable_by_key(|(part, _)| *part);
    let hashes: Vec<ChainingValue> = hashes.into_iter().map(|(_, hash)| hash).collect();
    rustix::fs::seek(file, SeekFrom::Start(size as u64)).map_err(HashFault::Unreadable)?;
    let (left, right) = hashes.split_at(parts_on_the_left(size));
    let (left, right) = (
        merged(left, left.len() * PART),
        merged(right, size - left.len() * PART),
    );
    Ok(merge_subtrees_root(&left, &right, Mode::Hash))
}

/// How many parts the left half of a tree over so many bytes has.
fn parts_on_the_left(size: usize) -> usize {
    // A file's size is a usize here.
    left_subtree_len(size as u64) as usize / PART
}

/// The hash of a tree over `size` bytes, from the hashes of its parts.
fn merged(hashes: &[ChainingValue], size: usize) -> ChainingValue {
    match hashes {
        [one] => *one,
        _ => {
            let (left, right) = hashes.split_at(parts_on_the_left(size));
            let end = left.len() * PART;
            merge_subtrees_non_root(&merged(left, end), &merged(right, size - end), Mode::Hash)
        }
    }
}

fn hash_part(
    file: &OwnedFd,
    offset: usize,
    length: usize,
    buffer: &mut [u8],
) -> Result<ChainingValue, HashFault> {
    let mut hasher = Hasher::new();
    hasher.set_input_offset(offset as u64);
    let mut done = 0;
    while done < length {
        let most = buffer.len().min(length - done);
        match rustix::io::pread(file, &mut buffer[..most], (offset + done) as u64) {
            Ok(0) => return Err(HashFault::Changed),
            Ok(read) => {
                hasher.update(&buffer[..read]);
                done += read;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(HashFault::Unreadable(error)),
        }
    }
    Ok(hasher.finalize_non_root())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn the_hash_is_that_of_one_thread() {
        // No two parts are equal.
        let bytes: Vec<u8> = (0..9 * PART as u32 / 4 + 64)
            .flat_map(|number| number.wrapping_mul(0x9e37_79b9).to_le_bytes())
            .collect();
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&bytes).expect("written");
        let file = OwnedFd::from(file);
        for parts in 1..10 {
            for (more, less) in [(1, 0), (0, 0), (0, 1), (1025, 0), (0, 1024)] {
                let size = parts * PART + more - less;
                if !is_large(size) || size > bytes.len() {
                    continue;
                }
                let hashed = hash_in_threads(&file, size).ok().expect("hashed");
                assert_eq!(hashed, blake3::hash(&bytes[..size]), "{size} bytes");
                let at = rustix::fs::tell(&file).expect("a position");
                assert_eq!(at, size as u64);
            }
        }
    }

    #[test]
    fn a_file_that_shrank_has_no_hash() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&vec![1; 3 * PART]).expect("written");
        let hashed = hash_in_threads(&OwnedFd::from(file), 3 * PART + 1);
        assert!(matches!(hashed, Err(HashFault::Changed)));
    }
}
