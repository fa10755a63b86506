//! How long a call waits for shared caches in all: a server that is always just fast enough must end, too.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::error::Fault;

/// A call waits no longer, and no question takes longer.
const MOST: Duration = Duration::from_secs(600);

/// What is left of it.
pub struct Patience {
    left: Option<Mutex<Duration>>,
}

impl Patience {
    /// For one call: what is waited for each of its questions counts, of several at a time each.
    pub fn of_a_call() -> Self {
        Self {
            left: Some(Mutex::new(MOST)),
        }
    }

    /// For a process that asks as long as it lives: each question alone.
    pub fn of_each_question() -> Self {
        Self { left: None }
    }

    /// Runs `work` as long as there is patience.
    ///
    /// # Errors
    /// Its own, or [`Fault::TooSlow`].
    pub async fn within<T>(
        &self,
        server: &str,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
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
            Err(Fault::TooSlow {
                server: server.to_owned(),
                seconds: MOST.as_secs(),
            })
        })
    }
}
