//! The action cache: what is known under a key.

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use re::action_cache_client::ActionCacheClient;
use re::digest_function::Value::Sha256;
use warpcc_cache::Digest;

use super::wire::to_wire;
use super::{Grpc, LONGEST_MESSAGE};
use crate::action_result::LARGEST_RESULT;
use crate::error::RemoteError;

impl Grpc {
    /// The result of a successful action. A failed one counts as none: it is not known whether the reason was the
    /// compiler or its machine.
    pub(crate) async fn get_result(
        &self,
        action: &Digest,
    ) -> Result<Option<re::ActionResult>, RemoteError> {
        let body = re::GetActionResultRequest {
            instance_name: self.instance(),
            action_digest: Some(to_wire(action)),
            inline_stdout: true,
            inline_stderr: true,
            digest_function: Sha256 as i32,
            ..re::GetActionResultRequest::default()
        };
        let answer = self
            .call(
                self.deadlines().call,
                &body,
                |channel, request| async move {
                    ActionCacheClient::new(channel)
                        .max_decoding_message_size(LARGEST_RESULT)
                        .get_action_result(request)
                        .await
                },
            )
            .await;
        match answer {
            Ok(result) => Ok(Some(result).filter(|result| result.exit_code == 0)),
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(self.fault(failure).await),
        }
    }

    pub(crate) async fn update_result(
        &self,
        action: &Digest,
        result: &re::ActionResult,
    ) -> Result<(), RemoteError> {
        let body = re::UpdateActionResultRequest {
            instance_name: self.instance(),
            action_digest: Some(to_wire(action)),
            action_result: Some(result.clone()),
            digest_function: Sha256 as i32,
            ..re::UpdateActionResultRequest::default()
        };
        let answer = self
            .call(
                self.deadlines().call,
                &body,
                |channel, request| async move {
                    ActionCacheClient::new(channel)
                        .max_decoding_message_size(LONGEST_MESSAGE)
                        .update_action_result(request)
                        .await
                },
            )
            .await;
        match answer {
            Ok(_) => Ok(()),
            Err(failure) => Err(self.fault(failure).await),
        }
    }
}
