//! Every request ends: a deadline for the answer, and for bytes as many seconds as a slow line takes.

use std::time::Duration;

use crate::fault::Fault;

/// A line that carries less than this a second is no gain over compiling.
const SLOWEST_BYTES: u64 = 1 << 20;

/// Runs `work`; a fault when it takes longer than `answer` and what `bytes` take on a slow line.
///
/// # Errors
/// Its own, or [`Fault::TooSlow`].
pub async fn within<T>(
    server: &str,
    answer: Duration,
    bytes: u64,
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let limit = answer + Duration::from_secs(bytes / SLOWEST_BYTES);
    match tokio::time::timeout(limit, work).await {
        Ok(done) => done,
        Err(_) => Err(Fault::TooSlow {
            server: server.to_owned(),
            seconds: limit.as_secs().max(1),
        }),
    }
}
