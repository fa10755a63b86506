//! Runs one action: `Execute`, its stream, `WaitExecution` if the stream breaks, and a cancellation by us.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use bazel_remote_apis::google::longrunning::operation::Result as Outcome;
use bazel_remote_apis::google::longrunning::operations_client::OperationsClient;
use bazel_remote_apis::google::longrunning::{CancelOperationRequest, Operation};
use prost::Message;
use re::capabilities_client::CapabilitiesClient;
use re::digest_function::Value::Sha256;
use re::execution_client::ExecutionClient;
use tonic::{Code, Status, Streaming};
use warpcc_cache::Digest;

use crate::grpc::{Failure, Grpc, LONGEST_MESSAGE, to_wire};

/// Longest run of a command.
const LONGEST: Duration = Duration::from_secs(3600);

/// Deadline of the request to cancel an operation.
const CANCEL_WITHIN: Duration = Duration::from_secs(2);

/// The name of an operation that runs, as soon as it is known.
#[derive(Debug, Default)]
pub struct Running(Mutex<Option<String>>);

impl Running {
    fn set(&self, name: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some(name.to_owned()).filter(|name| !name.is_empty());
    }

    fn get(&self) -> Option<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }
}

/// Whether the status may mean that the server lacks a blob. Each server reports this in its own way.
pub fn may_mean_missing(code: Code) -> bool {
    matches!(
        code,
        Code::NotFound | Code::FailedPrecondition | Code::Internal
    )
}

/// Has the server execute `action`, and waits for its end.
pub async fn execute(
    server: &Grpc,
    action: &Digest,
    cached: bool,
    running: &Running,
) -> Result<re::ExecuteResponse, Failure> {
    let whole = follow_to_the_end(server, action, cached, running);
    match tokio::time::timeout(LONGEST, whole).await {
        Ok(response) => response,
        Err(_) => Err(Failure::TooSlow(LONGEST)),
    }
}

async fn follow_to_the_end(
    server: &Grpc,
    action: &Digest,
    cached: bool,
    running: &Running,
) -> Result<re::ExecuteResponse, Failure> {
    let body = re::ExecuteRequest {
        instance_name: server.instance(),
        action_digest: Some(to_wire(action)),
        skip_cache_lookup: !cached,
        digest_function: Sha256 as i32,
        inline_stdout: true,
        inline_stderr: true,
        ..re::ExecuteRequest::default()
    };
    // Some servers answer the call only when there is a first message.
    let first = server.call(LONGEST, &body, |channel, mut request| async move {
        request.metadata_mut().remove("grpc-timeout");
        let mut client = ExecutionClient::new(channel).max_decoding_message_size(LONGEST_MESSAGE);
        client.execute(request).await
    });
    let stream = while_it_lives(server, first).await?;
    match follow(server, stream, running).await {
        Err(Broken::Stream(failure)) => {
            let Some(name) = running.get() else {
                return Err(failure);
            };
            // The connection is lost, not the operation.
            let body = re::WaitExecutionRequest { name };
            let again = server.call(LONGEST, &body, |channel, mut request| async move {
                request.metadata_mut().remove("grpc-timeout");
                let mut client =
                    ExecutionClient::new(channel).max_decoding_message_size(LONGEST_MESSAGE);
                client.wait_execution(request).await
            });
            let stream = while_it_lives(server, again).await?;
            follow(server, stream, running).await.map_err(Broken::into)
        }
        other => other.map_err(Broken::into),
    }
}

enum Broken {
    /// The way to the operation is lost.
    Stream(Failure),
    /// The operation is.
    Operation(Failure),
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Stream(failure) | Broken::Operation(failure) => failure,
        }
    }
}

async fn follow(
    server: &Grpc,
    mut stream: Streaming<Operation>,
    running: &Running,
) -> Result<re::ExecuteResponse, Broken> {
    loop {
        let next = async { stream.message().await.map_err(Failure::from) };
        let operation = while_it_lives(server, next).await.map_err(|failure| {
            // An answer is no broken connection.
            match failure.code() {
                Some(Code::Unavailable) | None => Broken::Stream(failure),
                Some(_) => Broken::Operation(failure),
            }
        })?;
        let Some(operation) = operation else {
            let why = Status::unavailable("the operation's stream ended before it was done");
            return Err(Broken::Stream(why.into()));
        };
        running.set(&operation.name);
        if operation.done {
            return response(server, operation).map_err(Broken::Operation);
        }
    }
}

fn response(server: &Grpc, operation: Operation) -> Result<re::ExecuteResponse, Failure> {
    match operation.result {
        Some(Outcome::Response(any)) => re::ExecuteResponse::decode(&any.value[..]).map_err(|e| {
            server
                .answered(format!("an invalid ExecuteResponse: {e}"))
                .into()
        }),
        Some(Outcome::Error(status)) => {
            Err(Status::new(Code::from_i32(status.code), status.message).into())
        }
        None => Err(server
            .answered("an operation that has finished without a result")
            .into()),
    }
}

/// Waits for `future` as long as the server answers other questions. A compiler may be silent for minutes; HTTP/2's own
/// pings are no way to know, because gRPC servers hang up on a client that sends many.
async fn while_it_lives<T>(
    server: &Grpc,
    future: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut future = std::pin::pin!(future);
    let patience = server.deadlines().call;
    loop {
        tokio::select! {
            result = &mut future => return result,
            () = tokio::time::sleep(patience) => {}
        }
        let body = re::GetCapabilitiesRequest {
            instance_name: server.instance(),
        };
        let alive = server.call(patience, &body, |channel, request| async move {
            CapabilitiesClient::new(channel)
                .get_capabilities(request)
                .await
        });
        tokio::select! {
            result = &mut future => return result,
            answer = alive => match answer {
                Ok(_) => {}
                // Any answer is one.
                Err(failure) if failure.code().is_some() => {}
                Err(failure) => return Err(failure),
            },
        }
    }
}

/// Asks the server to cancel the operation. The request may get lost.
pub async fn cancel(server: &Grpc, running: &Running) {
    if let Some(name) = running.get() {
        let body = CancelOperationRequest { name };
        let answer = server.call(CANCEL_WITHIN, &body, |channel, request| async move {
            OperationsClient::new(channel)
                .cancel_operation(request)
                .await
        });
        drop(answer.await);
    }
}
