//! What is to be known of shared caches and clusters without a network: where they are, who is left alone, what waits to be
//! uploaded; and how the program `warpcc-remote`, which has the network, is asked.
//!
//! warpcc itself links this crate and no client of any server: what every call of nvcc pays for stays small.

pub mod address;
pub mod auth;
pub mod backoff;
pub mod config_file;
pub mod error;
mod frame;
pub mod moved;
pub mod ping;
pub mod protocol;
pub mod remote_program;
pub mod sent;
pub mod settings;
mod shared_caches;
pub mod upload;
pub mod upload_queue;

pub use address::{Address, NotAnAddress};
pub use auth::Auth;
pub use error::Fault;
pub use frame::{FrameError, read_frame, write_frame};
pub use remote_program::RemoteProgram;
pub use settings::Layer;
pub use shared_caches::SharedCaches;
