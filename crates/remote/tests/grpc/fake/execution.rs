//! Actions: each meets what its test has planned for it.

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use bazel_remote_apis::google::longrunning::{Operation, operation};
use bazel_remote_apis::google::protobuf::Any;
use bazel_remote_apis::google::rpc;
use prost::Message;
use re::execution_server::Execution;
use tokio_stream::{StreamExt, iter};
use tonic::{Request, Response, Status};
use warpcc_testkit::operations::{Answers, Cancel};

use super::{Fake, name};

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

impl Fake {
    fn play(&self) -> Result<Response<Answers<Operation>>, Status> {
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
    type ExecuteStream = Answers<Operation>;

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
        self.note(format!("execute{cached}"));
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

    type WaitExecutionStream = Answers<Operation>;

    async fn wait_execution(
        &self,
        request: Request<re::WaitExecutionRequest>,
    ) -> Result<Response<Self::WaitExecutionStream>, Status> {
        self.admit(&request)?;
        let name = request.into_inner().name;
        self.note(format!("wait for {name}"));
        self.play()
    }
}

#[tonic::async_trait]
impl Cancel for Fake {
    async fn cancel(&self, name: String) -> Result<(), Status> {
        self.note(format!("cancel {name}"));
        Ok(())
    }
}
