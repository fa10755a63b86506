//! What the bundles of GitHub's cache have: asked once for all processes of a job, and again from time to time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;

use super::archive;
use super::index::Index;
use super::parts::Parts;
use super::{Github, lock};
use crate::error::RemoteError;

/// Bundles around the newest one that are looked for, if its index does not know them: their jobs ran beside its own.
const BESIDE: u32 = 8;
/// Numbers behind the newest one: it may have been finished after them.
const BEHIND: u32 = 2;
/// How long an index is used before the service is asked for newer bundles.
const INDEX_FOR: Duration = Duration::from_secs(10 * 60);
/// The lock for the index, beside those for parts.
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

    /// Asks for the newest bundle, and for those near it that it does not know.
    async fn load(&self, parts: &Parts) -> Result<Index, RemoteError> {
        let Some(found) = self.service.find(&self.prefix).await? else {
            return Ok(Index::default());
        };
        let Some(newest) = self.number(&found.name) else {
            return Err(self.service.odd("an entry with a name that is not ours"));
        };
        parts.note_url(newest, &found.url);
        let mut indexes = vec![self.index_of(parts, newest).await?];
        let first = newest.saturating_sub(BESIDE).max(1);
        let beside = first..=newest.saturating_add(BEHIND);
        let unknown = beside.filter(|number| !indexes[0].known.contains(number));
        let look = async |number: u32| {
            let name = self.name(number);
            match self
                .service
                .find(&name)
                .await?
                .filter(|found| found.name == name)
            {
                Some(found) => {
                    parts.note_url(number, &found.url);
                    self.index_of(parts, number).await.map(Some)
                }
                None => Ok(None),
            }
        };
        for index in join_all(unknown.map(look)).await {
            indexes.extend(index?);
        }
        Ok(Index::merged(&indexes))
    }

    /// The index of a bundle. A bundle that is damaged has nothing, and is asked for no more: it will never change.
    async fn index_of(&self, parts: &Parts, number: u32) -> Result<Index, RemoteError> {
        let read = self.read_index(parts, number).await?;
        Ok(read.unwrap_or_else(|| Index::of([number].into(), BTreeMap::new())))
    }

    async fn read_index(&self, parts: &Parts, number: u32) -> Result<Option<Index>, RemoteError> {
        let name = self.name(number);
        let read = async |first: u64, length: u64| {
            let mut bytes = Vec::new();
            let take = |piece: &[u8]| {
                bytes.extend_from_slice(piece);
                Ok(())
            };
            let whole = parts.read(&self.service, (number, &name), (first, length), take);
            Ok::<_, RemoteError>(whole.await?.then_some(bytes))
        };
        let beginning = read(0, archive::BEGINNING).await?;
        let Some((first, length)) = beginning.as_deref().and_then(archive::index_place) else {
            return Ok(None);
        };
        let packed = match read(first, length).await {
            // It lies about its length.
            Err(RemoteError::Answer { .. }) => None,
            other => other?,
        };
        Ok(packed.and_then(|packed| archive::unpack_index(&packed, number)))
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
