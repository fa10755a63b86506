//! Small values by kind and key, such as the digest of a tool that has not changed.
//!
//! ```text
//! note = magic[8] key[32] checksum(u64 XXH3 of key and value) value
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use xxhash_rust::xxh3::Xxh3;

use super::error::StoreError;
use super::file::{mark_used, read_whole};
use super::layout::NOTES;
use super::store::DiskStore;
use crate::digest::Digest;
use crate::input_manifest::{ContentHashes, Reading, Signature, content_of, trusted_signature};
use crate::key::{Hashing, Key, KeySink};
use crate::wire::Reader;

const MAGIC: &[u8; 8] = b"WCCNOT01";
const PROGRAMS: &str = "programs";
/// Those of `headers`, which earlier versions wrote, may have files that compare times.
const HEADERS: &str = "headers-3";
const DIGESTS: &str = "digests";

impl ContentHashes for DiskStore {
    fn recall(&self, signature: &Signature) -> Option<[u8; 32]> {
        self.note(PROGRAMS, &key_of(signature))?.try_into().ok()
    }

    fn remember(&self, signature: &Signature, content: &[u8; 32]) {
        // Without the note the program is hashed again.
        drop(self.put_note(PROGRAMS, &key_of(signature), content));
    }

    fn recall_place(&self, place: &[u8]) -> Vec<u8> {
        self.note(HEADERS, &key_of_place(place)).unwrap_or_default()
    }

    fn remember_place(&self, place: &[u8], files: &[u8]) {
        // Without the note the headers are hashed again.
        drop(self.put_note(HEADERS, &key_of_place(place), files));
    }
}

impl DiskStore {
    /// The value under a key; `None` if there is no readable note.
    pub fn note(&self, kind: &str, key: &Key) -> Option<Vec<u8>> {
        let path = self.note_path(kind, key).ok()?;
        let (file, bytes) = read_whole(&path).ok()??;
        let Some(value) = decode(&bytes, key) else {
            self.remove_bad(&path, "note_corrupt");
            return None;
        };
        if !self.options.readonly {
            mark_used(&file);
        }
        Some(value.to_vec())
    }

    /// Stores a value under a key, in place of an earlier one. The kind is a plain name.
    pub fn put_note(&self, kind: &str, key: &Key, value: &[u8]) -> Result<(), StoreError> {
        self.writable()?;
        let path = self.note_path(kind, key)?;
        let mut bytes = Vec::with_capacity(MAGIC.len() + 40 + value.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&key.0);
        bytes.extend_from_slice(&checksum_of(&key.0, value).to_le_bytes());
        bytes.extend_from_slice(value);
        self.write_whole(&path, &bytes)
    }

    /// The BLAKE3 of a tool's content. A program is hashed once and then recognised by its signature, for keys and for
    /// manifests: a toolkit's programs are 250 MB.
    ///
    /// # Errors
    /// The file cannot be read, or changes meanwhile.
    pub fn tool_content(&self, path: &Path) -> io::Result<[u8; 32]> {
        content_of(path, Some(self), Reading::OneThread)
    }

    /// As [`DiskStore::tool_content`], for a library that the process waits for: several threads read it.
    ///
    /// # Errors
    /// The file cannot be read, or changes meanwhile.
    pub fn library_content(&self, path: &Path) -> io::Result<[u8; 32]> {
        content_of(path, Some(self), Reading::Threads)
    }

    /// The digest of a file that seldom changes, such as a tool. It is stored with the file's signature, if that can be
    /// trusted.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn file_digest(&self, path: &Path) -> io::Result<Digest> {
        let hash = || Ok(Digest::of_file(path)?.to_string().into_bytes());
        let digest = self.finding(DIGESTS, path, &hash)?;
        let digest = String::from_utf8(digest).ok().and_then(|d| d.parse().ok());
        digest.map_or_else(|| Digest::of_file(path), Ok)
    }

    /// What `find` finds out about the content of a file that seldom changes. It is stored as a note of this kind with the
    /// file's signature, if that can be trusted.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn finding(
        &self,
        kind: &str,
        path: &Path,
        find: &dyn Fn() -> io::Result<Vec<u8>>,
    ) -> io::Result<Vec<u8>> {
        let began = SystemTime::now();
        let Some(signature) = trusted_signature(path)? else {
            return find();
        };
        let key = key_of(&signature);
        if let Some(noted) = self.note(kind, &key) {
            return Ok(noted);
        }
        let found = find()?;
        let same = trusted_signature(path)? == Some(signature);
        if signature.was_settled_at(began) && same {
            // Without the note the file is examined again.
            drop(self.put_note(kind, &key, &found));
        }
        Ok(found)
    }

    fn note_path(&self, kind: &str, key: &Key) -> Result<PathBuf, StoreError> {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b);
        if kind.is_empty() || !kind.bytes().all(plain) {
            return Err(StoreError::Kind(kind.to_owned()));
        }
        Ok(self.key_path(&Path::new(NOTES).join(kind), key))
    }
}

/// Whether a note's file is intact and has the name of its key.
pub(super) fn verify(path: &Path) -> io::Result<bool> {
    let Some((_, bytes)) = read_whole(path)? else {
        return Ok(true);
    };
    let hex = path.file_name().and_then(|name| name.to_str());
    let key = hex.and_then(crate::digest::from_hex).map(Key);
    Ok(key.is_some_and(|key| decode(&bytes, &key).is_some()))
}

fn decode<'a>(bytes: &'a [u8], key: &Key) -> Option<&'a [u8]> {
    let mut reader = Reader::new(bytes);
    let magic = reader.take(MAGIC.len())?;
    let named: [u8; 32] = reader.array()?;
    let checksum = reader.u64()?;
    let value = reader.rest();
    let sound = magic == MAGIC && named == key.0 && checksum == checksum_of(&named, value);
    sound.then_some(value)
}

fn checksum_of(key: &[u8; 32], value: &[u8]) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(key);
    hasher.update(value);
    hasher.digest()
}

fn key_of_place(place: &[u8]) -> Key {
    let mut hashing = Hashing::new("headers of a place");
    hashing.part("place", place);
    hashing.finish()
}

fn key_of(signature: &Signature) -> Key {
    let mut hashing = Hashing::new("tool by signature");
    hashing.part("dev", &signature.dev.to_le_bytes());
    hashing.part("ino", &signature.ino.to_le_bytes());
    hashing.part("size", &signature.size.to_le_bytes());
    hashing.part("mtime", &signature.mtime_ns.to_le_bytes());
    hashing.part("ctime", &signature.ctime_ns.to_le_bytes());
    hashing.finish()
}
