//! A Remote Execution cluster out of one or several servers, for tests and measurements: actions go to the worker with the
//! fewest under way, all else to the server in front, whose blobs and results the workers share.
//!
//! It counts what is under way, and does not answer the actions that a test names. It is no scheduler to build with: it
//! retries nothing, queues nothing and knows no platform properties.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use bazel_remote_apis::google::longrunning as lr;
use lr::Operation;
use lr::operations_client::OperationsClient;
use lr::operations_server::OperationsServer;
use prost::Message;
use re::content_addressable_storage_client::ContentAddressableStorageClient;
use re::execution_client::ExecutionClient;
use re::execution_server::{Execution, ExecutionServer};
use tokio_stream::{StreamExt, iter};
use tonic::codegen::{BoxFuture, Service, http};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};

use crate::operations::{Answers, Cancel, CancelOnly};

/// Stands in front of the servers. Copies share everything.
#[derive(Clone)]
pub struct Dispatcher {
    front: Channel,
    workers: Arc<[Channel]>,
    state: Arc<Mutex<State>>,
    /// The delay of every call before it is passed on, as if the servers were so far away.
    round_trip: Duration,
}

/// The state that tests set and read.
#[derive(Default)]
struct State {
    /// For each worker, how many actions it has and how many it was given.
    workers: Vec<(u64, u64)>,
    /// Actions whose words hold this are never answered; an empty text holds all.
    held: Option<String>,
    /// How many actions are under way, and the most that were.
    flying: usize,
    most: usize,
    /// The operations under way that are not answered, and how many ever were not.
    waiting: Vec<String>,
    ever_held: usize,
    /// Operations that a client cancelled.
    cancelled: Vec<String>,
}

/// An action under way: at a worker, or held under a name.
struct Flight {
    dispatcher: Dispatcher,
    at: Result<usize, String>,
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut state = self.dispatcher.state();
        state.flying -= 1;
        match &self.at {
            Ok(at) => state.workers[*at].0 -= 1,
            Err(name) => state.waiting.retain(|waiting| waiting != name),
        }
    }
}

type Body = tonic::body::Body;

/// The prefix of an operation that no worker gets.
const HELD: &str = "held/";

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
        let state = State {
            workers: vec![(0, 0); workers.len()],
            ..State::default()
        };
        let dispatcher = Self {
            front: connect(front),
            workers: workers.iter().map(|address| connect(address)).collect(),
            state: Arc::new(Mutex::new(state)),
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
            .add_service(OperationsServer::new(CancelOnly(dispatcher.clone())));
        tokio::spawn(router.serve_with_incoming(incoming));
        Ok((dispatcher, port))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("lock")
    }

    /// How many actions each worker was given so far.
    pub fn taken(&self) -> Vec<u64> {
        self.state()
            .workers
            .iter()
            .map(|(_, taken)| *taken)
            .collect()
    }

    /// From now on actions whose words hold `text` are not answered; none, where there is no text.
    pub fn hold(&self, text: Option<&str>) {
        self.state().held = text.map(str::to_owned);
    }

    /// The number of actions under way.
    pub fn flying(&self) -> usize {
        self.state().flying
    }

    /// The most that were under way at a time.
    pub fn most(&self) -> usize {
        self.state().most
    }

    /// The operations under way that are not answered.
    pub fn unanswered(&self) -> Vec<String> {
        self.state().waiting.clone()
    }

    /// Operations that were cancelled by name.
    pub fn cancelled(&self) -> Vec<String> {
        self.state().cancelled.clone()
    }

    /// An action takes off: to the worker with the fewest, or nowhere.
    fn take_off(&self, words: Option<&str>) -> Flight {
        let mut state = self.state();
        state.flying += 1;
        state.most = state.most.max(state.flying);
        let holds = |held: &String| words.is_some_and(|words| words.contains(held.as_str()));
        let at = if state.held.as_ref().is_some_and(holds) {
            state.ever_held += 1;
            let name = format!("{HELD}{}", state.ever_held);
            state.waiting.push(name.clone());
            Err(name)
        } else {
            let load = |at: &usize| state.workers[*at];
            let at = (0..state.workers.len()).min_by_key(load).unwrap_or(0);
            state.workers[at].0 += 1;
            state.workers[at].1 += 1;
            Ok(at)
        };
        Flight {
            dispatcher: self.clone(),
            at,
        }
    }

    /// The words of an action, which is in the server in front.
    async fn words(&self, action: re::Digest) -> Option<String> {
        let action = re::Action::decode(&self.blob(action).await?[..]).ok()?;
        let command = self.blob(action.command_digest?).await?;
        let command = re::Command::decode(&command[..]).ok()?;
        Some(command.arguments.join(" "))
    }

    async fn blob(&self, digest: re::Digest) -> Option<Vec<u8>> {
        let question = re::BatchReadBlobsRequest {
            digests: vec![digest],
            ..re::BatchReadBlobsRequest::default()
        };
        let mut front = ContentAddressableStorageClient::new(self.front.clone());
        let answer = front.batch_read_blobs(question).await.ok()?.into_inner();
        Some(answer.responses.into_iter().next()?.data)
    }

    /// The worker that a name of ours means, and the operation's name there.
    fn named(&self, name: &str) -> Result<(Channel, String), Status> {
        let parts = name.split_once(':');
        let found = parts.and_then(|(at, name)| Some((at.parse::<usize>().ok()?, name)));
        let (at, name) = found.ok_or_else(|| Status::not_found("no such operation"))?;
        let worker = self.workers.get(at);
        let worker = worker.ok_or_else(|| Status::not_found("no such worker"))?;
        Ok((worker.clone(), name.to_owned()))
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
    type ExecuteStream = Answers<Operation>;
    type WaitExecutionStream = Answers<Operation>;

    async fn execute(
        &self,
        request: Request<re::ExecuteRequest>,
    ) -> Result<Response<Self::ExecuteStream>, Status> {
        tokio::time::sleep(self.round_trip).await;
        let request = request.into_inner();
        let is_asked = self.state().held.is_some();
        let words = match request.action_digest.clone() {
            Some(action) if is_asked => self.words(action).await,
            _ => None,
        };
        let flight = self.take_off(words.as_deref());
        let answers: Answers<Operation> = match &flight.at {
            Ok(at) => {
                let at = *at;
                let mut client = ExecutionClient::new(self.workers[at].clone());
                let answers = client.execute(request).await?.into_inner();
                Box::pin(answers.map(move |said| said.map(|operation| rename(at, operation))))
            }
            Err(name) => {
                let operation = Operation {
                    name: name.clone(),
                    ..Operation::default()
                };
                Box::pin(iter([Ok(operation)]).chain(tokio_stream::pending()))
            }
        };
        // Under way until the stream is done or has no listener any more.
        let counted = answers.map(move |answer| {
            let _under_way = &flight;
            answer
        });
        Ok(Response::new(Box::pin(counted)))
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
impl Cancel for Dispatcher {
    async fn cancel(&self, name: String) -> Result<(), Status> {
        self.state().cancelled.push(name.clone());
        if name.starts_with(HELD) {
            return Ok(());
        }
        let (channel, name) = self.named(&name)?;
        let question = lr::CancelOperationRequest { name };
        let mut client = OperationsClient::new(channel);
        client.cancel_operation(question).await.map(drop)
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
