//! The total time that a call may wait for shared caches: a server that is always just fast enough must not delay it
//! without end.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::error::RemoteError;

/// The longest total wait of a call, and the longest request.
const MOST: Duration = Duration::from_secs(600);

/// The time that is left.
pub struct TimeBudget {
    left: Option<Mutex<Duration>>,
}

impl TimeBudget {
    /// For one call: the waits for all requests are added up, also if several run at the same time.
    pub fn per_call() -> Self {
        Self {
            left: Some(Mutex::new(MOST)),
        }
    }

    /// For a process that keeps asking: each request has its own limit.
    pub fn per_question() -> Self {
        Self { left: None }
    }

    /// Runs `work` as long as there is time left.
    ///
    /// # Errors
    /// Its own, or [`RemoteError::TooSlow`].
    pub async fn within<T>(
        &self,
        server: &str,
        work: impl Future<Output = Result<T, RemoteError>>,
    ) -> Result<T, RemoteError> {
        let left = match &self.left {
            Some(left) => *left.lock().unwrap_or_else(PoisonError::into_inner),
            None => MOST,
        };
        let began = Instant::now();
        let done = tokio::time::timeout(left, work).await;
        if let Some(left) = &self.left {
            let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
            *left = left.saturating_sub(began.elapsed());
        }
        done.unwrap_or_else(|_| {
            Err(RemoteError::TooSlow {
                server: server.to_owned(),
                seconds: MOST.as_secs(),
            })
        })
    }
}
