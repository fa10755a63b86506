//! A Remote Execution server that passes everything on to a real one, counts the actions in flight, and does not answer
//! those that a test names.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use bazel_remote_apis::google::bytestream as bs;
use bazel_remote_apis::google::longrunning as lr;
use bazel_remote_apis::google::protobuf::Empty;
use bs::byte_stream_client::ByteStreamClient;
use bs::byte_stream_server::{ByteStream, ByteStreamServer};
use lr::operations_client::OperationsClient;
use lr::operations_server::{Operations, OperationsServer};
use prost::Message;
use re::capabilities_client::CapabilitiesClient;
use re::capabilities_server::{Capabilities, CapabilitiesServer};
use re::content_addressable_storage_client::ContentAddressableStorageClient;
use re::content_addressable_storage_server::{
    ContentAddressableStorage, ContentAddressableStorageServer,
};
use re::execution_client::ExecutionClient;
use re::execution_server::{Execution, ExecutionServer};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt, iter};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};

const LIMIT: usize = 16 << 20;

/// Larger blobs are no messages.
const MESSAGE: usize = 64 << 10;

/// What tests ask of it and learn from it.
#[derive(Default)]
struct State {
    /// Actions whose words hold this are never answered; an empty text holds all.
    held: Option<String>,
    /// How many actions are in flight.
    flying: usize,
    /// The most that were.
    most: usize,
    /// The operations in flight that are not answered.
    waiting: Vec<String>,
    /// Operations that a client cancelled.
    cancelled: Vec<String>,
    /// Small blobs: among them the commands.
    blobs: HashMap<String, Vec<u8>>,
    operations: usize,
}

/// A server that ends with this value.
pub struct Proxy {
    state: Arc<Mutex<State>>,
    port: u16,
    _runtime: tokio::runtime::Runtime,
}

impl Proxy {
    /// One before the server at `address`.
    pub fn before(address: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let state: Arc<Mutex<State>> = Arc::default();
        let uri = address.replacen("grpc://", "http://", 1);
        let port = runtime.block_on(async {
            let there = Endpoint::from_shared(uri)
                .expect("an address")
                .connect_lazy();
            let passing = Passing {
                state: Arc::clone(&state),
                there,
            };
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let port = listener.local_addr().expect("an address").port();
            let router = Server::builder()
                .add_service(
                    ContentAddressableStorageServer::new(passing.clone())
                        .max_decoding_message_size(LIMIT),
                )
                .add_service(
                    ByteStreamServer::new(passing.clone()).max_decoding_message_size(LIMIT),
                )
                .add_service(CapabilitiesServer::new(passing.clone()))
                .add_service(OperationsServer::new(passing.clone()))
                .add_service(ExecutionServer::new(passing));
            tokio::spawn(router.serve_with_incoming(TcpListenerStream::new(listener)));
            port
        });
        Self {
            state,
            port,
            _runtime: runtime,
        }
    }

    /// As `WARPCC_EXECUTOR` names it.
    pub fn address(&self) -> String {
        format!("grpc://127.0.0.1:{}", self.port)
    }

    /// From now on actions whose words hold `text` are not answered; none, where there is no text.
    pub fn hold(&self, text: Option<&str>) {
        self.state.lock().expect("lock").held = text.map(str::to_owned);
    }

    /// How many actions are in flight.
    pub fn flying(&self) -> usize {
        self.state.lock().expect("lock").flying
    }

    /// The most that were in flight at a time.
    pub fn most(&self) -> usize {
        self.state.lock().expect("lock").most
    }

    /// The operations in flight that are not answered.
    pub fn held(&self) -> Vec<String> {
        self.state.lock().expect("lock").waiting.clone()
    }

    /// Operations that were cancelled by name.
    pub fn cancelled(&self) -> Vec<String> {
        self.state.lock().expect("lock").cancelled.clone()
    }

