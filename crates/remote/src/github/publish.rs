//! Publishes a bundle in GitHub's cache: takes a name for it, uploads its bytes, and makes it visible.

use std::sync::Arc;
use std::time::Duration;

use super::archive::Archive;
use super::index::Bundle;
use super::service::CallError;
use super::{Github, lock};
use crate::error::RemoteError;

/// How many names may be taken already.
const MOST_TAKEN: u32 = 32;
/// How often a call is repeated while the service refuses it.
const ATTEMPTS: u32 = 5;
/// The wait after the first refusal that names none. It doubles.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// The longest wait that the service may ask for. For a longer one, the upload is given up.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

impl Github {
    /// Whether the service lets us write. This takes a name that is used for nothing else.
    ///
    /// # Errors
    /// Why not.
    pub async fn may_write(&self) -> Result<(), RemoteError> {
        match self.service.create("warpcc-ping").await {
            Ok(_) | Err(CallError::Taken) => Ok(()),
            Err(error) => Err(self.service.fault(error)),
        }
    }

    /// Whether the unfinished bundle has its largest size.
    pub async fn is_full(&self) -> bool {
        self.archive
            .lock()
            .await
            .as_ref()
            .is_some_and(Archive::is_full)
    }

    /// Publishes the unfinished bundle: from now on others find its results.
    ///
    /// # Errors The service refuses it after several attempts. The bundle is then discarded.
    pub async fn publish(&self) -> Result<(), RemoteError> {
        let mut making = self.archive.lock().await;
        let (Some(mut archive), Some(parts)) = (making.take(), &self.parts) else {
            return Ok(());
        };
        if archive.is_empty() {
            return Ok(());
        }
        let before = self.view().await?;
        let (number, url) = self.take_number(before.newest()).await?;
        let index = archive.seal(Bundle::new(number), &before, |bundle| {
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
        for behind in 1..=MOST_TAKEN {
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
            // A random part is added, so that jobs that were refused at the same time do not retry at the same time.
            tokio::time::sleep(length + wait.mul_f64(fastrand::f64() / 2.0)).await;
            wait *= 2;
        }
        Ok(None)
    }
}
