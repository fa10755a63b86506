//! What the bundles of GitHub's cache have: asked once for all processes of a job, and again from time to time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use reqwest::Url;

use super::look::{BundleIndex, ReadAllowance};
use super::parts::Parts;
use super::{Github, HIGHEST, lock};
use crate::error::RemoteError;
use warpcc_remote_client::bundle_index::Index;

/// Bundles around the newest one that are looked for, if its index does not know them: their jobs ran at the same time.
const NEIGHBOURS: u32 = 8;
/// Numbers behind the newest one: it may have been finished after them.
const BEHIND: u32 = 2;
/// How long an index is used before the service is asked for newer bundles.
const INDEX_FOR: Duration = Duration::from_secs(10 * 60);
/// The lock for the index; there are others for parts.
const INDEX_LOCK: u64 = 1000;

impl Github {
    /// What all bundles have.
    pub(super) async fn view(&self) -> Result<Arc<Index>, RemoteError> {
        let _one = self.loading.lock().await;
        if let Some(view) = lock(&self.view).clone() {
            return Ok(view);
        }
        let Some(parts) = &self.parts else {
            return Ok(Arc::default());
        };
        let known = |parts: &Parts| (!self.uploads).then(|| kept(parts))?;
        let index = match known(parts) {
            Some(index) => index,
            None => {
                let _turn = parts.turn(&self.service, INDEX_LOCK).await?;
                match known(parts) {
                    Some(index) => index,
                    None => {
                        let loaded = self.load(parts).await;
                        let index = loaded.inspect_err(|_| parts.note_failure())?;
                        self.keep(parts, &index)?;
                        index
                    }
                }
            }
        };
        let view = Arc::new(index);
        *lock(&self.view) = Some(Arc::clone(&view));
        Ok(view)
    }

    pub(super) fn keep(&self, parts: &Parts, index: &Index) -> Result<(), RemoteError> {
        parts.write("index", &index.bytes())
    }

    /// What all bundles near the newest one have. Entries that are not understood are counted.
    async fn load(&self, parts: &Parts) -> Result<Index, RemoteError> {
        parts.sweep();
        let mut look = ReadAllowance::default();
        let loaded = self.load_newest(parts, &mut look).await;
        self.ignored.fetch_add(look.ignored(), Ordering::Relaxed);
        loaded
    }

    async fn load_newest(
        &self,
        parts: &Parts,
        look: &mut ReadAllowance,
    ) -> Result<Index, RemoteError> {
        let Some(found) = self.service.find(&self.prefix).await? else {
            return Ok(Index::default());
        };
        let number = self.number(&found.name);
        if let Some(number) = number
            && let Some(index) = self.load_around(parts, look, number, &found.url).await?
        {
            return Ok(index);
        }
        if number.is_none() {
            look.ignore();
        }
        for (number, found) in self.search(look, number).await? {
            if let Some(index) = self.load_around(parts, look, number, &found.url).await? {
                return Ok(index);
            }
        }
        Ok(Index::default())
    }

    /// What the bundle of this number has, and those near it that it does not know. None where none of these is a bundle.
    async fn load_around(
        &self,
        parts: &Parts,
        look: &mut ReadAllowance,
        newest: u32,
        url: &Url,
    ) -> Result<Option<Index>, RemoteError> {
        let head = vec![(newest, url.clone())];
        let mut all = self.read_indexes(parts, look, head).await?;
        let is_known = |number: u32| {
            let knows = |read: &BundleIndex| match read {
                BundleIndex::Read(index) => index.knows(number),
                _ => false,
            };
            number == newest || all.iter().any(knows)
        };
        let first = newest.saturating_sub(NEIGHBOURS).max(1);
        let near = first..=newest.saturating_add(BEHIND).min(HIGHEST);
        let unknown: Vec<u32> = near.rev().filter(|number| !is_known(*number)).collect();
        let find = async |number: u32| {
            let name = self.name(number);
            let found = self.service.find(&name).await?;
            let found = found.filter(|found| found.name == name);
            Ok::<_, RemoteError>(found.map(|found| (number, found.url)))
        };
        let mut others = Vec::new();
        for found in join_all(unknown.into_iter().map(find)).await {
            others.extend(found?);
        }
        all.extend(self.read_indexes(parts, look, others).await?);
        if all.iter().all(BundleIndex::is_odd) {
            return Ok(None);
        }
        let indexes = all.into_iter().map(BundleIndex::into_index);
        Ok(Some(Index::merged(&indexes.collect::<Vec<_>>())))
    }
}

/// The index that another process of this job has fetched, while it is new enough.
fn kept(parts: &Parts) -> Option<Index> {
    let path = parts.folder().join("index");
    let written = std::fs::metadata(&path).and_then(|file| file.modified());
    let age = SystemTime::now().duration_since(written.ok()?).ok()?;
    let bytes = std::fs::read(&path).ok().filter(|_| age < INDEX_FOR)?;
    Index::read(&bytes)
}
