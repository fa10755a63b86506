//! The same results, elsewhere: shared caches behind one trait, and Remote Execution clusters. The only crate with async.
//!
//! What a shared cache holds is the Remote Execution API's: blobs by their SHA-256 digest, and under a key an
//! `ActionResult` that names blobs. Every kind of server holds these two; [`backend::Backend`] is what one must do.

pub mod any;
mod arriving;
pub mod auth;
pub mod backend;
pub mod configured;
mod deadline;
mod entry;
pub mod execute;
pub mod fault;
pub mod grpc;
pub mod health;
pub mod http;
pub mod object;
mod one_by_one;
mod patience;
pub mod ping;
pub mod settings;
pub mod shared;
pub mod spool;
mod tls;
pub mod transfer;
pub mod upload;

pub use any::AnyBackend;
pub use auth::Auth;
pub use backend::Backend;
pub use execute::Cluster;
pub use fault::Fault;
pub use grpc::Grpc;
pub use settings::Layer;
pub use shared::Shared;
