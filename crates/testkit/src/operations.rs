//! The service of long-running operations, for servers of tests: clients only cancel.

use std::pin::Pin;

use bazel_remote_apis::google::longrunning as lr;
use bazel_remote_apis::google::protobuf::Empty;
use lr::Operation;
use lr::operations_server::Operations;
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

/// A stream of answers.
pub type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// A server whose operations can be cancelled.
#[tonic::async_trait]
pub trait Cancel: Send + Sync + 'static {
    /// Cancels the operation of this name.
    async fn cancel(&self, name: String) -> Result<(), Status>;
}

/// The service of operations of such a server.
#[derive(Debug)]
pub struct CancelOnly<T>(pub T);

#[tonic::async_trait]
impl<T: Cancel> Operations for CancelOnly<T> {
    async fn cancel_operation(
        &self,
        request: Request<lr::CancelOperationRequest>,
    ) -> Result<Response<Empty>, Status> {
        self.0.cancel(request.into_inner().name).await?;
        Ok(Response::new(Empty {}))
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
