//! Deadlines, so that every request ends: one for the answer, and for the bytes as many seconds as a slow line takes.
//!
//! An upload has a known length. The length of a download is only claimed, so there only bytes that have come earn time
//! ([`Pace`]).

use std::time::Duration;

use tokio::time::Instant;

use crate::error::RemoteError;

/// On a line that carries less than this per second, compiling is not slower.
const SLOWEST_BYTES: u64 = 1 << 20;

/// The same for what comes down, packed as it travels.
const SLOWEST_PACKED: u64 = 256 << 10;
/// Longest transfer.
const LONGEST: Duration = Duration::from_secs(600);
/// So long that it never ends, and short enough to be added to a clock.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// The limits of a download: the time until the next piece, the average speed, and the time of the whole.
pub struct Pace {
    began: Instant,
    answer: Duration,
    slowest: u64,
    received: u64,
}

impl Pace {
    /// For one that begins now.
    pub fn new(answer: Duration) -> Self {
        Self::at_least(answer, SLOWEST_PACKED)
    }

    /// The same for a line that carries `slowest` bytes per second.
    pub fn at_least(answer: Duration, slowest: u64) -> Self {
        Self {
            began: Instant::now(),
            answer: answer.min(FOREVER),
            slowest: slowest.max(1),
            received: 0,
        }
    }

    /// Counts received bytes.
    pub fn add(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes as u64);
    }

    /// Awaits the next piece, while there is time for it.
    ///
    /// # Errors
    /// The time after which it was given up.
    pub async fn next<T>(&self, work: impl Future<Output = T>) -> Result<T, Duration> {
        let earned = Duration::from_secs(self.received / self.slowest);
        let whole = self
            .answer
            .saturating_add(earned)
            .min(LONGEST.max(self.answer));
        let until = (self.began + whole).min(Instant::now() + self.answer);
        let done = tokio::time::timeout_at(until, work).await;
        done.map_err(|_| self.began.elapsed())
    }

    /// The same for work whose error is one of `server`.
    ///
    /// # Errors
    /// Its own, or [`RemoteError::TooSlow`].
    pub async fn next_from<T>(
        &self,
        server: &str,
        work: impl Future<Output = Result<T, RemoteError>>,
    ) -> Result<T, RemoteError> {
        match self.next(work).await {
            Ok(done) => done,
            Err(took) => Err(RemoteError::TooSlow {
                server: server.to_owned(),
                seconds: took.as_secs().max(1),
            }),
        }
    }
}

/// Runs `work`, which sends `bytes`; a fault when it takes longer than `answer` and what `bytes` take on a slow line.
///
/// # Errors
/// Its own, or [`RemoteError::TooSlow`].
pub async fn within<T>(
    server: &str,
    answer: Duration,
    bytes: u64,
    work: impl Future<Output = Result<T, RemoteError>>,
) -> Result<T, RemoteError> {
    let limit = answer + Duration::from_secs(bytes / SLOWEST_BYTES);
    match tokio::time::timeout(limit, work).await {
        Ok(done) => done,
        Err(_) => Err(RemoteError::TooSlow {
            server: server.to_owned(),
            seconds: limit.as_secs().max(1),
        }),
    }
}