    /// Waits until `count` actions are in flight.
    pub fn wait_for(&self, count: usize) {
        let patience = Instant::now();
        while self.flying() != count {
            assert!(
                patience.elapsed() < Duration::from_secs(120),
                "{} actions are in flight, not {count}",
                self.flying()
            );
            thread::sleep(Duration::from_millis(5));
        }
    }
}

#[derive(Clone)]
struct Passing {
    state: Arc<Mutex<State>>,
    there: Channel,
}

type Boxed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// An action in flight, with its name where it is not answered.
struct Flight(Arc<Mutex<State>>, Option<String>);

impl Flight {
    fn begin(state: &Arc<Mutex<State>>) -> Self {
        let mut known = state.lock().expect("lock");
        known.flying += 1;
        known.most = known.most.max(known.flying);
        Self(Arc::clone(state), None)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut state = self.0.lock().expect("lock");
        state.flying -= 1;
        state.waiting.retain(|name| Some(name) != self.1.as_ref());
    }
}

fn name(digest: Option<&re::Digest>) -> String {
    digest.map_or_else(String::new, |d| format!("{}/{}", d.hash, d.size_bytes))
}

impl State {
    /// The words of an action, as far as we saw them pass.
    fn words(&self, action: Option<&re::Digest>) -> String {
        let action = self.blobs.get(&name(action));
        let action = action.and_then(|bytes| re::Action::decode(&bytes[..]).ok());
        let command = action.and_then(|action| {
            let bytes = self.blobs.get(&name(action.command_digest.as_ref()))?;
            re::Command::decode(&bytes[..]).ok()
        });
        command.map_or_else(String::new, |command| command.arguments.join(" "))
    }
}

impl Passing {
    fn blobs(&self) -> ContentAddressableStorageClient<Channel> {
        ContentAddressableStorageClient::new(self.there.clone()).max_decoding_message_size(LIMIT)
    }
}

#[tonic::async_trait]
impl Capabilities for Passing {
    async fn get_capabilities(
        &self,
        request: Request<re::GetCapabilitiesRequest>,
    ) -> Result<Response<re::ServerCapabilities>, Status> {
        let mut there = CapabilitiesClient::new(self.there.clone());
        there.get_capabilities(request.into_inner()).await
    }
}

#[tonic::async_trait]
impl Execution for Passing {
    type ExecuteStream = Boxed<lr::Operation>;

    async fn execute(
        &self,
        request: Request<re::ExecuteRequest>,
    ) -> Result<Response<Self::ExecuteStream>, Status> {
        let request = request.into_inner();
        let mut flight = Flight::begin(&self.state);
        let held = {
            let mut state = self.state.lock().expect("lock");
            let words = state.words(request.action_digest.as_ref());
            let holds = state.held.as_ref().is_some_and(|text| words.contains(text));
            state.operations += 1;
            holds.then(|| format!("held/{}", state.operations))
        };
        let answers: Boxed<lr::Operation> = match held {
            Some(name) => {
                flight.1 = Some(name.clone());
                self.state.lock().expect("lock").waiting.push(name.clone());
                let operation = lr::Operation {
                    name,
                    ..lr::Operation::default()
                };
                Box::pin(iter([Ok(operation)]).chain(tokio_stream::pending()))
            }
            None => {
                let mut there =
                    ExecutionClient::new(self.there.clone()).max_decoding_message_size(LIMIT);
                Box::pin(there.execute(request).await?.into_inner())
            }
        };
        let counted = answers.map(move |answer| {
            let _in_flight = &flight;
            answer
        });
        Ok(Response::new(Box::pin(counted)))
    }

    type WaitExecutionStream = Boxed<lr::Operation>;

    async fn wait_execution(
        &self,
        _: Request<re::WaitExecutionRequest>,
    ) -> Result<Response<Self::WaitExecutionStream>, Status> {
        Err(Status::unimplemented("no stream breaks here"))
    }
}

