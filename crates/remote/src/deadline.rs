//! Every request ends: a deadline for the answer, and for bytes as many seconds as a slow line takes.
//!
//! What goes up has a length that we know. What comes down has one that somebody claims, so there only bytes that have
//! come earn time ([`Pace`]).

use std::time::Duration;

use tokio::time::Instant;

use crate::error::Fault;

/// A line that carries less than this a second is no gain over compiling.
const SLOWEST_BYTES: u64 = 1 << 20;

/// The same for what comes down, packed as it travels.
const SLOWEST_PACKED: u64 = 256 << 10;
/// No transfer takes longer, whatever comes.
const LONGEST: Duration = Duration::from_secs(600);
/// As good as for ever, and a time that clocks can count to.
const EVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// A transfer to us: each piece comes within an answer's time of the one before, all of them come at least as fast as a slow
/// line, and they end.
pub struct Pace {
    began: Instant,
    answer: Duration,
    slowest: u64,
    received: u64,
}

impl Pace {
    /// For one that begins now.
    pub fn new(answer: Duration) -> Self {
        Self::of(answer, SLOWEST_PACKED)
    }

    /// The same on a line that carries `slowest` bytes a second.
    pub fn of(answer: Duration, slowest: u64) -> Self {
        Self {
            began: Instant::now(),
            answer: answer.min(EVER),
            slowest: slowest.max(1),
            received: 0,
        }
    }

    /// So many bytes have come.
    pub fn came(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes as u64);
    }

    /// What is awaited next, while there is time for it.
    ///
    /// # Errors
    /// How long it took in vain.
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

    /// The same for work that fails with a fault of `server`'s.
    ///
    /// # Errors
    /// Its own, or [`Fault::TooSlow`].
    pub async fn next_of<T>(
        &self,
        server: &str,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        match self.next(work).await {
            Ok(done) => done,
            Err(took) => Err(Fault::TooSlow {
                server: server.to_owned(),
                seconds: took.as_secs().max(1),
            }),
        }
    }
}

/// Runs `work`, which sends `bytes`; a fault when it takes longer than `answer` and what `bytes` take on a slow line.
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
