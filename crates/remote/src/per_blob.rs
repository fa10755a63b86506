//! Servers with one blob per call: several calls at the same time implement [`Backend`] for them.

use std::io::Write;
use std::path::Path;

use bazel_remote_apis::build::bazel::remote::execution::v2::ActionResult;
use futures_util::{StreamExt, TryStreamExt, stream};
use warpcc_cache::{Digest, Key};

use crate::backend::{Backend, UploadSource};
use crate::download::NewFile;
use crate::error::RemoteError;

/// The number of calls at a time for one request of several blobs.
const AT_ONCE: usize = 16;

/// A server with one blob per call. The rules for a [`Backend`] apply here too.
pub trait PerBlob: Sync {
    /// The result under `key`; nothing where there is none.
    fn get_result(
        &self,
        key: &Key,
    ) -> impl Future<Output = Result<Option<ActionResult>, RemoteError>> + Send;

    /// Puts `result` under `key`.
    fn replace_result(
        &self,
        key: &Key,
        result: &ActionResult,
    ) -> impl Future<Output = Result<(), RemoteError>> + Send;

    /// Whether it holds the blob.
    fn has_blob(&self, digest: &Digest) -> impl Future<Output = Result<bool, RemoteError>> + Send;

    /// Fetches the blob into `out`. Returns false if there is none.
    fn get_blob(
        &self,
        digest: &Digest,
        out: impl Write + Send,
    ) -> impl Future<Output = Result<bool, RemoteError>> + Send;

    /// Uploads the blob.
    fn put_blob(
        &self,
        digest: &Digest,
        source: &UploadSource,
    ) -> impl Future<Output = Result<(), RemoteError>> + Send;
}

impl<T: PerBlob> Backend for T {
    async fn result(&self, key: &Key) -> Result<Option<ActionResult>, RemoteError> {
        self.get_result(key).await
    }

    async fn put_result(&self, key: &Key, result: &ActionResult) -> Result<(), RemoteError> {
        self.replace_result(key, result).await
    }

    async fn missing(&self, digests: &[Digest]) -> Result<Vec<Digest>, RemoteError> {
        let is_missing = |digest: Digest| async move {
            let there = self.has_blob(&digest).await?;
            Ok((!there).then_some(digest))
        };
        let asked = stream::iter(digests.iter().copied()).map(is_missing);
        let answers: Vec<_> = asked.buffered(AT_ONCE).try_collect().await?;
        Ok(answers.into_iter().flatten().collect())
    }

    async fn read_small(&self, digests: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, RemoteError> {
        let read = |digest: Digest| async move {
            let mut bytes = Vec::new();
            let there = self.get_blob(&digest, &mut bytes).await?;
            Ok(there.then_some(bytes))
        };
        let asked = stream::iter(digests.iter().copied()).map(read);
        asked.buffered(AT_ONCE).try_collect().await
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
        let put = |(digest, source): &(Digest, UploadSource)| {
            let (digest, source) = (*digest, source.clone());
            async move { self.put_blob(&digest, &source).await }
        };
        let sent = stream::iter(blobs.iter().map(put));
        sent.buffer_unordered(AT_ONCE).try_collect().await
    }
}
