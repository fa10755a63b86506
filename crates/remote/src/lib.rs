//! Shared caches behind one trait, and Remote Execution clusters. This is the only crate with async.
//!
//! What a shared cache holds is the Remote Execution API's: blobs by their SHA-256 digest, and under a key an
//! `ActionResult` that names blobs. Every kind of server holds these two; [`backend::Backend`] is what one must do.

mod action_result;
pub mod auth;
pub mod backend;
pub mod backend_kind;
pub mod cache_layers;
mod deadline;
mod download;
pub mod execute;
mod github;
pub mod grpc;
pub mod http;
pub mod keys;
pub mod object;
mod per_blob;
pub mod ping;
pub mod remote_record;
mod shared_cache;
pub mod signature;
mod time_budget;
mod tls;
pub mod transfer;
pub mod upload;

pub use auth::Auth;
pub use backend::Backend;
pub use backend_kind::AnyBackend;
pub use cache_layers::CacheLayers;
pub use error::RemoteError;
pub use execute::Cluster;
pub use grpc::Grpc;
pub use settings::Layer;
pub use shared_cache::SharedCache;
// Known without a network, too.
pub use warpcc_remote_client::{circuit_breaker, config_file, error, settings, upload_queue};
