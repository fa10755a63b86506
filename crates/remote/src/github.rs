//! GitHub Actions' cache: what a job made as one bundle, uploaded at the job's end, and read by ranges.
//!
//! GitHub takes 200 entries a minute for a whole repository, so an entry for each blob would lose most of them. A bundle
//! is an entry with a number in its name, and takes three requests. Its index covers earlier bundles too. A reader asks for
//! the newest one, and for those near it that its index does not know, because their jobs ran at the same time. Then it
//! fetches parts of bundles as they are needed (`parts`), once for all processes of a job.
//!
//! A name is taken once and for ever, so of several jobs that end at once each gets a number of its own, and none
//! replaces what another made. The reasons are in docs/design/remote.md.

mod archive;
mod beginning;
mod indexes;
mod load;
mod look;
mod newest;
mod parts;
mod publish;
mod service;
mod turn;

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bazel_remote_apis::build::bazel::remote::execution::v2::ActionResult;
use prost::Message;
use warpcc_cache::{Digest, Key};

use crate::action_result::{LARGEST_RESULT, TOO_LARGE};
use crate::auth::Origin;
use crate::backend::{Backend, UploadSource};
use crate::download::{Download, NewFile};
use crate::error::RemoteError;
use crate::settings::Layer;
use archive::Archive;
use parts::Parts;
use service::Service;
use warpcc_remote_client::bundle_index::{BundlePlace, ContentKind, Index, Name};

/// Digits of a bundle's number in its name. Names with others are not ours.
const DIGITS: usize = 8;
/// The highest number. Behind it numbers begin again.
const HIGHEST: u32 = 99_999_999;

/// The cache of one repository.
pub struct Github {
    service: Service,
    /// Names begin with it.
    prefix: String,
    /// Where bundles are on this disk. Without it nothing is read.
    parts: Option<Parts>,
    view: Mutex<Option<Arc<Index>>>,
    loading: tokio::sync::Mutex<()>,
    archive: tokio::sync::Mutex<Option<Archive>>,
    uploads: bool,
    /// Entries that were not understood, and that nobody has counted yet.
    ignored: AtomicU64,
}

impl Github {
    /// Does not reach out yet. `cache` is the cache's folder.
    ///
    /// # Errors
    /// As [`Service::new`].
    pub fn new(layer: &Layer, cache: Option<&Path>) -> Result<Self, RemoteError> {
        let url = layer.url();
        let place = format!("{}{}", url.host_str().unwrap_or_default(), url.path());
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || "-_.".contains(c) {
                c
            } else {
                '_'
            }
        };
        let place: String = place.trim_end_matches('/').chars().map(plain).collect();
        let place = if place.is_empty() { "default" } else { &place };
        // Two jobs may see different bundles under one name: each has a token, and so a folder, of its own.
        let job = match &layer.auth.token {
            Some(Origin::Given(token)) => Digest::of_bytes(token.reveal().as_bytes()).hex(),
            _ => Digest::of_bytes(b"").hex(),
        };
        let folder = format!("{}-{}", layer.id(), &job[..16]);
        let parts = cache.map(|cache| Parts::new(cache.join("bundles-v1").join(folder)));
        Ok(Self {
            service: Service::new(layer)?,
            prefix: format!("warpcc:{}:", &place[..place.len().min(200)]),
            parts,
            view: Mutex::new(None),
            loading: tokio::sync::Mutex::new(()),
            archive: tokio::sync::Mutex::new(None),
            uploads: false,
            ignored: AtomicU64::new(0),
        })
    }

    /// The same to upload: it asks what the newest bundle is, whatever is known.
    #[must_use]
    pub fn for_uploads(mut self) -> Self {
        self.uploads = true;
        self
    }

    /// The newest bundle, if the service answers.
    ///
    /// # Errors
    /// As all requests.
    pub async fn describe(&self) -> Result<String, RemoteError> {
        let newest = self.service.find(&self.prefix).await?;
        let number = newest.as_ref().map(|found| self.number(&found.name));
        Ok(match number {
            Some(Some(number)) => format!("GitHub's cache, newest bundle {number}"),
            Some(None) => "GitHub's cache, newest entry not a bundle: ignored".to_owned(),
            None => "GitHub's cache, no bundle yet".to_owned(),
        })
    }

    /// Hands on what is at `place`. False where it is not there any more.
    async fn read(
        &self,
        place: &BundlePlace,
        take: impl FnMut(&[u8]) -> Result<(), RemoteError> + Send,
    ) -> Result<bool, RemoteError> {
        let Some(parts) = &self.parts else {
            return Ok(false);
        };
        let name = self.name(place.bundle.number());
        let span = (place.at, place.packed);
        parts
            .read(&self.service, (place.bundle, &name), span, take)
            .await
    }

    /// A bundle with other bytes than an index says is read no more, and what it had is uploaded again. A service that fails
    /// says nothing of the bundle.
    fn judge<T>(
        &self,
        place: &BundlePlace,
        done: Result<T, RemoteError>,
    ) -> Result<T, RemoteError> {
        if let (Err(RemoteError::WrongBytes { .. }), Some(parts)) = (&done, &self.parts) {
            parts.give_up(place.bundle);
        }
        done
    }

    /// The error for a bundle that is not what an index says. It is read no more.
    fn lie(&self, place: &BundlePlace, why: &str) -> RemoteError {
        if let Some(parts) = &self.parts {
            parts.give_up(place.bundle);
        }
        self.service.odd(why)
    }

    async fn get_blob(&self, digest: &Digest, out: impl Write + Send) -> Result<bool, RemoteError> {
        let view = self.view().await?;
        let place = view.find(&(ContentKind::Blob, digest.hash));
        let Some(place) = place.filter(|place| place.size == digest.size) else {
            return Ok(false);
        };
        // zstd makes nothing much longer than it was.
        if place.packed > digest.size.saturating_add(digest.size / 64 + 4096) {
            return Err(self.lie(&place, "an index with a blob that is too long"));
        }
        let reading = async {
            let mut download = Download::new(self.service.server(), digest, true, out)?;
            if !self.read(&place, |piece| download.take(piece)).await? {
                return Ok(false);
            }
            download.finish()?;
            Ok(true)
        };
        let done = reading.await;
        self.judge(&place, done)
    }

    /// Whether the newest bundles, or the one in the making, have it.
    fn will_be_there(&self, view: &Index, making: Option<&Archive>, name: &Name) -> bool {
        let stays = |place: BundlePlace| {
            let gone = self
                .parts
                .as_ref()
                .is_some_and(|parts| parts.is_gone(place.bundle));
            !gone && !view.is_aging(place.bundle)
        };
        making.is_some_and(|archive| archive.has(name)) || view.find(name).is_some_and(stays)
    }

    /// The bundle in the making; none where there is no folder for it.
    fn making<'a>(
        &self,
        slot: &'a mut Option<Archive>,
    ) -> Result<Option<&'a mut Archive>, RemoteError> {
        if let (None, Some(parts)) = (&slot, &self.parts) {
            *slot = Some(Archive::create(parts.folder())?);
        }
        Ok(slot.as_mut())
    }
}

