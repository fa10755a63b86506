//! A server written by hand, for what no real one does on demand: other batch limits, zstd, wrong bytes, refusals.
//!
//! It keeps blobs in memory and holds itself to what it advertises: a message with more blobs than its limit is refused.

mod execution;
mod storage;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use bazel_remote_apis::google::bytestream::byte_stream_server::ByteStreamServer;
use bazel_remote_apis::google::longrunning::operations_server::OperationsServer;
use re::action_cache_server::ActionCacheServer;
use re::capabilities_server::{Capabilities, CapabilitiesServer};
use re::compressor::Value::Zstd;
use re::content_addressable_storage_server::ContentAddressableStorageServer;
use re::execution_server::ExecutionServer;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Server, ServerTlsConfig};
use tonic::{Request, Response, Status};
use warpcc_cache::Digest;
use warpcc_testkit::operations::CancelOnly;

pub use execution::Play;

/// How it behaves.
#[derive(Clone, Default)]
pub struct UploadMode {
    /// What it advertises and keeps to; 0 is no limit.
    pub batch: u64,
    /// Whether blobs may travel as zstd.
    pub zstd: bool,
    /// Turns one bit of every blob it gives.
    pub spoils: bool,
    /// Adds to every blob it gives.
    pub exaggerates: bool,
    /// The digest functions it says it knows.
    pub functions: Vec<i32>,
    /// The one `authorization` it takes, and changes at will.
    pub token: Arc<Mutex<Option<String>>>,
    /// Each call of a service but the capabilities ends so.
    pub fails: Option<tonic::Code>,
    /// What becomes of the actions, one after the other.
    pub plays: Arc<Mutex<VecDeque<Play>>>,
}

#[derive(Clone, Default)]
pub struct Fake {
    mode: UploadMode,
    blobs: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    results: Arc<Mutex<HashMap<String, re::ActionResult>>>,
    /// The names of resources, and other things of interest.
    pub seen: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    /// Starts it; gives the port. It lives as long as the runtime.
    pub async fn start(mode: UploadMode, tls: Option<ServerTlsConfig>) -> (Self, u16) {
        let fake = Self {
            mode,
            ..Self::default()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let mut server = Server::builder();
        if let Some(tls) = tls {
            server = server.tls_config(tls).expect("certificates");
        }
        const LIMIT: usize = 4 << 20;
        let router = server
            .add_service(
                ContentAddressableStorageServer::new(fake.clone()).max_decoding_message_size(LIMIT),
            )
            .add_service(ByteStreamServer::new(fake.clone()).max_decoding_message_size(LIMIT))
            .add_service(ActionCacheServer::new(fake.clone()))
            .add_service(CapabilitiesServer::new(fake.clone()))
            .add_service(OperationsServer::new(CancelOnly(fake.clone())))
            .add_service(ExecutionServer::new(fake.clone()));
        tokio::spawn(router.serve_with_incoming(TcpListenerStream::new(listener)));
        (fake, port)
    }

    /// The bytes become a blob; gives its digest as the protocol has it.
    pub fn hold(&self, bytes: &[u8]) -> re::Digest {
        let digest = Digest::of_bytes(bytes);
        let mut blobs = self.blobs.lock().expect("lock");
        blobs.insert(digest.to_string(), bytes.to_vec());
        re::Digest {
            hash: digest.hex(),
            size_bytes: i64::try_from(digest.size).expect("small"),
        }
    }

    fn note(&self, what: String) {
        self.seen.lock().expect("lock").push(what);
    }

    fn admit<T>(&self, request: &Request<T>) -> Result<(), Status> {
        if let Some(token) = &*self.mode.token.lock().expect("lock") {
            let said = request.metadata().get("authorization");
            let said = said.and_then(|v| v.to_str().ok()).unwrap_or_default();
            if said != token {
                // As careless servers do.
                return Err(Status::unauthenticated(format!("no good: {said}")));
            }
        }
        match self.mode.fails {
            Some(code) => Err(Status::new(code, "on purpose")),
            None => Ok(()),
        }
    }

    fn give(&self, digest: &str) -> Option<Vec<u8>> {
        let mut bytes = self.blobs.lock().expect("lock").get(digest)?.clone();
        if self.mode.spoils {
            bytes[0] ^= 1;
        }
        if self.mode.exaggerates {
            bytes.extend_from_slice(b"and more");
        }
        Some(bytes)
    }

    fn take(&self, digest: &str, bytes: Vec<u8>) -> Result<(), Status> {
        if Digest::of_bytes(&bytes).to_string() != digest {
            return Err(Status::invalid_argument("not the bytes of the digest"));
        }
        self.blobs
            .lock()
            .expect("lock")
            .insert(digest.to_owned(), bytes);
        Ok(())
    }
}

fn name(digest: Option<re::Digest>) -> String {
    let digest = digest.unwrap_or_default();
    format!("{}/{}", digest.hash, digest.size_bytes)
}

#[tonic::async_trait]
impl Capabilities for Fake {
    async fn get_capabilities(
        &self,
        _: Request<re::GetCapabilitiesRequest>,
    ) -> Result<Response<re::ServerCapabilities>, Status> {
        Ok(Response::new(re::ServerCapabilities {
            cache_capabilities: Some(re::CacheCapabilities {
                digest_functions: self.mode.functions.clone(),
                max_batch_total_size_bytes: i64::try_from(self.mode.batch).expect("small"),
                supported_compressors: self.mode.zstd.then_some(Zstd as i32).into_iter().collect(),
                ..re::CacheCapabilities::default()
            }),
            execution_capabilities: Some(re::ExecutionCapabilities {
                digest_function: re::digest_function::Value::Sha256 as i32,
                exec_enabled: true,
                ..re::ExecutionCapabilities::default()
            }),
            ..re::ServerCapabilities::default()
        }))
    }
}
