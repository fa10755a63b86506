//! A Remote Execution API server as a shared cache: its content-addressed store and its action cache.
//!
//! Every call has a deadline. If the server refuses our credentials, the call is made once more with new ones, if there
//! may be any. `blobs` many small ones at a time, `stream` one of any size in pieces, `results` what is under a key.

mod blobs;
pub mod capabilities;
mod results;
mod status;
mod stream;
mod wire;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use prost::Message;
use re::capabilities_client::CapabilitiesClient;
use tokio::sync::OnceCell;
use tonic::metadata::{BinaryMetadataValue, MetadataMap};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Response, Status};
use warpcc_cache::{Digest, Key};

use crate::auth::{Auth, Credentials};
use crate::backend::{Backend, UploadSource};
use crate::error::RemoteError;

pub use capabilities::Capabilities;
pub(crate) use status::Failure;
pub use warpcc_remote_client::{Address, NotAnAddress};
use wire::digest_of;
pub(crate) use wire::{from_wire, to_wire};

/// The largest answer: batches are cut to fit, and streams come in pieces.
pub(crate) const LONGEST_MESSAGE: usize = 16 << 20;

/// The name of the metadata by which servers tell clients apart.
const REQUEST_METADATA: &str = "build.bazel.remote.execution.v2.requestmetadata-bin";

/// Deadlines of calls.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// To have a connection.
    pub connect: Duration,
    /// For an answer, and for each piece of a stream.
    pub call: Duration,
    /// The slowest rate of a stream, in bytes per second. This limits its total time.
    pub slowest: u64,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            call: Duration::from_secs(10),
            slowest: 256 << 10,
        }
    }
}

impl Deadlines {
    /// For a transfer of `bytes`.
    pub fn for_transfer(&self, bytes: u64) -> Duration {
        self.call + Duration::from_secs(bytes / self.slowest.max(1))
    }
}

/// A server. Copies share its connection.
#[derive(Debug, Clone)]
pub struct Grpc(Arc<GrpcServer>);

#[derive(Debug)]
struct GrpcServer {
    address: Address,
    name: String,
    endpoint: Endpoint,
    credentials: Credentials,
    deadlines: Deadlines,
    metadata: Vec<u8>,
    channel: OnceCell<Channel>,
    capabilities: OnceCell<Capabilities>,
}

impl Grpc {
    /// Prepares a client. Nothing is sent yet.
    ///
    /// # Errors
    /// A certificate or key that cannot be read or used.
    pub fn new(address: Address, auth: Auth, deadlines: Deadlines) -> Result<Self, RemoteError> {
        let name = address.to_string();
        let wrong = |why: String| RemoteError::Refused {
            server: name.clone(),
            why,
        };
        let mut endpoint = Endpoint::from_shared(address.uri())
            .map_err(|e| wrong(e.to_string()))?
            .connect_timeout(deadlines.connect)
            .tcp_nodelay(true)
            .initial_stream_window_size(1 << 20)
            .initial_connection_window_size(8 << 20);
        if address.tls {
            endpoint = endpoint
                .tls_config(tls(&auth)?)
                .map_err(|e| wrong(format!("the certificates cannot be used: {e}")))?;
        }
        let metadata = re::RequestMetadata {
            tool_details: Some(re::ToolDetails {
                tool_name: "warpcc".to_owned(),
                tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            }),
            ..re::RequestMetadata::default()
        };
        Ok(Self(Arc::new(GrpcServer {
            credentials: Credentials::new(auth, address.uri()),
            name,
            endpoint,
            deadlines,
            metadata: metadata.encode_to_vec(),
            channel: OnceCell::new(),
            capabilities: OnceCell::new(),
            address,
        })))
    }

    /// The server's name in messages.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The server's capabilities, asked for once.
    ///
    /// # Errors
    /// It cannot be reached, refuses us, or knows no SHA-256.
    pub async fn capabilities(&self) -> Result<&Capabilities, RemoteError> {
        let ask = async || {
            let body = re::GetCapabilitiesRequest {
                instance_name: self.instance(),
            };
            let answer = self
                .call(
                    self.0.deadlines.call,
                    &body,
                    |channel, request| async move {
                        CapabilitiesClient::new(channel)
                            .get_capabilities(request)
                            .await
                    },
                )
                .await;
            match answer {
                Ok(answer) => Capabilities::read(&answer).map_err(|why| self.answered(why)),
                // A server that is only a cache need not have the service.
                Err(failure) if failure.code() == Some(Code::Unimplemented) => {
                    Ok(Capabilities::unknown())
                }
                Err(failure) => Err(self.fault(failure).await),
            }
        };
        self.0.capabilities.get_or_try_init(ask).await
    }

