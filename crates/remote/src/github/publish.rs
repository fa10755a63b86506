//! A bundle on its way to GitHub's cache: a name of its own, its bytes, and the call that makes it visible.

use std::sync::Arc;
use std::time::Duration;

use super::archive::Archive;
use super::service::CallError;
use super::{Github, HIGHEST, lock};
use crate::error::RemoteError;
use warpcc_remote_client::bundle_index::Bundle;

/// Names that others may have taken before us.
const MOST_TAKEN: u32 = 31;
/// Names behind those that are tried.
const MOST_GUESSED: u32 = 4;
/// How far behind the newest bundle these are.
const BEYOND: std::ops::Range<u32> = 32..10_000;
/// Times that a call is made while the service refuses it.
const ATTEMPTS: u32 = 5;
/// The wait after the first refusal that names none. It doubles.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// What the service asks us to wait at most; after that it is left alone.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

impl Github {
    /// Whether the service lets us write: takes a name that is used for nothing else.
    ///
    /// # Errors
    /// Why not.
    pub async fn may_write(&self) -> Result<(), RemoteError> {
        match self.service.create("warpcc-ping").await {
            Ok(_) | Err(CallError::Taken) => Ok(()),
            Err(error) => Err(self.service.fault(error)),
        }
    }

    /// Whether the bundle in the making is as long as one may become.
    pub async fn is_full(&self) -> bool {
        self.archive
            .lock()
            .await
            .as_ref()
            .is_some_and(Archive::is_full)
    }

    /// Gives the bundle in the making away: from here on others find what is in it.
    ///
    /// # Errors
    /// The service does not take it, after some attempts. It is thrown away then.
    pub async fn publish(&self) -> Result<(), RemoteError> {
        let mut making = self.archive.lock().await;
        let (Some(mut archive), Some(parts)) = (making.take(), &self.parts) else {
            return Ok(());
        };
        if archive.is_empty() {
            return Ok(());
        }
        let view = self.view().await?;
        // Where numbers end, they begin again, with nothing from before.
        let ends = view.newest() > HIGHEST - BEYOND.end;
        let before = if ends { Arc::default() } else { view };
        let (number, url) = self.take_number(before.newest()).await?;
        let index = archive.seal(Bundle::new(number, fastrand::u32(..)), &before, |bundle| {
            !parts.is_gone(bundle)
        })?;
        let size = self.service.put(&url, archive.path()).await?;
        let name = self.name(number);
        self.patiently(|| self.service.finalize(&name, size))
            .await?;
        let index = Arc::new(index);
        self.keep(parts, &index)?;
        *lock(&self.view) = Some(index);
        // The job has read what it needed.
        parts.clear();
        Ok(())
    }

    /// Takes the first free name behind `newest`. The service gives a name to the first job that asks, so no two jobs have the same.
    async fn take_number(&self, newest: u32) -> Result<(u32, reqwest::Url), RemoteError> {
        let near = 1..=MOST_TAKEN;
        // Somebody may have taken those names and nothing else. Farther ones are a guess that nobody can foresee.
        let far = (0..MOST_GUESSED).map(|_| fastrand::u32(BEYOND));
        for behind in near.chain(far) {
            let number = newest.saturating_add(behind);
            let name = self.name(number);
            let taken = self
                .patiently_or_taken(|| self.service.create(&name))
                .await?;
            if let Some(url) = taken {
                return Ok((number, url));
            }
        }
        Err(self.service.odd("all names for a new bundle are taken"))
    }

    async fn patiently<T, F: Future<Output = Result<T, CallError>>>(
        &self,
        call: impl Fn() -> F,
    ) -> Result<T, RemoteError> {
        let done = self.patiently_or_taken(call).await?;
        done.ok_or_else(|| self.service.fault(CallError::Taken))
    }

    /// Calls until the service takes it, a few times: as late as it says, else later each time. None where the name is taken.
    async fn patiently_or_taken<T, F: Future<Output = Result<T, CallError>>>(
        &self,
        call: impl Fn() -> F,
    ) -> Result<Option<T>, RemoteError> {
        let mut wait = FIRST_WAIT;
        for attempt in 1.. {
            let error = match call().await {
                Ok(done) => return Ok(Some(done)),
                Err(CallError::Taken) => return Ok(None),
                Err(error) => error,
            };
            let length = match &error {
                CallError::Busy(Some(after)) => *after,
                CallError::Busy(None) | CallError::Fault(RemoteError::Unreachable { .. }) => wait,
                CallError::Fault(RemoteError::Answer { why, .. }) if why.starts_with('5') => wait,
                _ => return Err(self.service.fault(error)),
            };
            if attempt >= ATTEMPTS || length > LONGEST_WAIT {
                return Err(self.service.fault(error));
            }
            // By chance a little longer, so that jobs that were refused together do not come back together.
            tokio::time::sleep(length + wait.mul_f64(fastrand::f64() / 2.0)).await;
            wait *= 2;
        }
        Ok(None)
    }
}