impl Backend for Github {
    async fn result(&self, key: &Key) -> Result<Option<ActionResult>, RemoteError> {
        let view = self.view().await?;
        let Some(place) = view.find(&(ContentKind::Result, key.0)) else {
            return Ok(None);
        };
        if place.packed > LARGEST_RESULT as u64 {
            return Err(self.lie(&place, TOO_LARGE));
        }
        let mut bytes = Vec::new();
        let take = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            Ok(())
        };
        if !self.read(&place, take).await? {
            return Ok(None);
        }
        let decoded = ActionResult::decode(&bytes[..]);
        let lie = |_| self.lie(&place, "a result that is not an ActionResult message");
        decoded.map(Some).map_err(lie)
    }

    async fn put_result(&self, key: &Key, result: &ActionResult) -> Result<(), RemoteError> {
        let mut slot = self.archive.lock().await;
        match self.making(&mut slot)? {
            Some(archive) => archive.add_result(key.0, &result.encode_to_vec()),
            None => Ok(()),
        }
    }

    async fn missing(&self, digests: &[Digest]) -> Result<Vec<Digest>, RemoteError> {
        let view = self.view().await?;
        let slot = self.archive.lock().await;
        let there = |digest: &&Digest| {
            !self.will_be_there(&view, slot.as_ref(), &(ContentKind::Blob, digest.hash))
        };
        Ok(digests.iter().filter(there).copied().collect())
    }

    async fn read_small(&self, digests: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, RemoteError> {
        let mut all = Vec::new();
        for digest in digests {
            let mut bytes = Vec::new();
            let there = self.get_blob(digest, &mut bytes).await?;
            all.push(there.then_some(bytes));
        }
        Ok(all)
    }

    async fn read_large(&self, digest: &Digest, to: &Path) -> Result<bool, RemoteError> {
        let mut file = NewFile::create(to)?;
        let there = self.get_blob(digest, file.out()).await?;
        if there {
            file.keep()?;
        }
        Ok(there)
    }

    async fn write(&self, blobs: &[(Digest, UploadSource)]) -> Result<(), RemoteError> {
        let mut slot = self.archive.lock().await;
        if let Some(archive) = self.making(&mut slot)? {
            for (digest, source) in blobs {
                archive.add_blob(digest.hash, digest.size, source)?;
            }
        }
        Ok(())
    }

    fn take_ignored(&self) -> u64 {
        self.ignored.swap(0, Ordering::Relaxed)
    }

    fn is_aging(&self, key: &Key) -> bool {
        let view = lock(&self.view).clone();
        view.is_some_and(|view| {
            let place = view.find(&(ContentKind::Result, key.0));
            place.is_some_and(|place| view.is_aging(place.bundle))
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
