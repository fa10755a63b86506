//! A Remote Execution cluster out of several servers, for tests and measurements: actions go to the worker with the
//! fewest under way, all else to the server in front, whose blobs and results the workers share.
//!
//! It is no scheduler to build with: it retries nothing, queues nothing and knows no platform properties.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use bazel_remote_apis::google::longrunning as lr;
use bazel_remote_apis::google::protobuf::Empty;
use lr::Operation;
use lr::operations_client::OperationsClient;
use lr::operations_server::{Operations, OperationsServer};
use re::execution_client::ExecutionClient;
use re::execution_server::{Execution, ExecutionServer};
use tokio_stream::{Stream, StreamExt};
use tonic::codegen::{BoxFuture, Service, http};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};

/// Stands in front of the servers. Copies share everything.
#[derive(Clone)]
pub struct Dispatcher {
    front: Channel,
    workers: Arc<[Worker]>,
    /// What every call waits before it is passed on, as if the servers were so far away.
    round_trip: Duration,
}

struct Worker {
    channel: Channel,
    under_way: AtomicU64,
    taken: AtomicU64,
}

/// An action that a worker has.
struct Held {
    workers: Arc<[Worker]>,
    at: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.workers[self.at]
            .under_way
            .fetch_sub(1, Ordering::SeqCst);
    }
}

type Boxed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;
type Body = tonic::body::Body;

fn connect(address: &str) -> Channel {
    let uri = address.replace("grpc://", "http://");
    let endpoint = Endpoint::from_shared(uri).expect("an address");
    // As the client under test has it, so that a large blob is not slower for the detour.
    endpoint
        .tcp_nodelay(true)
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(8 << 20)
        .connect_lazy()
}

impl Dispatcher {
    /// Starts it on `port`, any for 0, before servers whose addresses begin with `grpc://`; gives the port too. It lives
    /// as long as the runtime.
    pub fn start(
        port: u16,
        front: &str,
        workers: &[String],
        round_trip: Duration,
    ) -> std::io::Result<(Self, u16)> {
        let worker = |address: &String| Worker {
            channel: connect(address),
            under_way: AtomicU64::new(0),
            taken: AtomicU64::new(0),
        };
        let dispatcher = Self {
            front: connect(front),
            workers: workers.iter().map(worker).collect(),
            round_trip,
        };
        let incoming = TcpIncoming::bind(([127, 0, 0, 1], port).into())?.with_nodelay(Some(true));
        let port = incoming.local_addr()?.port();
        let mut rest = tonic::service::Routes::default();
        let router = std::mem::take(rest.axum_router_mut());
        *rest.axum_router_mut() = router.fallback_service(dispatcher.clone());
        let router = Server::builder()
            .initial_stream_window_size(1 << 20)
            .initial_connection_window_size(8 << 20)
            .add_routes(rest)
            .add_service(ExecutionServer::new(dispatcher.clone()))
            .add_service(OperationsServer::new(dispatcher.clone()));
        tokio::spawn(router.serve_with_incoming(incoming));
        Ok((dispatcher, port))
    }

    /// How many actions each worker was given so far.
    pub fn taken(&self) -> Vec<u64> {
        let taken = |worker: &Worker| worker.taken.load(Ordering::SeqCst);
        self.workers.iter().map(taken).collect()
    }

    fn least_busy(&self) -> Held {
        let load = |at: &usize| {
            let worker = &self.workers[*at];
            let under_way = worker.under_way.load(Ordering::SeqCst);
            (under_way, worker.taken.load(Ordering::SeqCst))
        };
        let at = (0..self.workers.len()).min_by_key(load).unwrap_or(0);
        self.workers[at].under_way.fetch_add(1, Ordering::SeqCst);
        self.workers[at].taken.fetch_add(1, Ordering::SeqCst);
        Held {
            workers: Arc::clone(&self.workers),
            at,
        }
    }

    /// The worker that a name of ours means, and the operation's name there.
    fn named(&self, name: &str) -> Result<(Channel, String), Status> {
        let parts = name.split_once(':');
        let found = parts.and_then(|(at, name)| Some((at.parse::<usize>().ok()?, name)));
        let (at, name) = found.ok_or_else(|| Status::not_found("no such operation"))?;
        let worker = self.workers.get(at);
        let worker = worker.ok_or_else(|| Status::not_found("no such worker"))?;
        Ok((worker.channel.clone(), name.to_owned()))
    }
}

/// So that an operation is found again.
fn rename(at: usize, mut operation: Operation) -> Operation {
    if !operation.name.is_empty() {
        operation.name = format!("{at}:{}", operation.name);
    }
    operation
}

#[tonic::async_trait]
impl Execution for Dispatcher {
    type ExecuteStream = Boxed<Operation>;
    type WaitExecutionStream = Boxed<Operation>;

    async fn execute(
        &self,
        request: Request<re::ExecuteRequest>,
    ) -> Result<Response<Self::ExecuteStream>, Status> {
        tokio::time::sleep(self.round_trip).await;
        let held = self.least_busy();
        let mut client = ExecutionClient::new(self.workers[held.at].channel.clone());
        let answer = client.execute(request.into_inner()).await?.into_inner();
        // Held until the stream is done or nobody listens any more.
        let named = answer.map(move |said| said.map(|operation| rename(held.at, operation)));
        Ok(Response::new(Box::pin(named)))
    }

    async fn wait_execution(
        &self,
        request: Request<re::WaitExecutionRequest>,
    ) -> Result<Response<Self::WaitExecutionStream>, Status> {
        let (channel, name) = self.named(&request.into_inner().name)?;
        let question = re::WaitExecutionRequest { name };
        let mut client = ExecutionClient::new(channel);
        let answer = client.wait_execution(question).await?;
        Ok(Response::new(Box::pin(answer.into_inner())))
    }
}

#[tonic::async_trait]
impl Operations for Dispatcher {
    async fn cancel_operation(
        &self,
        request: Request<lr::CancelOperationRequest>,
    ) -> Result<Response<Empty>, Status> {
        let (channel, name) = self.named(&request.into_inner().name)?;
        let question = lr::CancelOperationRequest { name };
        OperationsClient::new(channel)
            .cancel_operation(question)
            .await
    }

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

    async fn wait_operation(
        &self,
        _: Request<lr::WaitOperationRequest>,
    ) -> Result<Response<Operation>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }
}

/// Every other call, as it comes.
impl<B> Service<http::Request<B>> for Dispatcher
where
    B: tonic::codegen::Body<Data = tonic::codegen::Bytes> + Send + 'static,
    B::Error: Into<tonic::codegen::StdError>,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let (mut front, round_trip) = (self.front.clone(), self.round_trip);
        Box::pin(async move {
            tokio::time::sleep(round_trip).await;
            let ready = std::future::poll_fn(|context| front.poll_ready(context)).await;
            let answer = match ready {
                Ok(()) => front.call(request.map(Body::new)).await,
                Err(error) => Err(error),
            };
            let unreachable = |error: tonic::transport::Error| {
                Status::unavailable(format!("the server in front: {error}")).into_http()
            };
            Ok(answer.unwrap_or_else(unreachable))
        })
    }
}
