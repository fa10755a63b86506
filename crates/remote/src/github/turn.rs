//! Who fetches what many processes need: one at a time, and the others wait. A lock ends with its process. Where a fetch
//! failed, those who waited for it do not try one after the other.

use std::fs::{self, File};
use std::time::{Duration, Instant, SystemTime};

use super::archive::at;
use super::parts::Parts;
use super::service::Service;
use crate::error::RemoteError;

/// Longest wait for what another process fetches.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

/// The right to fetch something.
pub struct Turn {
    _lock: File,
    /// Another process had it before, so what was wanted may be there.
    waited: Option<SystemTime>,
}

impl Parts {
    /// Waits for the right to fetch what the lock `number` is for.
    ///
    /// # Errors
    /// Others need too long, or have just failed; the folder cannot be written.
    pub async fn turn(&self, service: &Service, number: u64) -> Result<Turn, RemoteError> {
        let path = self.folder().join(format!("lock-{number}"));
        let opened = fs::create_dir_all(self.folder())
            .and_then(|()| File::options().append(true).create(true).open(&path));
        let lock = opened.map_err(|error| at(&path, &error))?;
        let (began, clock) = (SystemTime::now(), Instant::now());
        let mut waited = None;
        while lock.try_lock().is_err() {
            waited = Some(began);
            if clock.elapsed() > LONGEST_WAIT {
                return Err(RemoteError::TooSlow {
                    server: service.server().to_owned(),
                    seconds: LONGEST_WAIT.as_secs(),
                });
            }
            tokio::time::sleep(POLL).await;
        }
        let turn = Turn {
            _lock: lock,
            waited,
        };
        match self.has_failed(&turn) {
            true => Err(RemoteError::Unreachable {
                server: service.server().to_owned(),
                why: "another process has just failed to".to_owned(),
            }),
            false => Ok(turn),
        }
    }

    /// Notes that a fetch failed: those who wait for it must not try one after the other.
    pub fn note_failure(&self) {
        drop(self.write("failed", b""));
    }

    fn has_failed(&self, turn: &Turn) -> bool {
        let changed = fs::metadata(self.folder().join("failed")).and_then(|file| file.modified());
        matches!((changed, turn.waited), (Ok(at), Some(began)) if at >= began)
    }
}
