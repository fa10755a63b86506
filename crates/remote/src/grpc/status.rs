//! gRPC statuses as [`RemoteError`]s.

use std::error::Error;
use std::time::Duration;

use tonic::{Code, Status, TimeoutExpired};

use crate::auth::{CredentialError, Credentials};
use crate::error::RemoteError;

/// A failed call, with the status that its caller may want to know.
#[derive(Debug)]
pub enum Failure {
    /// The server's answer, or the transport's.
    Status(Box<Status>),
    /// No answer within this time.
    TooSlow(Duration),
    /// Nothing was asked: we have no credentials.
    Credentials(CredentialError),
    /// Already in its final form.
    RemoteError(RemoteError),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}

impl From<RemoteError> for Failure {
    fn from(fault: RemoteError) -> Self {
        Self::RemoteError(fault)
    }
}

impl Failure {
    /// The server's status, if it gave one.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Status(status) if !is_transport(status) => Some(status.code()),
            _ => None,
        }
    }

    /// Whether the server says that there is no such thing.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(Code::NotFound)
    }

    /// As the rest of the crate knows it.
    pub async fn into_fault(self, server: &str, credentials: &Credentials) -> RemoteError {
        let server = server.to_owned();
        match self {
            Self::RemoteError(fault) => fault,
            Self::TooSlow(deadline) => RemoteError::TooSlow {
                server,
                seconds: deadline.as_secs().max(1),
            },
            Self::Credentials(error) => RemoteError::Refused {
                server,
                why: error.to_string(),
            },
            Self::Status(status) => {
                let why = credentials.without_secrets(&words(&status)).await;
                match status.code() {
                    Code::Unauthenticated | Code::PermissionDenied => {
                        RemoteError::Refused { server, why }
                    }
                    Code::Unavailable => RemoteError::Unreachable { server, why },
                    _ if is_transport(&status) => RemoteError::Unreachable { server, why },
                    _ => RemoteError::Answer { server, why },
                }
            }
        }
    }
}

/// Whether time ran out, here or there.
pub fn is_timeout(status: &Status) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = status.source();
    while let Some(error) = cause {
        if error.is::<TimeoutExpired>() {
            return true;
        }
        cause = error.source();
    }
    status.code() == Code::DeadlineExceeded
}

/// Whether the connection failed, not the server.
fn is_transport(status: &Status) -> bool {
    status.source().is_some()
}

/// The message of a status, with the innermost cause, which is the specific one.
fn words(status: &Status) -> String {
    let mut innermost: Option<&(dyn Error + 'static)> = status.source();
    while let Some(deeper) = innermost.and_then(|e| e.source()) {
        innermost = Some(deeper);
    }
    let code = format!("{:?}", status.code());
    let message = status.message();
    match innermost {
        Some(cause) => format!("{message}: {cause}"),
        None if message.is_empty() => code,
        None => format!("{code}: {message}"),
    }
}
