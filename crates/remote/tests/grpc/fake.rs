//! A server written by hand, for what no real one does on demand: other batch limits, zstd, wrong bytes, refusals.
//!
//! It keeps blobs in memory and holds itself to what it advertises: a message with more blobs than its limit is refused.

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use bazel_remote_apis::google::bytestream as bs;
use bazel_remote_apis::google::longrunning as lr;
use bazel_remote_apis::google::protobuf::{Any, Empty};
use bazel_remote_apis::google::rpc;
use bs::byte_stream_server::{ByteStream, ByteStreamServer};
use lr::operations_server::{Operations, OperationsServer};
use lr::{Operation, operation};
use prost::Message;
use re::action_cache_server::{ActionCache, ActionCacheServer};
use re::capabilities_server::{Capabilities, CapabilitiesServer};
use re::compressor::Value::Zstd;
use re::content_addressable_storage_server::{
    ContentAddressableStorage, ContentAddressableStorageServer,
};
use re::execution_server::{Execution, ExecutionServer};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt, iter};
use tonic::transport::{Server, ServerTlsConfig};
use tonic::{Request, Response, Status, Streaming};
use warpcc_cache::Digest;

/// How it behaves.
#[derive(Clone, Default)]
pub struct UploadMode {
    /// What it advertises and keeps to; 0 is no limit.
    pub batch: u64,
    /// Whether blobs may travel as zstd.
    pub zstd: bool,
    /// Turns one bit of every blob it gives.
    pub spoils: bool,
    /// Adds to every blob it gives.
    pub exaggerates: bool,
    /// The digest functions it says it knows.
    pub functions: Vec<i32>,
    /// The one `authorization` it takes, and changes at will.
    pub token: Arc<Mutex<Option<String>>>,
    /// Each call of a service but the capabilities ends so.
    pub fails: Option<tonic::Code>,
    /// What becomes of the actions, one after the other.
    pub plays: Arc<Mutex<VecDeque<Play>>>,
}

/// What becomes of an action.
#[derive(Clone)]
pub enum Play {
    /// The call is refused so.
    Refuses(tonic::Code),
    /// The answer holds this status.
    Says(tonic::Code),
    /// It ran.
    Result(Box<re::ActionResult>),
    /// The stream ends before it is done; who asks again gets the next play.
    BreaksOff,
    /// It runs and runs.
    Runs,
    /// All blobs are lost meanwhile, and the call is refused so.
    Forgets(tonic::Code),
}

#[derive(Clone, Default)]
pub struct Fake {
    mode: UploadMode,
    blobs: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    results: Arc<Mutex<HashMap<String, re::ActionResult>>>,
    /// The names of resources, and other things of interest.
    pub seen: Arc<Mutex<Vec<String>>>,
}

