//! A bundle in the making: blobs and results one after the other in a file of ours, then the index, then the beginning that
//! says where that is.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::beginning::{self, Beginning};
use crate::backend::UploadSource;
use crate::error::RemoteError;
use warpcc_remote_client::bundle_index::{Bundle, BundlePlace, ContentKind, Index, Name};

/// A bundle that has so many bytes is given away, and another one begun.
const FULL: u64 = 256 << 20;
/// zstd's level: packed once, fetched often.
const LEVEL: i32 = 3;
/// A file of an uploader that is older is nobody's.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The bundle.
pub struct Archive {
    file: File,
    path: PathBuf,
    length: u64,
    places: BTreeMap<Name, BundlePlace>,
}

impl Archive {
    /// An empty one in a new file of `folder`.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(folder: &Path) -> Result<Self, RemoteError> {
        sweep(folder);
        let path = folder.join(format!(
            "new-{}-{:x}",
            std::process::id(),
            fastrand::u64(..)
        ));
        let made = std::fs::create_dir_all(folder).and_then(|()| {
            let mut file = File::options().write(true).create_new(true).open(&path)?;
            file.write_all(&[0; beginning::LENGTH])?;
            Ok(file)
        });
        let file = made.map_err(|error| at(&path, &error))?;
        Ok(Self {
            file,
            path,
            length: beginning::LENGTH as u64,
            places: BTreeMap::new(),
        })
    }

    /// Whether it has `name`.
    pub fn has(&self, name: &Name) -> bool {
        self.places.contains_key(name)
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether nothing more should go into it.
    pub fn is_full(&self) -> bool {
        self.length >= FULL
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a result as it is.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add_result(&mut self, key: [u8; 32], bytes: &[u8]) -> Result<(), RemoteError> {
        let begin = self.length;
        self.append(bytes)?;
        self.placed((ContentKind::Result, key), bytes.len() as u64, begin);
        Ok(())
    }

    /// Adds a blob of `size` bytes as a zstd frame.
    ///
    /// # Errors
    /// One of the files cannot be read or written.
    pub fn add_blob(
        &mut self,
        hash: [u8; 32],
        size: u64,
        source: &UploadSource,
    ) -> Result<(), RemoteError> {
        if self.has(&(ContentKind::Blob, hash)) {
            return Ok(());
        }
        let begin = self.length;
        match source {
            UploadSource::Bytes(bytes) => {
                let packed = zstd::bulk::compress(bytes, LEVEL);
                let packed = packed.map_err(|error| at(&self.path, &error))?;
                self.append(&packed)?;
            }
            UploadSource::File(from) => {
                let mut file = File::open(from).map_err(|error| at(from, &error))?;
                let copied = zstd::stream::copy_encode(&mut file, &mut self.file, LEVEL)
                    .and_then(|()| self.file.stream_position());
                self.length = copied.map_err(|error| at(&self.path, &error))?;
            }
        }
        self.placed((ContentKind::Blob, hash), size, begin);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), RemoteError> {
        let written = self
            .file
            .seek(SeekFrom::Start(self.length))
            .and_then(|_| self.file.write_all(bytes));
        written.map_err(|error| at(&self.path, &error))?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn placed(&mut self, name: Name, size: u64, begin: u64) {
        let place = BundlePlace {
            size,
            // Known when the name is taken.
            bundle: Bundle(0),
            at: begin,
            packed: self.length - begin,
        };
        self.places.insert(name, place);
    }

    /// Finishes it as `bundle`: its index has what `before` knows too, where `keeps` says so. Gives the index.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn seal(
        &mut self,
        bundle: Bundle,
        before: &Index,
        keeps: impl Fn(Bundle) -> bool,
    ) -> Result<Index, RemoteError> {
        let here = |(name, place): (&Name, &BundlePlace)| (*name, BundlePlace { bundle, ..*place });
        let own = Index::of([bundle].into(), self.places.iter().map(here));
        let index = Index::merged([&own, &before.without(keeps)]);
        let packed = zstd::bulk::compress(&index.bytes(), LEVEL);
        let packed = packed.map_err(|error| at(&self.path, &error))?;
        let end = self.length;
        let beginning = Beginning {
            bundle,
            index: end,
            length: packed.len() as u64,
        };
        let written = self
            .file
            .seek(SeekFrom::Start(end))
            .and_then(|_| self.file.write_all(&packed))
            // Of an index that was written before under another number.
            .and_then(|()| self.file.set_len(end + packed.len() as u64))
            .and_then(|()| self.file.seek(SeekFrom::Start(0)))
            .and_then(|_| self.file.write_all(&beginning.bytes()));
        written.map_err(|error| at(&self.path, &error))?;
        Ok(index)
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        // What cannot be removed is swept later.
        drop(std::fs::remove_file(&self.path));
    }
}

/// Removes what uploaders left that were killed.
fn sweep(folder: &Path) {
    for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_new = file.file_name().to_string_lossy().starts_with("new-");
        let changed = file.metadata().and_then(|metadata| metadata.modified());
        let age = changed.ok().and_then(|changed| changed.elapsed().ok());
        if is_new && age.is_some_and(|age| age > ABANDONED) {
            drop(std::fs::remove_file(file.path()));
        }
    }
}

/// The error of a file.
pub fn at(path: &Path, error: &std::io::Error) -> RemoteError {
    RemoteError::Local {
        path: path.display().to_string(),
        why: error.to_string(),
    }
}
