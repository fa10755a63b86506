//! The upload queue, on disk, so that no upload is lost when a process ends: a small file for each result and server.
//!
//! ```text
//! uploads-v1/<server>/<level>-<key>     a byte for each time it was asked for; gone when the server has it
//! uploads-v1/<server>.lock              held by the one uploader of this server; dies with it
//! ```
//!
//! The result itself is in the disk store. If it is evicted before the upload, there is nothing to upload.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use warpcc_cache::{Key, Level};

use crate::settings::{Access, Layer};

/// Older entries are dropped.
const STALE: Duration = Duration::from_secs(7 * 24 * 3600);

/// A result that one server is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedUpload {
    /// Which level of the cache it is in.
    pub level: Level,
    /// Under which key.
    pub key: Key,
    /// Times that it was asked for.
    requests: u64,
}

/// The queue of one cache.
#[derive(Debug, Clone)]
pub struct UploadQueue {
    folder: PathBuf,
}

impl UploadQueue {
    /// Of the cache in `root`.
    pub fn in_cache(root: &Path) -> Self {
        Self {
            folder: root.join("uploads-v1"),
        }
    }

    /// Notes that what is under `key` is to be uploaded to `layer`.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn add(&self, layer: &Layer, level: Level, key: &Key) -> io::Result<()> {
        let path = self.path(layer, level, key);
        let create = || {
            let mut file = File::options().append(true).create(true).open(&path)?;
            file.write_all(b".")
        };
        match create() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(self.folder.join(layer.id()))?;
                create()
            }
            other => other,
        }
    }

    /// Notes that those of `layers` that take results are to have what is under `key`. Whether something was noted that an
    /// uploader should do beside the build: an upload that cannot be noted is one less.
    pub fn enqueue<'l>(
        &self,
        layers: impl IntoIterator<Item = &'l Layer>,
        level: Level,
        key: &Key,
    ) -> bool {
        let mut noted = false;
        for layer in layers {
            let added = layer.access == Access::ReadWrite && self.add(layer, level, key).is_ok();
            noted |= added && !layer.uploads_at_end();
        }
        noted
    }

    /// The entries for `layer`, in no order.
    pub fn entries(&self, layer: &Layer) -> Vec<QueuedUpload> {
        let Ok(listing) = fs::read_dir(self.folder.join(layer.id())) else {
            return Vec::new();
        };
        let mut waiting = Vec::new();
        for found in listing.flatten() {
            let Ok(metadata) = found.metadata() else {
                continue;
            };
            let changed = metadata.modified().ok();
            let age = changed.and_then(|t| SystemTime::now().duration_since(t).ok());
            match parse(&found.file_name().to_string_lossy()) {
                Some((level, key)) if age.is_none_or(|age| age < STALE) => {
                    waiting.push(QueuedUpload {
                        level,
                        key,
                        requests: metadata.len(),
                    })
                }
                _ => drop(fs::remove_file(found.path())),
            }
        }
        waiting
    }

    /// Whether anything waits for `layer`.
    pub fn has_entries(&self, layer: &Layer) -> bool {
        fs::read_dir(self.folder.join(layer.id())).is_ok_and(|mut all| all.next().is_some())
    }

    /// `layer` has it, or never will.
    pub fn remove(&self, layer: &Layer, entry: &QueuedUpload) {
        let path = self.path(layer, entry.level, &entry.key);
        // Asked for again meanwhile: there is a newer result. What stays is uploaded once more, which costs a request.
        if fs::metadata(&path).is_ok_and(|now| now.len() == entry.requests) {
            drop(fs::remove_file(&path));
        }
    }

    /// The right to upload to `layer`, if nobody has it.
    pub fn lock(&self, layer: &Layer) -> Option<File> {
        let path = self.folder.join(format!("{}.lock", layer.id()));
        let file = File::options().append(true).create(true).open(path).ok()?;
        file.try_lock().is_ok().then_some(file)
    }

    fn path(&self, layer: &Layer, level: Level, key: &Key) -> PathBuf {
        let level = match level {
            Level::Direct => "direct",
            Level::Steps => "steps",
            Level::Kernels => "kernels",
        };
        let mut path = self.folder.join(layer.id());
        path.push(format!("{level}-{}", key.hex()));
        path
    }
}

fn parse(name: &str) -> Option<(Level, Key)> {
    let (level, hex) = name.split_once('-')?;
    let level = match level {
        "direct" => Level::Direct,
        "steps" => Level::Steps,
        "kernels" => Level::Kernels,
        _ => return None,
    };
    // A key's text is like a digest's, without the length.
    let digest: warpcc_cache::Digest = format!("{hex}/0").parse().ok()?;
    Some((level, Key(digest.hash)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_wait_until_they_are_done() {
        let folder = tempfile::tempdir().expect("folder");
        let queue = UploadQueue::in_cache(folder.path());
        let layer = Layer::at("http://127.0.0.1:1/").expect("layer");
        let key = Key([3; 32]);
        assert!(!queue.has_entries(&layer));
        for _ in 0..2 {
            queue.add(&layer, Level::Steps, &key).expect("add");
        }
        fs::write(
            folder
                .path()
                .join("uploads-v1")
                .join(layer.id())
                .join("odd"),
            "x",
        )
        .expect("odd");
        let waiting = queue.entries(&layer);
        assert_eq!(waiting.len(), 1);
        assert_eq!((waiting[0].level, waiting[0].key), (Level::Steps, key));
        let held = queue.lock(&layer).expect("lock");
        assert!(queue.lock(&layer).is_none());
        drop(held);
        assert!(queue.lock(&layer).is_some());
        // A newer result was stored while the old one was uploaded.
        queue.add(&layer, Level::Steps, &key).expect("add");
        queue.remove(&layer, &waiting[0]);
        assert!(queue.has_entries(&layer));
        queue.remove(&layer, &queue.entries(&layer)[0]);
        assert!(!queue.has_entries(&layer));
    }
}