type Boxed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Fake {
    /// Starts it; gives the port. It lives as long as the runtime.
    pub async fn start(mode: UploadMode, tls: Option<ServerTlsConfig>) -> (Self, u16) {
        let fake = Self {
            mode,
            ..Self::default()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let mut server = Server::builder();
        if let Some(tls) = tls {
            server = server.tls_config(tls).expect("certificates");
        }
        const LIMIT: usize = 4 << 20;
        let router = server
            .add_service(
                ContentAddressableStorageServer::new(fake.clone()).max_decoding_message_size(LIMIT),
            )
            .add_service(ByteStreamServer::new(fake.clone()).max_decoding_message_size(LIMIT))
            .add_service(ActionCacheServer::new(fake.clone()))
            .add_service(CapabilitiesServer::new(fake.clone()))
            .add_service(OperationsServer::new(fake.clone()))
            .add_service(ExecutionServer::new(fake.clone()));
        tokio::spawn(router.serve_with_incoming(TcpListenerStream::new(listener)));
        (fake, port)
    }

    fn admit<T>(&self, request: &Request<T>) -> Result<(), Status> {
        if let Some(token) = &*self.mode.token.lock().expect("lock") {
            let said = request.metadata().get("authorization");
            let said = said.and_then(|v| v.to_str().ok()).unwrap_or_default();
            if said != token {
                // As careless servers do.
                return Err(Status::unauthenticated(format!("no good: {said}")));
            }
        }
        match self.mode.fails {
            Some(code) => Err(Status::new(code, "on purpose")),
            None => Ok(()),
        }
    }

    fn give(&self, digest: &str) -> Option<Vec<u8>> {
        let mut bytes = self.blobs.lock().expect("lock").get(digest)?.clone();
        if self.mode.spoils {
            bytes[0] ^= 1;
        }
        if self.mode.exaggerates {
            bytes.extend_from_slice(b"and more");
        }
        Some(bytes)
    }

    fn take(&self, digest: &str, bytes: Vec<u8>) -> Result<(), Status> {
        if Digest::of_bytes(&bytes).to_string() != digest {
            return Err(Status::invalid_argument("not the bytes of the digest"));
        }
        self.blobs
            .lock()
            .expect("lock")
            .insert(digest.to_owned(), bytes);
        Ok(())
    }
}

fn name(digest: Option<re::Digest>) -> String {
    let digest = digest.unwrap_or_default();
    format!("{}/{}", digest.hash, digest.size_bytes)
}

#[tonic::async_trait]
impl Capabilities for Fake {
    async fn get_capabilities(
        &self,
        _: Request<re::GetCapabilitiesRequest>,
    ) -> Result<Response<re::ServerCapabilities>, Status> {
        Ok(Response::new(re::ServerCapabilities {
            cache_capabilities: Some(re::CacheCapabilities {
                digest_functions: self.mode.functions.clone(),
                max_batch_total_size_bytes: i64::try_from(self.mode.batch).expect("small"),
                supported_compressors: self.mode.zstd.then_some(Zstd as i32).into_iter().collect(),
                ..re::CacheCapabilities::default()
            }),
            execution_capabilities: Some(re::ExecutionCapabilities {
                digest_function: re::digest_function::Value::Sha256 as i32,
                exec_enabled: true,
                ..re::ExecutionCapabilities::default()
            }),
            ..re::ServerCapabilities::default()
        }))
    }
}

impl Fake {
    /// The bytes become a blob; gives its digest as the protocol has it.
    pub fn hold(&self, bytes: &[u8]) -> re::Digest {
        let digest = Digest::of_bytes(bytes);
        let mut blobs = self.blobs.lock().expect("lock");
        blobs.insert(digest.to_string(), bytes.to_vec());
        re::Digest {
            hash: digest.hex(),
            size_bytes: i64::try_from(digest.size).expect("small"),
        }
    }

    fn play(&self) -> Result<Response<Boxed<Operation>>, Status> {
        let mut operation = Operation {
            name: "operations/1".to_owned(),
            ..Operation::default()
        };
        let play = self.mode.plays.lock().expect("lock").pop_front();
        let response = match play.expect("a play for each action") {
            Play::Refuses(code) => return Err(Status::new(code, "no")),
            Play::Forgets(code) => {
                self.blobs.lock().expect("lock").clear();
                return Err(Status::new(code, "gone"));
            }
            Play::BreaksOff => return Ok(Response::new(Box::pin(iter([Ok(operation)])))),
            Play::Runs => {
                let never = tokio_stream::pending();
                return Ok(Response::new(Box::pin(iter([Ok(operation)]).chain(never))));
            }
            Play::Says(code) => re::ExecuteResponse {
                status: Some(rpc::Status {
                    code: code as i32,
                    ..rpc::Status::default()
                }),
                ..re::ExecuteResponse::default()
            },
            Play::Result(result) => re::ExecuteResponse {
                result: Some(*result),
                ..re::ExecuteResponse::default()
            },
        };
        operation.done = true;
        operation.result = Some(operation::Result::Response(Any {
            type_url: "type.googleapis.com/build.bazel.remote.execution.v2.ExecuteResponse"
                .to_owned(),
            value: response.encode_to_vec(),
        }));
        Ok(Response::new(Box::pin(iter([Ok(operation)]))))
    }
}

#[tonic::async_trait]
impl Execution for Fake {
    type ExecuteStream = Boxed<Operation>;

    async fn execute(
        &self,
        request: Request<re::ExecuteRequest>,
    ) -> Result<Response<Self::ExecuteStream>, Status> {
        self.admit(&request)?;
        let request = request.into_inner();
        let cached = if request.skip_cache_lookup {
            ""
        } else {
            " or known"
        };
        self.seen
            .lock()
            .expect("lock")
            .push(format!("execute{cached}"));
        if !self
            .blobs
            .lock()
            .expect("lock")
            .contains_key(&name(request.action_digest))
        {
            return Err(Status::failed_precondition("no such action"));
        }
        self.play()
    }

    type WaitExecutionStream = Boxed<Operation>;

    async fn wait_execution(
        &self,
        request: Request<re::WaitExecutionRequest>,
    ) -> Result<Response<Self::WaitExecutionStream>, Status> {
        self.admit(&request)?;
        let name = request.into_inner().name;
        self.seen
            .lock()
            .expect("lock")
            .push(format!("wait for {name}"));
        self.play()
    }
}

#[tonic::async_trait]
impl Operations for Fake {
    async fn list_operations(
        &self,
        _: Request<lr::ListOperationsRequest>,
    ) -> Result<Response<lr::ListOperationsResponse>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }

    async fn get_operation(
        &self,
        _: Request<lr::GetOperationRequest>,
    ) -> Result<Response<Operation>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }

    async fn delete_operation(
        &self,
        _: Request<lr::DeleteOperationRequest>,
    ) -> Result<Response<Empty>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }

    async fn cancel_operation(
        &self,
        request: Request<lr::CancelOperationRequest>,
    ) -> Result<Response<Empty>, Status> {
        let name = request.into_inner().name;
        self.seen
            .lock()
            .expect("lock")
            .push(format!("cancel {name}"));
        Ok(Response::new(Empty {}))
    }

    async fn wait_operation(
        &self,
        _: Request<lr::WaitOperationRequest>,
    ) -> Result<Response<Operation>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }
}

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
        self.seen
            .lock()
            .expect("lock")
            .push(format!("batch of {}", requests.len()));
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

    type GetTreeStream = Boxed<re::GetTreeResponse>;

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

    type GetChunkMappingStream = Boxed<re::GetChunkMappingResponse>;

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
    type ReadStream = Boxed<bs::ReadResponse>;

    async fn read(
        &self,
        request: Request<bs::ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        self.admit(&request)?;
        let resource = request.into_inner().resource_name;
        self.seen.lock().expect("lock").push(resource.clone());
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
        self.seen.lock().expect("lock").push(resource.clone());
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
