//! What the bundles of GitHub's cache have: asked once for all processes of a job, and again from time to time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use reqwest::Url;

use super::index::{Bundle, Index};
use super::parts::Parts;
use super::{Github, archive, beginning, lock};
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
        parts.sweep();
        let Some(found) = self.service.find(&self.prefix).await? else {
            return Ok(Index::default());
        };
        let Some(newest) = self.number(&found.name) else {
            return Err(self.service.odd("an entry with a name that is not ours"));
        };
        let head = self.index_at(parts, newest, &found.url).await?;
        let first = newest.saturating_sub(BESIDE).max(1);
        let beside = first..=newest.saturating_add(BEHIND);
        let unknown = beside.filter(|number| !head.knows(*number));
        let look = async |number: u32| {
            let name = self.name(number);
            let found = self.service.find(&name).await?;
            match found.filter(|found| found.name == name) {
                Some(found) => self.index_at(parts, number, &found.url).await.map(Some),
                None => Ok(None),
            }
        };
        let mut indexes = Vec::new();
        for index in join_all(unknown.map(look)).await {
            indexes.extend(index?);
        }
        Ok(Index::merged([&head].into_iter().chain(&indexes)))
    }

    /// The index of the bundle of this number. One that is damaged has nothing, and is asked for no more: it will never change.
    /// Where the service fails, nothing is known of the bundle, so that later readers look at it.
    async fn index_at(&self, parts: &Parts, number: u32, url: &Url) -> Result<Index, RemoteError> {
        let nothing = |bundle: Bundle| Index::of([bundle].into(), BTreeMap::new());
        let begins = beginning::fetch(&self.service, url).await?;
        let Some(begins) = begins.filter(|begins| begins.bundle.number() == number) else {
            return Ok(nothing(Bundle::new(number)));
        };
        let bundle = begins.bundle;
        parts.note_url(bundle, url);
        let mut packed = Vec::new();
        let take = |piece: &[u8]| {
            packed.extend_from_slice(piece);
            Ok(())
        };
        let name = self.name(number);
        let span = (begins.index, begins.length);
        match parts.read(&self.service, (bundle, &name), span, take).await {
            // It is shorter than it says.
            Ok(false) => Ok(nothing(bundle)),
            Err(RemoteError::Answer { .. }) => Ok(match parts.is_gone(bundle) {
                true => nothing(bundle),
                false => Index::default(),
            }),
            Ok(true) => {
                let index = archive::unpack_index(&packed, bundle);
                Ok(index.unwrap_or_else(|| nothing(bundle)))
            }
            Err(fault) => Err(fault),
        }
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
