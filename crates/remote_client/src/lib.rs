//! The part of shared caches and clusters that needs no network: their settings, circuit breakers and upload queue; and the client
//! of the program `warpcc-remote`, which has the network.
//!
//! warpcc itself links this crate and no client of a server, so that the program that every call starts stays small.

pub mod address;
pub mod auth;
pub mod bundle_index;
pub mod circuit_breaker;
pub mod config_file;
pub mod error;
mod frame;
mod layer_names;
pub mod layer_policy;
pub mod layer_table;
pub mod ping;
pub mod protocol;
mod redaction;
pub mod remote_program;
pub mod sent;
pub mod settings;
mod shared_caches;
pub mod signatures;
pub mod transfer_stats;
pub mod upload;
pub mod upload_queue;

pub use address::{Address, NotAnAddress};
pub use auth::Auth;
pub use error::RemoteError;
pub use frame::{FrameError, read_frame, write_frame};
pub use layer_names::LayerError;
pub use remote_program::RemoteProgram;
pub use settings::Layer;
pub use shared_caches::SharedCaches;