#[tonic::async_trait]
impl Operations for Passing {
    async fn list_operations(
        &self,
        _: Request<lr::ListOperationsRequest>,
    ) -> Result<Response<lr::ListOperationsResponse>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }

    async fn get_operation(
        &self,
        _: Request<lr::GetOperationRequest>,
    ) -> Result<Response<lr::Operation>, Status> {
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
        let request = request.into_inner();
        self.state
            .lock()
            .expect("lock")
            .cancelled
            .push(request.name.clone());
        if request.name.starts_with("held/") {
            return Ok(Response::new(Empty {}));
        }
        let mut there = OperationsClient::new(self.there.clone());
        there.cancel_operation(request).await
    }

    async fn wait_operation(
        &self,
        _: Request<lr::WaitOperationRequest>,
    ) -> Result<Response<lr::Operation>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }
}

#[tonic::async_trait]
impl ContentAddressableStorage for Passing {
    async fn find_missing_blobs(
        &self,
        request: Request<re::FindMissingBlobsRequest>,
    ) -> Result<Response<re::FindMissingBlobsResponse>, Status> {
        self.blobs().find_missing_blobs(request.into_inner()).await
    }

    async fn batch_update_blobs(
        &self,
        request: Request<re::BatchUpdateBlobsRequest>,
    ) -> Result<Response<re::BatchUpdateBlobsResponse>, Status> {
        let request = request.into_inner();
        {
            let mut state = self.state.lock().expect("lock");
            for blob in request.requests.iter().filter(|b| b.data.len() <= MESSAGE) {
                state
                    .blobs
                    .insert(name(blob.digest.as_ref()), blob.data.clone());
            }
        }
        self.blobs().batch_update_blobs(request).await
    }

    async fn batch_read_blobs(
        &self,
        request: Request<re::BatchReadBlobsRequest>,
    ) -> Result<Response<re::BatchReadBlobsResponse>, Status> {
        self.blobs().batch_read_blobs(request.into_inner()).await
    }

    type GetTreeStream = Boxed<re::GetTreeResponse>;

    async fn get_tree(
        &self,
        _: Request<re::GetTreeRequest>,
    ) -> Result<Response<Self::GetTreeStream>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }

    async fn split_blob(
        &self,
        _: Request<re::SplitBlobRequest>,
    ) -> Result<Response<re::SplitBlobResponse>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }

    type GetChunkMappingStream = Boxed<re::GetChunkMappingResponse>;

    async fn get_chunk_mapping(
        &self,
        _: Request<re::GetChunkMappingRequest>,
    ) -> Result<Response<Self::GetChunkMappingStream>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }

    async fn splice_blob(
        &self,
        _: Request<re::SpliceBlobRequest>,
    ) -> Result<Response<re::SpliceBlobResponse>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }

    async fn register_chunk_mapping(
        &self,
        _: Request<Streaming<re::RegisterChunkMappingRequest>>,
    ) -> Result<Response<re::RegisterChunkMappingResponse>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }
}

#[tonic::async_trait]
impl ByteStream for Passing {
    type ReadStream = Boxed<bs::ReadResponse>;

    async fn read(
        &self,
        request: Request<bs::ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        let mut there = ByteStreamClient::new(self.there.clone()).max_decoding_message_size(LIMIT);
        let pieces = there.read(request.into_inner()).await?.into_inner();
        Ok(Response::new(Box::pin(pieces)))
    }

    async fn write(
        &self,
        request: Request<Streaming<bs::WriteRequest>>,
    ) -> Result<Response<bs::WriteResponse>, Status> {
        let pieces = request.into_inner().map_while(Result::ok);
        ByteStreamClient::new(self.there.clone())
            .write(pieces)
            .await
    }

    async fn query_write_status(
        &self,
        _: Request<bs::QueryWriteStatusRequest>,
    ) -> Result<Response<bs::QueryWriteStatusResponse>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }
}
