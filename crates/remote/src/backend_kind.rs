//! The client for the protocol that a layer's URL names.

use std::path::Path;

use bazel_remote_apis::build::bazel::remote::execution::v2::ActionResult;
use warpcc_cache::{Digest, Key};

use crate::backend::{Backend, UploadSource};
use crate::error::RemoteError;
use crate::github::Github;
use crate::grpc::{Address, Deadlines, Grpc, NotAnAddress};
use crate::http::Http;
use crate::object::Object;
use crate::settings::{Layer, Scheme};

/// A server of any known kind.
pub enum AnyBackend {
    /// The Remote Execution API.
    Grpc(Grpc),
    /// Bazel's HTTP caching protocol.
    Http(Box<Http>),
    /// A service of OpenDAL's.
    Object(Object),
    /// GitHub Actions' cache.
    Github(Box<Github>),
}

impl AnyBackend {
    /// The server of `layer`; does not reach out yet. `cache` is the cache's folder, where some keep what they have learned;
    /// without it they only answer. To be called inside a runtime.
    ///
    /// # Errors
    /// A setting that makes no sense to this kind of server, a certificate that cannot be read.
    pub fn new(layer: &Layer, cache: Option<&Path>) -> Result<Self, RemoteError> {
        match layer.scheme() {
            Some(Scheme::Http) => Http::new(layer).map(|http| Self::Http(Box::new(http))),
            Some(Scheme::Object(_)) => Object::new(layer).map(Self::Object),
            Some(Scheme::Github) => {
                Github::new(layer, cache).map(|github| Self::Github(Box::new(github)))
            }
            Some(Scheme::Grpc) => {
                let address = layer.url().as_str().parse();
                let address: Address = address.map_err(|e: NotAnAddress| RemoteError::Answer {
                    server: layer.shown(),
                    why: e.to_string(),
                })?;
                let deadlines = Deadlines {
                    connect: layer.connect,
                    call: layer.answer,
                    ..Deadlines::default()
                };
                Grpc::new(address, layer.auth.clone(), deadlines).map(Self::Grpc)
            }
            None => Err(RemoteError::Answer {
                server: layer.shown(),
                why: "its URL names no supported kind of server".to_owned(),
            }),
        }
    }

    /// The server's name and capabilities, in a line.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub async fn describe(&self) -> Result<String, RemoteError> {
        match self {
            Self::Grpc(grpc) => grpc.capabilities().await.map(|can| {
                let zstd = if can.zstd { ", zstd" } else { "" };
                let executes = if can.executes { ", executes" } else { "" };
                let (versions, batch) = (&can.versions, can.batch_bytes);
                format!("Remote Execution API {versions}, batches of {batch} bytes{zstd}{executes}")
            }),
            Self::Http(http) => http.describe().await,
            Self::Object(object) => object.describe().await,
            Self::Github(github) => github.describe().await,
        }
    }

    /// The same for an uploader.
    #[must_use]
    pub fn for_uploads(self) -> Self {
        match self {
            Self::Github(github) => Self::Github(Box::new(github.for_uploads())),
            other => other,
        }
    }

    /// Whether what was written should be published now. Nothing is seen before where a server takes bundles; others
    /// publish each thing as it is written.
    pub async fn should_publish(&self) -> bool {
        match self {
            Self::Github(github) => github.is_full().await,
            _ => true,
        }
    }

    /// Lets others see what was written.
    ///
    /// # Errors
    /// As all requests.
    pub async fn publish(&self) -> Result<(), RemoteError> {
        match self {
            Self::Github(github) => github.publish().await,
            _ => Ok(()),
        }
    }

    /// Whether another uploader may replace what was written.
    pub fn can_be_replaced(&self) -> bool {
        !matches!(self, Self::Github(_))
    }

    /// Removes a result and a blob where the protocol can; what stays does no harm.
    pub async fn remove(&self, key: &Key, blob: &Digest) {
        match self {
            // The Remote Execution API removes nothing.
            Self::Grpc(_) => {}
            Self::Http(http) => http.remove(key, blob).await,
            Self::Object(object) => object.remove(key, blob).await,
            // It was never published.
            Self::Github(_) => {}
        }
    }
}

impl Backend for AnyBackend {
    async fn result(&self, key: &Key) -> Result<Option<ActionResult>, RemoteError> {
        match self {
            Self::Grpc(grpc) => grpc.result(key).await,
            Self::Http(http) => http.result(key).await,
            Self::Object(object) => object.result(key).await,
            Self::Github(github) => github.result(key).await,
        }
    }

    async fn put_result(&self, key: &Key, result: &ActionResult) -> Result<(), RemoteError> {
        match self {
            Self::Grpc(grpc) => grpc.put_result(key, result).await,
            Self::Http(http) => http.put_result(key, result).await,
            Self::Object(object) => object.put_result(key, result).await,
            Self::Github(github) => github.put_result(key, result).await,
        }
    }

    async fn missing(&self, digests: &[Digest]) -> Result<Vec<Digest>, RemoteError> {
        match self {
            Self::Grpc(grpc) => grpc.missing(digests).await,
            Self::Http(http) => http.missing(digests).await,
            Self::Object(object) => object.missing(digests).await,
            Self::Github(github) => github.missing(digests).await,
        }
    }

    async fn read_small(&self, digests: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, RemoteError> {
        match self {
            Self::Grpc(grpc) => grpc.read_small(digests).await,
            Self::Http(http) => http.read_small(digests).await,
            Self::Object(object) => object.read_small(digests).await,
            Self::Github(github) => github.read_small(digests).await,
        }
    }

    async fn read_large(&self, digest: &Digest, to: &Path) -> Result<bool, RemoteError> {
        match self {
            Self::Grpc(grpc) => grpc.read_large(digest, to).await,
            Self::Http(http) => http.read_large(digest, to).await,
            Self::Object(object) => object.read_large(digest, to).await,
            Self::Github(github) => github.read_large(digest, to).await,
        }
    }

    async fn write(&self, blobs: &[(Digest, UploadSource)]) -> Result<(), RemoteError> {
        match self {
            Self::Grpc(grpc) => grpc.write(blobs).await,
            Self::Http(http) => http.write(blobs).await,
            Self::Object(object) => object.write(blobs).await,
            Self::Github(github) => github.write(blobs).await,
        }
    }

    fn take_ignored(&self) -> u64 {
        match self {
            Self::Github(github) => github.take_ignored(),
            _ => 0,
        }
    }

    fn is_aging(&self, key: &Key) -> bool {
        match self {
            Self::Github(github) => github.is_aging(key),
            _ => false,
        }
    }
}
