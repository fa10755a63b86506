//! Whether a server answers, what it says it is, and how long a request takes.

use std::time::{Duration, Instant};

use warpcc_cache::Key;

use crate::backend::Backend;
use crate::backend_kind::AnyBackend;
use crate::error::Fault;
use crate::settings::Layer;

/// What a server said.
#[derive(Debug)]
pub struct Answer {
    /// What it is and can do, in its own words.
    pub says: String,
    /// How long it took until it said so: connection, handshake and answer.
    pub first: Duration,
    /// How long a look-up takes on a connection that is there.
    pub look_up: Duration,
}

/// Asks the server of `layer`.
///
/// # Errors
/// It does not answer, or refuses; or there is no runtime to ask with.
pub fn ping(layer: &Layer) -> Result<Answer, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault::Local {
            path: "the runtime".to_owned(),
            why: error.to_string(),
        })?;
    let answer = runtime.block_on(async {
        let backend = AnyBackend::new(layer)?;
        let clock = Instant::now();
        let says = backend.describe().await?;
        let first = clock.elapsed();
        let clock = Instant::now();
        // A key that nothing has.
        backend.result(&Key([0; 32])).await?;
        Ok(Answer {
            says,
            first,
            look_up: clock.elapsed(),
        })
    });
    runtime.shutdown_background();
    answer
}
