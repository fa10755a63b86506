//! Finds out whether a server answers, its name, how long a request takes, and whether it accepts uploads.

use std::time::{Duration, Instant};

use bazel_remote_apis::build::bazel::remote::execution::v2::ActionResult;
use warpcc_cache::{Digest, Key};

use crate::backend::{Backend, UploadSource};
use crate::backend_kind::AnyBackend;
use crate::error::RemoteError;
use crate::settings::{Access, Layer};
use crate::signature::Trust;

pub use warpcc_remote_client::ping::{Answer, WriteTest};

/// The blob that is written as a test. It is always the same, so that there is only one if it cannot be removed.
const PROBE: &[u8] = b"warpcc remote ping\n";

/// Tests the server of `layer`, within `limit` in total.
///
/// # Errors
/// It does not answer, or refuses; or there is no runtime to ask with.
pub fn ping(layer: &Layer, limit: Duration) -> Result<Answer, RemoteError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| RemoteError::Local {
            path: "the runtime".to_owned(),
            why: error.to_string(),
        })?;
    let asking = async { tokio::time::timeout(limit, ask(layer)).await };
    let answer = runtime.block_on(asking).unwrap_or_else(|_| {
        Err(RemoteError::TooSlow {
            server: layer.shown(),
            seconds: limit.as_secs(),
        })
    });
    runtime.shutdown_background();
    answer
}

async fn ask(layer: &Layer) -> Result<Answer, RemoteError> {
    let trust = Trust::new(&layer.signatures)?;
    let backend = AnyBackend::new(layer, None)?;
    let clock = Instant::now();
    let says = backend.describe().await?;
    let first = clock.elapsed();
    let clock = Instant::now();
    // A key that nothing has.
    backend.result(&Key([0; 32])).await?;
    let look_up = clock.elapsed();
    let mut warning = None;
    let write = match layer.access {
        Access::ReadOnly => WriteTest::NotTried,
        Access::ReadWrite => match write(&backend, &trust).await {
            Ok(found) => {
                warning = found;
                WriteTest::Taken
            }
            Err(fault) => WriteTest::Refused(fault.to_string()),
        },
    };
    Ok(Answer {
        says,
        first,
        look_up,
        write,
        warning,
    })
}

/// Writes a blob and a result as an upload does, and removes both where the protocol can. Gives a warning about the signing
/// key.
async fn write(backend: &AnyBackend, trust: &Trust) -> Result<Option<String>, RemoteError> {
    // Without the signing key nothing would be uploaded.
    let signer = trust.signer().await?;
    let warning = signer.and_then(|signer| signer.warning.clone());
    if let AnyBackend::Github(github) = backend {
        return github.may_write().await.map(|()| warning);
    }
    let blob = Digest::of_bytes(PROBE);
    let key = Key(blob.hash);
    let bytes = UploadSource::Bytes(PROBE.to_vec());
    let result = ActionResult {
        stdout_raw: PROBE.to_vec(),
        ..ActionResult::default()
    };
    let written = async {
        backend.write(&[(blob, bytes)]).await?;
        backend.put_result(&key, &result).await
    };
    let written = written.await;
    backend.remove(&key, &blob).await;
    written.map(|()| warning)
}
