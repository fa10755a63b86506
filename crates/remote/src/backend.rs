//! The interface of a shared cache, for every protocol.

use std::path::PathBuf;

use bazel_remote_apis::build::bazel::remote::execution::v2::ActionResult;
use warpcc_cache::{Digest, Key};

use crate::error::RemoteError;

/// The place of the bytes of a blob that is to be uploaded.
#[derive(Clone, Debug)]
pub enum UploadSource {
    /// Here.
    Bytes(Vec<u8>),
    /// In a file, as they are: not compressed, not framed.
    File(PathBuf),
}

/// One server. Each implementation has deadlines, so every call ends.
///
/// Implementations verify every digest of what they fetch ([`RemoteError::WrongBytes`]), keep credentials out of
/// faults, and never retry longer than their deadline.
pub trait Backend {
    /// The result under `key`; `None` if there is none.
    fn result(
        &self,
        key: &Key,
    ) -> impl Future<Output = Result<Option<ActionResult>, RemoteError>> + Send;

    /// Stores `result` under `key`, in place of an older one. The server must have the blobs that it names already:
    /// some servers check.
    fn put_result(
        &self,
        key: &Key,
        result: &ActionResult,
    ) -> impl Future<Output = Result<(), RemoteError>> + Send;

    /// Those of `digests` whose blobs the server does not have.
    fn missing(
        &self,
        digests: &[Digest],
    ) -> impl Future<Output = Result<Vec<Digest>, RemoteError>> + Send;

    /// Fetches small blobs, in as few calls as the server allows. The result has the order of the request, and `None`
    /// for a blob that the server does not have.
    fn read_small(
        &self,
        digests: &[Digest],
    ) -> impl Future<Output = Result<Vec<Option<Vec<u8>>>, RemoteError>> + Send;

    /// One blob of any size into the new file `to`, in bounded memory. False where the server does not hold it; the
    /// file is then not there.
    fn read_large(
        &self,
        digest: &Digest,
        to: &std::path::Path,
    ) -> impl Future<Output = Result<bool, RemoteError>> + Send;

    /// Uploads blobs that are missing, in bounded memory.
    fn write(
        &self,
        blobs: &[(Digest, UploadSource)],
    ) -> impl Future<Output = Result<(), RemoteError>> + Send;

    /// Whether the server will soon lose the result under `key`, unless it is uploaded again.
    fn is_aging(&self, _key: &Key) -> bool {
        false
    }

    /// Things at the server that were not understood, and were passed over, since the last time this was asked.
    fn take_ignored(&self) -> u64 {
        0
    }
}