    pub(crate) fn instance(&self) -> String {
        self.0.address.instance.clone()
    }

    pub(crate) fn deadlines(&self) -> &Deadlines {
        &self.0.deadlines
    }

    pub(crate) fn answered(&self, why: impl Into<String>) -> RemoteError {
        RemoteError::Answer {
            server: self.0.name.clone(),
            why: why.into(),
        }
    }

    pub(crate) async fn fault(&self, failure: Failure) -> RemoteError {
        failure.into_fault(&self.0.name, &self.0.credentials).await
    }

    pub(crate) async fn channel(&self) -> Channel {
        // It connects at the first call, and again after the connection was lost.
        let connect = async || self.0.endpoint.connect_lazy();
        self.0.channel.get_or_init(connect).await.clone()
    }

    /// Adds what every call carries.
    pub(crate) async fn prepare(&self, metadata: &mut MetadataMap) -> Result<(), Failure> {
        metadata.insert_bin(
            REQUEST_METADATA,
            BinaryMetadataValue::from_bytes(&self.0.metadata),
        );
        let added = self.0.credentials.add_to(metadata).await;
        added.map_err(Failure::Credentials)
    }

    /// Whether a call with this error may succeed with new credentials.
    pub(crate) async fn renews(&self, failure: &Failure) -> bool {
        failure.code() == Some(Code::Unauthenticated) && self.0.credentials.renew().await
    }

    /// One question, one answer.
    pub(crate) async fn call<Q, A, F>(
        &self,
        deadline: Duration,
        body: &Q,
        send: impl Fn(Channel, Request<Q>) -> F,
    ) -> Result<A, Failure>
    where
        Q: Clone,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let mut renewed = false;
        loop {
            let mut request = Request::new(body.clone());
            self.prepare(request.metadata_mut()).await?;
            request.set_timeout(deadline);
            let answer = tokio::time::timeout(deadline, send(self.channel().await, request)).await;
            let failure = match answer {
                Ok(Ok(answer)) => return Ok(answer.into_inner()),
                Ok(Err(status)) if status::is_timeout(&status) => Failure::TooSlow(deadline),
                Ok(Err(status)) => status.into(),
                Err(_) => Failure::TooSlow(deadline),
            };
            if renewed || !self.renews(&failure).await {
                return Err(failure);
            }
            renewed = true;
        }
    }
}

fn tls(auth: &Auth) -> Result<ClientTlsConfig, RemoteError> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|e| RemoteError::Local {
            path: path.display().to_string(),
            why: e.to_string(),
        })
    };
    let mut config = ClientTlsConfig::new();
    config = match &auth.roots {
        Some(path) => config.ca_certificate(Certificate::from_pem(read(path)?)),
        None => config.with_native_roots(),
    };
    if let Some((certificate, key)) = &auth.client {
        config = config.identity(Identity::from_pem(read(certificate)?, read(key)?));
    }
    Ok(config)
}

impl Backend for Grpc {
    async fn result(&self, key: &Key) -> Result<Option<re::ActionResult>, RemoteError> {
        self.get_result(&digest_of(key)).await
    }

    async fn put_result(&self, key: &Key, result: &re::ActionResult) -> Result<(), RemoteError> {
        self.update_result(&digest_of(key), result).await
    }

    async fn missing(&self, digests: &[Digest]) -> Result<Vec<Digest>, RemoteError> {
        self.find_missing(digests).await
    }

    async fn read_small(&self, digests: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, RemoteError> {
        self.read_blobs(digests).await
    }

    async fn read_large(&self, digest: &Digest, to: &Path) -> Result<bool, RemoteError> {
        self.read_to_file(digest, to).await
    }

    async fn write(&self, blobs: &[(Digest, UploadSource)]) -> Result<(), RemoteError> {
        self.write_blobs(blobs).await
    }
}
