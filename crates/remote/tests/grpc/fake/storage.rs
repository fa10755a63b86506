//! Blobs and results: the services that hold them.

use std::io::Write;

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use bazel_remote_apis::google::bytestream as bs;
use bazel_remote_apis::google::rpc;
use bs::byte_stream_server::ByteStream;
use re::action_cache_server::ActionCache;
use re::content_addressable_storage_server::ContentAddressableStorage;
use tokio_stream::iter;
use tonic::{Request, Response, Status, Streaming};
use warpcc_testkit::operations::Answers;

use super::{Fake, name};

#[tonic::async_trait]
impl ContentAddressableStorage for Fake {
    async fn find_missing_blobs(
        &self,
        request: Request<re::FindMissingBlobsRequest>,
    ) -> Result<Response<re::FindMissingBlobsResponse>, Status> {
        self.admit(&request)?;
        let blobs = self.blobs.lock().expect("lock");
        let mut missing = request.into_inner().blob_digests;
        missing.retain(|digest| !blobs.contains_key(&name(Some(digest.clone()))));
        Ok(Response::new(re::FindMissingBlobsResponse {
            missing_blob_digests: missing,
        }))
    }

    async fn batch_update_blobs(
        &self,
        request: Request<re::BatchUpdateBlobsRequest>,
    ) -> Result<Response<re::BatchUpdateBlobsResponse>, Status> {
        self.admit(&request)?;
        let requests = request.into_inner().requests;
        let bytes: usize = requests.iter().map(|r| r.data.len()).sum();
        if self.mode.batch > 0 && bytes as u64 > self.mode.batch {
            return Err(Status::invalid_argument("larger than the limit"));
        }
        self.note(format!("batch of {}", requests.len()));
        let responses = requests.into_iter().map(|one| {
            let taken = self.take(&name(one.digest.clone()), one.data);
            re::batch_update_blobs_response::Response {
                digest: one.digest,
                status: Some(match taken {
                    Ok(()) => rpc::Status::default(),
                    Err(status) => rpc::Status {
                        code: status.code() as i32,
                        message: status.message().to_owned(),
                        ..rpc::Status::default()
                    },
                }),
            }
        });
        Ok(Response::new(re::BatchUpdateBlobsResponse {
            responses: responses.collect(),
        }))
    }

    async fn batch_read_blobs(
        &self,
        request: Request<re::BatchReadBlobsRequest>,
    ) -> Result<Response<re::BatchReadBlobsResponse>, Status> {
        self.admit(&request)?;
        let digests = request.into_inner().digests;
        let bytes: i64 = digests.iter().map(|d| d.size_bytes).sum();
        if self.mode.batch > 0 && bytes.unsigned_abs() > self.mode.batch {
            return Err(Status::invalid_argument("larger than the limit"));
        }
        let responses = digests.into_iter().map(|digest| {
            let bytes = self.give(&name(Some(digest.clone())));
            re::batch_read_blobs_response::Response {
                digest: Some(digest),
                status: Some(rpc::Status {
                    code: if bytes.is_some() { 0 } else { 5 },
                    ..rpc::Status::default()
                }),
                data: bytes.unwrap_or_default(),
                compressor: 0,
            }
        });
        // Answers need not come in the order of the questions.
        let mut responses: Vec<_> = responses.collect();
        responses.reverse();
        Ok(Response::new(re::BatchReadBlobsResponse { responses }))
    }

    type GetTreeStream = Answers<re::GetTreeResponse>;

    async fn get_tree(
        &self,
        _: Request<re::GetTreeRequest>,
    ) -> Result<Response<Self::GetTreeStream>, Status> {
        Err(Status::unimplemented("no trees here"))
    }

    async fn split_blob(
        &self,
        _: Request<re::SplitBlobRequest>,
    ) -> Result<Response<re::SplitBlobResponse>, Status> {
        Err(Status::unimplemented("no chunks here"))
    }

