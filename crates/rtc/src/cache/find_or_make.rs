//! Finds or makes one image, in one thread and one process for all that request it.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use warpcc_cache::{InputManifest, Key, ManifestVerdict};

use crate::call_limits::CallLimits;
use crate::compiler::Compiled;
use crate::error::Error;
use crate::found::Found;
use crate::job_texts::JobTexts;
use crate::memory::{Remembered, read, written};
use crate::request::CompileRequest;
use crate::single_flight::Maker;
use crate::{failure_dump, keys, lock};

use super::{Image, KernelCache, Turn};

impl KernelCache {
    /// Lets one thread find or make an image that many threads request, and counts it.
    pub(super) fn once(
        &self,
        key: &Key,
        name: &str,
        limits: &CallLimits,
        make: impl Fn() -> Result<(Arc<Compiled>, Found), Error>,
    ) -> Result<Image, Error> {
        let ((compiled, found), maker) = self.flights.one_of_many(key, limits, name, make)?;
        let found = match maker {
            Maker::Us => found,
            Maker::Another => Found::Memory,
        };
        self.usage.count(found);
        Ok(Image {
            compiled,
            key: Some(*key),
            found,
        })
    }

    pub(super) fn find_or_make(
        &self,
        key: &Key,
        name: &str,
        limits: &CallLimits,
        make: impl Fn() -> Result<(Compiled, bool), Error>,
    ) -> Result<(Arc<Compiled>, Found), Error> {
        if let Some((compiled, found)) = self.found(key) {
            return Ok((compiled.into(), found));
        }
        let folder = self.tiers.lock_folder();
        let lock = match folder {
            Some(folder) => lock::wait(&folder, key, limits, name)?,
            None => None,
        };
        // The process that held the lock has most likely stored the image.
        if let Some(compiled) = self.tiers.get_from_disk(key) {
            return Ok((compiled.into(), Found::Disk));
        }
        let start = Instant::now();
        let (compiled, may_be_kept) = make()?;
        if may_be_kept {
            self.tiers.put(key, &compiled, start.elapsed());
        }
        drop(lock);
        Ok((compiled.into(), Found::Made))
    }

    /// The image in a folder, a pack or a shared cache.
    pub(super) fn found(&self, key: &Key) -> Option<(Compiled, Found)> {
        let start = Instant::now();
        let found = self.tiers.get(key)?;
        self.usage.searched(start.elapsed());
        Some(found)
    }

    pub(super) fn compile_text(
        &self,
        request: &CompileRequest,
        key: Option<&Key>,
        limits: &CallLimits,
        turn: &mut Turn<'_>,
    ) -> Result<Compiled, Error> {
        let elsewhere = |texts: &JobTexts| {
            let place = turn.place.as_mut()?;
            let directory = match request.knows_the_directory() {
                true => Some(std::path::absolute(".").ok()?),
                false => None,
            };
            place.run(directory.as_deref(), texts, limits)
        };
        let start = Instant::now();
        let compiled = self.compiler.compile_in(request, limits, elsewhere);
        self.usage.spent(start.elapsed());
        compiled.map_err(|error| match error {
            Error::Compile(mut failure) => {
                let key = key.copied().unwrap_or_else(keys::unknown);
                let folder = self.tiers.failure_folder();
                failure.saved = failure_dump::save(&folder, request, &key, &failure);
                Error::Compile(failure)
            }
            other => other,
        })
    }

    /// The BLAKE3 of a library's files; empty if one cannot be read: then the version is used.
    pub(super) fn build<'p>(
        &self,
        which: usize,
        files: impl Iterator<Item = &'p Path>,
    ) -> &[[u8; 32]] {
        let hashed = self.builds[which].get_or_init(|| {
            let all: Result<Vec<_>, _> = files.map(|path| self.content_of(path)).collect();
            all.map_err(|error| {
                self.tiers
                    .remark(format!("a library cannot be read: {error}"))
            })
            .ok()
        });
        hashed.as_deref().unwrap_or_default()
    }

    /// The BLAKE3 of a library's file, which is hashed once and then recognised.
    pub(super) fn content_of(&self, path: &Path) -> std::io::Result<[u8; 32]> {
        match self.tiers.nearest() {
            Some(store) => store.library_content(path),
            None => warpcc_cache::library_content(path),
        }
    }

    pub(super) fn remembered(
        &self,
        request: &CompileRequest,
        directory: &Path,
    ) -> Option<(Arc<Compiled>, Option<Key>)> {
        let memory = read(&self.memory);
        let entry = memory
            .get(request)
            .filter(|entry| entry.directory == directory)?;
        let compiled = entry.compiled.clone();
        let key = entry.key;
        // Most kernels include nothing; otherwise this takes a `stat` for each file.
        if entry.manifest == InputManifest::default() {
            return Some((compiled, Some(key)));
        }
        match entry.manifest.check(Path::new("/")) {
            ManifestVerdict::Holds => {}
            ManifestVerdict::Differs(_) => return None,
            ManifestVerdict::HoldsAfterHashing(manifest) => {
                drop(memory);
                let image = Remembered::new(&compiled, key, manifest, directory.to_path_buf());
                written(&self.memory).put(request.clone(), image);
            }
        }
        Some((compiled, Some(key)))
    }
}
