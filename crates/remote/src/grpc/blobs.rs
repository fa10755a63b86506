//! Many small blobs at a time, in messages as large as the server takes.

use std::collections::HashMap;

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use re::compressor::Value::Identity;
use re::content_addressable_storage_client::ContentAddressableStorageClient;
use re::digest_function::Value::Sha256;
use tonic::Code;
use tonic::transport::Channel;
use warpcc_cache::Digest;

use super::wire::{from_wire, to_wire};
use super::{Failure, Grpc, LONGEST_MESSAGE};
use crate::backend::UploadSource;
use crate::error::RemoteError;

/// The space that a digest and its status take in a message, in addition to the blob's bytes.
const AROUND: u64 = 256;

/// Messages in flight at a time.
const AT_ONCE: usize = 4;

/// A digest in a request takes 74 bytes, so this is 740 KB.
const DIGESTS_IN_A_MESSAGE: usize = 10_000;

/// A client that accepts an answer about this many blobs with this many bytes. A decoded answer takes several times the
/// bytes that were sent, so no more is accepted than was asked for.
fn client(channel: Channel, blobs: usize, bytes: u64) -> ContentAddressableStorageClient<Channel> {
    let around = blobs.saturating_mul(ABOUT_ONE).saturating_add(ABOUT_ALL);
    let most = usize::try_from(bytes).map_or(LONGEST_MESSAGE, |bytes| bytes.saturating_add(around));
    ContentAddressableStorageClient::new(channel)
        .max_decoding_message_size(most.min(LONGEST_MESSAGE))
}

/// A digest, a status and what a server says about it.
const ABOUT_ONE: usize = 512;
/// The fixed part of an answer.
const ABOUT_ALL: usize = 64 << 10;