    type GetChunkMappingStream = Answers<re::GetChunkMappingResponse>;

    async fn get_chunk_mapping(
        &self,
        _: Request<re::GetChunkMappingRequest>,
    ) -> Result<Response<Self::GetChunkMappingStream>, Status> {
        Err(Status::unimplemented("no chunks here"))
    }

    async fn splice_blob(
        &self,
        _: Request<re::SpliceBlobRequest>,
    ) -> Result<Response<re::SpliceBlobResponse>, Status> {
        Err(Status::unimplemented("no chunks here"))
    }

    async fn register_chunk_mapping(
        &self,
        _: Request<Streaming<re::RegisterChunkMappingRequest>>,
    ) -> Result<Response<re::RegisterChunkMappingResponse>, Status> {
        Err(Status::unimplemented("no chunks here"))
    }
}

#[tonic::async_trait]
impl ByteStream for Fake {
    type ReadStream = Answers<bs::ReadResponse>;

    async fn read(
        &self,
        request: Request<bs::ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        self.admit(&request)?;
        let resource = request.into_inner().resource_name;
        self.note(resource.clone());
        let parts: Vec<&str> = resource.rsplitn(3, '/').collect();
        let digest = format!("{}/{}", parts[1], parts[0]);
        let mut bytes = self
            .give(&digest)
            .ok_or_else(|| Status::not_found("no such blob"))?;
        if parts[2].ends_with("compressed-blobs/zstd") {
            bytes = zstd::encode_all(&bytes[..], 1)?;
        }
        let pieces: Vec<_> = bytes
            .chunks(100_000)
            .map(|data| {
                Ok(bs::ReadResponse {
                    data: data.to_vec(),
                })
            })
            .collect();
        Ok(Response::new(Box::pin(iter(pieces))))
    }

    async fn write(
        &self,
        request: Request<Streaming<bs::WriteRequest>>,
    ) -> Result<Response<bs::WriteResponse>, Status> {
        self.admit(&request)?;
        let mut pieces = request.into_inner();
        let (mut resource, mut bytes) = (String::new(), Vec::new());
        while let Some(piece) = pieces.message().await? {
            if resource.is_empty() {
                resource = piece.resource_name;
            }
            if piece.write_offset != i64::try_from(bytes.len()).expect("small") {
                return Err(Status::invalid_argument("a hole"));
            }
            bytes.write_all(&piece.data)?;
        }
        self.note(resource.clone());
        let committed_size = i64::try_from(bytes.len()).expect("small");
        let parts: Vec<&str> = resource.rsplitn(3, '/').collect();
        if parts[2].ends_with("compressed-blobs/zstd") {
            bytes = zstd::decode_all(&bytes[..])?;
        }
        self.take(&format!("{}/{}", parts[1], parts[0]), bytes)?;
        Ok(Response::new(bs::WriteResponse { committed_size }))
    }

    async fn query_write_status(
        &self,
        _: Request<bs::QueryWriteStatusRequest>,
    ) -> Result<Response<bs::QueryWriteStatusResponse>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }
}

#[tonic::async_trait]
impl ActionCache for Fake {
    async fn get_action_result(
        &self,
        request: Request<re::GetActionResultRequest>,
    ) -> Result<Response<re::ActionResult>, Status> {
        self.admit(&request)?;
        let name = name(request.into_inner().action_digest);
        let found = self.results.lock().expect("lock").get(&name).cloned();
        found
            .map(Response::new)
            .ok_or_else(|| Status::not_found("no result"))
    }

    async fn update_action_result(
        &self,
        request: Request<re::UpdateActionResultRequest>,
    ) -> Result<Response<re::ActionResult>, Status> {
        self.admit(&request)?;
        let request = request.into_inner();
        let result = request.action_result.unwrap_or_default();
        let mut results = self.results.lock().expect("lock");
        results.insert(name(request.action_digest), result.clone());
        Ok(Response::new(result))
    }
}
