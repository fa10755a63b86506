//! A test worker for a scheduler that hands out leases by the Remote Workers API (BuildGrid's). The worker takes one action
//! at a time, and has a casd execute it. `buildbox-worker`, which uses a runner, is in no registry.
//!
//! The messages are those of google/devtools/remoteworkers/v1test2, with the fields that are used here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use bazel_remote_apis::google::longrunning::operation::Result as Outcome;
use bazel_remote_apis::google::protobuf::Any;
use bazel_remote_apis::google::rpc;
use prost::Message;
use re::execution_client::ExecutionClient;
use tokio::time::{sleep, timeout};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use warpcc_cache::Digest;

/// The time that a bot without work gives the server for an answer. The server answers after four fifths of it.
const POLL: Duration = Duration::from_secs(30);

/// How often a bot at work reports to the server, and learns whether its work is still wanted.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// How often a bot repeats a report to a scheduler that fails.
const TRIES: u32 = 5;

/// `BotStatus.OK`.
const OK: i32 = 1;
/// `LeaseState.ACTIVE`, which the server sets, and `COMPLETED`.
const ACTIVE: i32 = 2;
const COMPLETED: i32 = 4;

#[derive(Clone, PartialEq, Message)]
struct BotSession {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    bot_id: String,
    #[prost(int32, tag = "3")]
    status: i32,
    #[prost(message, optional, tag = "4")]
    worker: Option<Worker>,
    #[prost(message, repeated, tag = "5")]
    leases: Vec<Lease>,
    #[prost(string, tag = "7")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct Worker {
    #[prost(message, repeated, tag = "1")]
    devices: Vec<Device>,
}

#[derive(Clone, PartialEq, Message)]
struct Device {
    #[prost(string, tag = "1")]
    handle: String,
    #[prost(message, repeated, tag = "2")]
    properties: Vec<Property>,
}

#[derive(Clone, PartialEq, Message)]
struct Property {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Lease {
    #[prost(int32, tag = "2")]
    state: i32,
    #[prost(message, optional, tag = "3")]
    status: Option<rpc::Status>,
    #[prost(string, tag = "7")]
    id: String,
    #[prost(message, optional, tag = "8")]
    payload: Option<Any>,
    #[prost(message, optional, tag = "9")]
    result: Option<Any>,
}

#[derive(Clone, PartialEq, Message)]
struct CreateBotSessionRequest {
    #[prost(string, tag = "1")]
    parent: String,
    #[prost(message, optional, tag = "2")]
    bot_session: Option<BotSession>,
}

#[derive(Clone, PartialEq, Message)]
struct UpdateBotSessionRequest {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    bot_session: Option<BotSession>,
}

/// The work of a bot so far.
#[derive(Debug, Default)]
pub struct Done {
    /// Leases whose action has ended.
    pub completed: AtomicU64,
    /// Leases that the scheduler took back.
    pub cancelled: AtomicU64,
    /// How many of the next leases are accepted and never worked on.
    pub idle: AtomicU64,
    /// Why the bot stopped.
    pub ended: OnceLock<String>,
}

/// A bot that lives as long as the runtime.
struct Bot {
    scheduler: Channel,
    worker: Channel,
    done: Arc<Done>,
}

/// Starts a bot on the current runtime: leases from `scheduler`, executed by the casd at `worker`, both `grpc://`
/// addresses. `properties` describe the bot's machine.
pub fn start(name: &str, scheduler: &str, worker: &str, properties: &[(&str, &str)]) -> Arc<Done> {
    let done = Arc::new(Done::default());
    let bot = Bot {
        scheduler: connect(scheduler),
        worker: connect(worker),
        done: Arc::clone(&done),
    };
    let properties = properties.iter().map(|(key, value)| Property {
        key: (*key).to_owned(),
        value: (*value).to_owned(),
    });
    let session = BotSession {
        bot_id: name.to_owned(),
        status: OK,
        worker: Some(Worker {
            devices: vec![Device {
                handle: name.to_owned(),
                properties: properties.collect(),
            }],
        }),
        ..BotSession::default()
    };
    tokio::spawn(async move {
        if let Err(status) = bot.serve(session).await {
            // Set once, here.
            let _ = bot.done.ended.set(status.to_string());
        }
    });
    done
}

fn connect(address: &str) -> Channel {
    let uri = address.replace("grpc://", "http://");
    Endpoint::from_shared(uri)
        .expect("an address")
        .connect_lazy()
}

impl Bot {
    async fn serve(&self, mut session: BotSession) -> Result<(), Status> {
        let create = CreateBotSessionRequest {
            parent: String::new(),
            bot_session: Some(session),
        };
        session = self.call("CreateBotSession", create).await?;
        loop {
            let lease = session.leases.iter().find(|lease| lease.state == ACTIVE);
            session = match lease.cloned() {
                Some(lease) => self.work(session, &lease).await?,
                None => {
                    session.leases.clear();
                    self.update(session).await?
                }
            };
        }
    }