/// Cuts `items` into groups, each of which fits into one message.
fn batches<T>(items: &[T], limit: u64, size: impl Fn(&T) -> u64) -> Vec<&[T]> {
    let mut cut = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, item) in items.iter().enumerate() {
        let more = size(item) + AROUND;
        if at > start && bytes + more > limit {
            cut.push(&items[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += more;
    }
    if start < items.len() {
        cut.push(&items[start..]);
    }
    cut
}

impl Grpc {
    pub(crate) async fn find_missing(
        &self,
        digests: &[Digest],
    ) -> Result<Vec<Digest>, RemoteError> {
        let mut missing = Vec::new();
        for some in digests.chunks(DIGESTS_IN_A_MESSAGE) {
            let body = re::FindMissingBlobsRequest {
                instance_name: self.instance(),
                blob_digests: some.iter().map(to_wire).collect(),
                digest_function: Sha256 as i32,
            };
            let count = some.len();
            let answer = self
                .call(
                    self.deadlines().call,
                    &body,
                    |channel, request| async move {
                        client(channel, count, 0).find_missing_blobs(request).await
                    },
                )
                .await;
            let answer = match answer {
                Ok(answer) => answer,
                Err(failure) => return Err(self.fault(failure).await),
            };
            for digest in &answer.missing_blob_digests {
                let digest = from_wire(digest)
                    .ok_or_else(|| self.answered("a missing blob with an invalid digest"))?;
                missing.push(digest);
            }
        }
        Ok(missing)
    }

    /// Whether the blob is to go with others in one message.
    async fn batch_limit(&self) -> Result<u64, RemoteError> {
        Ok(self.capabilities().await?.batch_bytes)
    }

    pub(crate) async fn read_blobs(
        &self,
        digests: &[Digest],
    ) -> Result<Vec<Option<Vec<u8>>>, RemoteError> {
        let limit = self.batch_limit().await?;
        let mut wanted: Vec<Digest> = digests.iter().filter(|d| d.size > 0).copied().collect();
        wanted.sort_unstable();
        wanted.dedup();
        let (small, large): (Vec<Digest>, Vec<Digest>) = wanted
            .iter()
            .partition(|digest| digest.size + AROUND <= limit);
        let mut found: HashMap<Digest, Vec<u8>> = HashMap::with_capacity(wanted.len());
        let mut reads = Vec::new();
        for some in batches(&small, limit, |digest| digest.size) {
            reads.push(self.read_batch(some));
        }
        let read: Vec<_> = stream::iter(reads)
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        found.extend(read.into_iter().flatten());
        for digest in large {
            if let Some(bytes) = self.read_to_memory(&digest).await? {
                found.insert(digest, bytes);
            }
        }
        let empty = Digest::of_bytes(b"");
        let answer = digests.iter().map(|digest| {
            if digest.size > 0 {
                return Ok(found.get(digest).cloned());
            }
            // Everybody holds it; and no other bytes are none.
            if *digest == empty {
                Ok(Some(Vec::new()))
            } else {
                Err(self.wrong(digest))
            }
        });
        answer.collect()
    }

    pub(crate) fn wrong(&self, digest: &Digest) -> RemoteError {
        RemoteError::WrongBytes {
            server: self.name().to_owned(),
            digest: *digest,
        }
    }

    async fn read_batch(&self, digests: &[Digest]) -> Result<Vec<(Digest, Vec<u8>)>, RemoteError> {
        let body = re::BatchReadBlobsRequest {
            instance_name: self.instance(),
            digests: digests.iter().map(to_wire).collect(),
            acceptable_compressors: vec![Identity as i32],
            digest_function: Sha256 as i32,
        };
        let bytes = digests.iter().map(|digest| digest.size).sum();
        let answer = self
            .call(
                self.deadlines().for_transfer(bytes),
                &body,
                |channel, request| async move {
                    client(channel, digests.len(), bytes)
                        .batch_read_blobs(request)
                        .await
                },
            )
            .await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => return Err(self.fault(failure).await),
        };
        let mut found = Vec::with_capacity(answer.responses.len());
        for response in answer.responses {
            let digest = response.digest.as_ref().and_then(from_wire);
            let digest = digest
                .filter(|digest| digests.contains(digest))
                .ok_or_else(|| self.answered("a blob that nobody asked for"))?;
            let code = response.status.as_ref().map_or(0, |status| status.code);
            match Code::from_i32(code) {
                Code::Ok if response.compressor == Identity as i32 => {
                    if Digest::of_bytes(&response.data) != digest {
                        return Err(self.wrong(&digest));
                    }
                    found.push((digest, response.data));
                }
                Code::Ok => return Err(self.answered("a compressed blob that nobody asked for")),
                Code::NotFound => {}
                code => {
                    let message = response.status.map(|s| s.message).unwrap_or_default();
                    return Err(self.fault(tonic::Status::new(code, message).into()).await);
                }
            }
        }
        Ok(found)
    }

    pub(crate) async fn write_blobs(
        &self,
        blobs: &[(Digest, UploadSource)],
    ) -> Result<(), RemoteError> {
        let limit = self.batch_limit().await?;
        let (small, large): (Vec<_>, Vec<_>) = blobs
            .iter()
            .filter(|(digest, _)| digest.size > 0)
            .partition(|(digest, _)| digest.size + AROUND <= limit);
        let mut writes = Vec::new();
        for some in batches(&small, limit, |(digest, _)| digest.size) {
            writes.push(self.write_batch(some));
        }
        stream::iter(writes)
            .buffer_unordered(AT_ONCE)
            .try_collect::<Vec<()>>()
            .await?;
        for (digest, source) in large {
            self.write_stream(digest, source).await?;
        }
        Ok(())
    }

    async fn write_batch(&self, blobs: &[&(Digest, UploadSource)]) -> Result<(), RemoteError> {
        let mut requests = Vec::with_capacity(blobs.len());
        for (digest, source) in blobs {
            let data = match source {
                UploadSource::Bytes(bytes) => bytes.clone(),
                UploadSource::File(path) => {
                    std::fs::read(path).map_err(|e| RemoteError::Local {
                        path: path.display().to_string(),
                        why: e.to_string(),
                    })?
                }
            };
            requests.push(re::batch_update_blobs_request::Request {
                digest: Some(to_wire(digest)),
                data,
                compressor: Identity as i32,
            });
        }
        let bytes = blobs.iter().map(|(digest, _)| digest.size).sum();
        let body = re::BatchUpdateBlobsRequest {
            instance_name: self.instance(),
            requests,
            digest_function: Sha256 as i32,
        };
        let answer = self
            .call(
                self.deadlines().for_transfer(bytes),
                &body,
                |channel, request| async move {
                    client(channel, blobs.len(), 0)
                        .batch_update_blobs(request)
                        .await
                },
            )
            .await;
        let failure = match answer {
            Ok(answer) => {
                let refused = answer
                    .responses
                    .into_iter()
                    .filter_map(|response| response.status)
                    .find(|status| status.code != 0);
                match refused {
                    None => return Ok(()),
                    Some(status) => Failure::from(tonic::Status::new(
                        Code::from_i32(status.code),
                        status.message,
                    )),
                }
            }
            Err(failure) => failure,
        };
        Err(self.fault(failure).await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_fit_and_lose_nothing() {
        let sizes = [10_000, 50_000, 1, 1, 65_000, 200, 64_000];
        let cut = batches(&sizes, 65_536, |size| *size);
        assert_eq!(cut.concat(), sizes);
        for some in &cut {
            let bytes: u64 = some.iter().map(|size| size + AROUND).sum();
            assert!(bytes <= 65_536, "{some:?}");
        }
        assert!(batches(&[] as &[u64], 1, |size| *size).is_empty());
    }
}
