//! Stores bytes by digest, copies them to where a caller wants them, and reads them back.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use super::blob_file::{Blob, Packing, TRAILER, Trailer, copy, digest_and_checksum};
use super::error::{BlobFault, StoreError};
use super::file::mark_used;
use super::install::Staged;
use super::store::DiskStore;
use super::{frames, install};
use crate::digest::Digest;

/// Larger files are stored in pieces: to allocate so much memory costs more than to read a file twice.
const STORED_AT_ONCE: u64 = 4 << 20;
impl DiskStore {
    /// Stores bytes. If they are in the store already, they are marked as used.
    pub fn put_bytes(&self, bytes: &[u8], packing: Packing) -> Result<Digest, StoreError> {
        self.writable()?;
        let digest = Digest::of_bytes(bytes);
        let path = self.blob_path(&digest);
        if is_there(&path, &digest) {
            return Ok(digest);
        }
        let packed = match packing {
            Packing::Plain => None,
            Packing::Zstd => frames::pack(bytes),
        };
        let (payload, packing) = match &packed {
            Some(packed) => (packed.as_slice(), Packing::Zstd),
            None => (bytes, Packing::Plain),
        };
        let trailer = Trailer {
            digest,
            payload: payload.len() as u64,
            packing,
            checksum: xxh3_128(payload),
        };
        let mut temporary = self.temporary()?;
        temporary
            .write_all(payload)
            .and_then(|()| temporary.write_all(&trailer.encode()))
            .map_err(|source| StoreError::io("write", temporary.path(), source))?;
        let length = trailer.payload + TRAILER as u64;
        let before = std::fs::metadata(&path).ok().map(|found| found.len());
        self.bring_in(temporary, &path, length, before)?;
        Ok(digest)
    }

    /// Stores a file's content.
    pub fn put_file(&self, source: &Path, packing: Packing) -> Result<Digest, StoreError> {
        self.writable()?;
        let reading = |error| StoreError::io("read", source, error);
        let mut file = File::open(source).map_err(reading)?;
        let length = file.metadata().map_err(reading)?.len();
        if length <= STORED_AT_ONCE {
            let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
            file.read_to_end(&mut bytes).map_err(reading)?;
            return self.put_bytes(&bytes, packing);
        }
        // The digest comes first: a large file that is in the store already need not be written again.
        let (digest, checksum) = digest_and_checksum(&file).map_err(reading)?;
        let path = self.blob_path(&digest);
        if is_there(&path, &digest) {
            return Ok(digest);
        }
        let mut temporary = self.temporary()?;
        let copied = file
            .rewind()
            .and_then(|()| copy(&file, temporary.file(), packing))
            .map_err(|error| StoreError::io("store", source, error))?;
        // XXH3 finds a change by accident as well as SHA-256, in a tenth of the time. The file is the caller's own.
        if (copied.size, copied.checksum) != (digest.size, checksum) {
            return Err(StoreError::Changed {
                path: source.to_path_buf(),
            });
        }
        let trailer = Trailer {
            digest,
            payload: copied.payload,
            packing,
            checksum: copied.payload_checksum,
        };
        temporary
            .write_all(&trailer.encode())
            .map_err(|error| StoreError::io("write", temporary.path(), error))?;
        let length = trailer.payload + TRAILER as u64;
        self.bring_in(temporary, &path, length, None)?;
        Ok(digest)
    }

    /// Places a blob at `dest`, executable or not. Returns `false` if it is not in the store, or was damaged.
    ///
    /// A regular file at `dest` that is this user's and has no other name is replaced. Anything else stays as it is, and is
    /// an error.
    pub fn get_to(
        &self,
        digest: &Digest,
        dest: &Path,
        executable: bool,
    ) -> Result<bool, StoreError> {
        let path = self.blob_path(digest);
        let placed = install::place(dest, executable, |out| {
            self.read_blob(&path, digest, |blob| blob.copy_to(out))
                .map(|copied| copied.is_some())
        });
        self.miss_if_bad(&path, dest, placed)
            .map(|placed| placed.unwrap_or(false))
    }

    /// Like [`DiskStore::get_to`], for bytes that are made from a blob's. Also returns `false` if the blob is missing.
    pub fn get_changed_to(
        &self,
        digest: &Digest,
        dest: &Path,
        change: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> Result<bool, StoreError> {
        let Some(bytes) = self.get_bytes(digest)? else {
            return Ok(false);
        };
        let changed = change(&bytes);
        let placed = install::place(dest, false, |out| {
            out.write_all(&changed).map_err(BlobFault::Writing)?;
            Ok(true)
        });
        self.miss_if_bad(&self.blob_path(digest), dest, placed)
            .map(|placed| placed.unwrap_or(false))
    }

    /// Like [`DiskStore::get_to`] for files, except for the last step, which the caller takes: [`Staged::commit`]. Returns
    /// `None` if the blob is not in the store, was damaged, or cannot be placed in this way.
    pub fn stage(
        &self,
        digest: &Digest,
        dest: &Path,
        executable: bool,
    ) -> Result<Option<Staged>, StoreError> {
        let path = self.blob_path(digest);
        let staged = install::stage(dest, executable, |out| {
            self.read_blob(&path, digest, |blob| blob.copy_to(out))
                .map(|copied| copied.is_some())
        });
        self.miss_if_bad(&path, dest, staged).map(Option::flatten)
    }

    /// A blob's bytes, verified; `None` if it is not in the store, or was damaged.
    pub fn get_bytes(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.blob_path(digest);
        let mut bytes = Vec::new();
        let read = self.read_blob(&path, digest, |blob| blob.copy_to(&mut bytes));
        let read = self.miss_if_bad(&path, &path, read)?;
        Ok(read.flatten().map(|()| bytes))
    }

    /// Whether a blob is in the store, by its name alone.
    pub fn has(&self, digest: &Digest) -> bool {
        self.blob_path(digest).exists()
    }

    /// Opens a blob, if it is there, and reads it.
    fn read_blob<T>(
        &self,
        path: &Path,
        digest: &Digest,
        read: impl FnOnce(&mut Blob) -> Result<T, BlobFault>,
    ) -> Result<Option<T>, BlobFault> {
        let Some(mut blob) = Blob::open(path)? else {
            return Ok(None);
        };
        if blob.trailer.digest != *digest {
            return Err(BlobFault::Bad);
        }
        let value = read(&mut blob)?;
        if !self.options.readonly {
            mark_used(&blob.file);
        }
        Ok(Some(value))
    }

    /// Removes and counts a damaged blob, and treats it as missing.
    fn miss_if_bad<T>(
        &self,
        path: &Path,
        dest: &Path,
        result: Result<T, BlobFault>,
    ) -> Result<Option<T>, StoreError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(BlobFault::Bad) => {
                self.remove_bad(path, "blob_corrupt");
                Ok(None)
            }
            Err(BlobFault::Reading(source)) => Err(StoreError::io("read", path, source)),
            Err(BlobFault::Writing(source)) => Err(StoreError::io("write", dest, source)),
        }
    }
}

/// Whether a blob exists and its end is intact; marks it as used.
fn is_there(path: &Path, digest: &Digest) -> bool {
    match Blob::open(path) {
        Ok(Some(blob)) if blob.trailer.digest == *digest => {
            mark_used(&blob.file);
            true
        }
        _ => false,
    }
}