    /// Carries out one lease, and reports its end.
    async fn work(&self, mut session: BotSession, lease: &Lease) -> Result<BotSession, Status> {
        let mut running = std::pin::pin!(self.execute(lease));
        let executed = loop {
            tokio::select! {
                executed = &mut running => break executed,
                () = sleep(HEARTBEAT) => {}
            }
            session = self.update(session).await?;
            if !session.leases.iter().any(|held| held.id == lease.id) {
                // Dropping the stream ends the action at casd.
                self.done.cancelled.fetch_add(1, Ordering::Relaxed);
                return Ok(session);
            }
        };
        let held = session.leases.iter_mut().find(|held| held.id == lease.id);
        let held = held.ok_or_else(|| Status::internal("a lease was lost"))?;
        held.state = COMPLETED;
        held.payload = None;
        match executed {
            Ok(response) => {
                held.status = Some(response.status.unwrap_or_default());
                held.result = response.result.map(|result| Any {
                    type_url: "type.googleapis.com/build.bazel.remote.execution.v2.ActionResult"
                        .to_owned(),
                    value: result.encode_to_vec(),
                });
            }
            Err(status) => {
                held.status = Some(rpc::Status {
                    code: status.code() as i32,
                    message: status.message().to_owned(),
                    details: Vec::new(),
                });
            }
        }
        self.done.completed.fetch_add(1, Ordering::Relaxed);
        self.update(session).await
    }

    /// Has casd execute the action of a lease, which holds the action or its digest.
    async fn execute(&self, lease: &Lease) -> Result<re::ExecuteResponse, Status> {
        let one_less = |left: u64| left.checked_sub(1);
        let idle = &self.done.idle;
        if idle
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .is_ok()
        {
            std::future::pending::<()>().await;
        }
        let payload = lease.payload.clone().unwrap_or_default();
        let digest = if payload.type_url.ends_with("v2.Action") {
            let digest = Digest::of_bytes(&payload.value);
            re::Digest {
                hash: digest.hex(),
                size_bytes: digest.size.cast_signed(),
            }
        } else {
            re::Digest::decode(&payload.value[..])
                .map_err(|e| Status::internal(format!("a lease about {}: {e}", payload.type_url)))?
        };
        let request = re::ExecuteRequest {
            action_digest: Some(digest),
            // The scheduler knows whether the action has been executed before.
            skip_cache_lookup: true,
            ..re::ExecuteRequest::default()
        };
        let mut client = ExecutionClient::new(self.worker.clone());
        let mut operations = client.execute(request).await?.into_inner();
        while let Some(operation) = operations.message().await? {
            match operation.result {
                Some(Outcome::Response(any)) => {
                    return re::ExecuteResponse::decode(&any.value[..])
                        .map_err(|e| Status::internal(format!("casd's response: {e}")));
                }
                Some(Outcome::Error(status)) => {
                    return Err(Status::new(Code::from_i32(status.code), status.message));
                }
                None => {}
            }
        }
        Err(Status::unavailable("casd ended the stream"))
    }

    /// Tells the scheduler the bot's state, and gets the next one. Tries again where the scheduler itself failed:
    /// `PostgreSQL` ends one of two transactions that wait for each other, and BuildGrid passes the error on.
    async fn update(&self, session: BotSession) -> Result<BotSession, Status> {
        let update = UpdateBotSessionRequest {
            name: session.name.clone(),
            bot_session: Some(session),
        };
        let mut left = TRIES;
        loop {
            let answer = self.call("UpdateBotSession", update.clone()).await;
            let own = |status: &Status| matches!(status.code(), Code::Internal | Code::Unknown);
            left -= 1;
            match answer {
                Err(status) if own(&status) && left > 0 => sleep(HEARTBEAT).await,
                answer => return answer,
            }
        }
    }

    async fn call<T: Message + 'static>(
        &self,
        method: &str,
        body: T,
    ) -> Result<BotSession, Status> {
        let path = format!("/google.devtools.remoteworkers.v1test2.Bots/{method}");
        let path = PathAndQuery::from_maybe_shared(path).expect("a path");
        let mut client = tonic::client::Grpc::new(self.scheduler.clone());
        let unreachable = |e| Status::unavailable(format!("the scheduler: {e}"));
        client.ready().await.map_err(unreachable)?;
        let mut request = Request::new(body);
        request.set_timeout(POLL);
        let codec = tonic_prost::ProstCodec::<T, BotSession>::default();
        let answer = timeout(POLL, client.unary(request, path, codec)).await;
        let answer = answer.map_err(|_| Status::deadline_exceeded("the scheduler is silent"))?;
        Ok(answer?.into_inner())
    }
}
