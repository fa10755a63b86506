//! Reads the messages of `warpcc-remote` on a thread of its own, and passes each reply to the thread that waits for it.

use std::collections::BTreeMap;
use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::mutex::lock;
use super::program_error::ProgramError;
use super::silence::Silence;
use super::warning_sink::WarningSink;
use crate::frame::{FrameError, read_frame};
use crate::protocol::{LONGEST_IDENTITY, Reply, ReplyBody, identity};

/// The number for threads that wait only for the identity.
const IDENTITY: u64 = u64::MAX;

/// Interval of looking for it.
const TICK: Duration = Duration::from_millis(5);

/// Messages that have come so far.
pub(super) struct Heard {
    file: PathBuf,
    waiting: Mutex<Waiting>,
    /// Messages of any kind.
    messages: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    asked: BTreeMap<u64, Sender<ReplyBody>>,
    /// It is of our build.
    known: bool,
    gone: Option<ProgramError>,
}

impl Heard {
    /// Listens at `from`, to the program in `file`.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(super) fn new(
        from: UnixStream,
        file: &Path,
        warnings: &Arc<WarningSink>,
    ) -> io::Result<Arc<Self>> {
        let heard = Arc::new(Self {
            file: file.to_owned(),
            waiting: Mutex::default(),
            messages: AtomicU64::new(0),
        });
        let (listener, warnings) = (Arc::clone(&heard), Arc::clone(warnings));
        std::thread::Builder::new()
            .name("warpcc-remote".to_owned())
            .spawn(move || listener.listen(from, &warnings))?;
        Ok(heard)
    }

    /// Where replies to `id` come.
    pub(super) fn expect(&self, id: u64) -> Result<Receiver<ReplyBody>, ProgramError> {
        let mut waiting = lock(&self.waiting);
        if let Some(gone) = &waiting.gone {
            return Err(gone.clone());
        }
        let (to, replies) = channel();
        waiting.asked.insert(id, to);
        Ok(replies)
    }

    /// Nobody waits for `id` any more.
    pub(super) fn forget(&self, id: u64) {
        lock(&self.waiting).asked.remove(&id);
    }

    /// The number of messages so far.
    pub(super) fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    /// Why it is gone, where it is.
    pub(super) fn gone(&self) -> Option<ProgramError> {
        lock(&self.waiting).gone.clone()
    }

    /// The same, for which is waited so long.
    pub(super) fn gone_within(&self, limit: Duration) -> Option<ProgramError> {
        let mut waited = Duration::ZERO;
        while waited < limit {
            if let Some(gone) = self.gone() {
                return Some(gone);
            }
            std::thread::sleep(TICK);
            waited += TICK;
        }
        self.gone()
    }

    /// Returns when it is known to be from the same build.
    pub(super) fn wait_for_identity(&self) -> Result<(), ProgramError> {
        let replies = self.expect(IDENTITY)?;
        let mut silence = Silence::default();
        loop {
            if lock(&self.waiting).known {
                return Ok(());
            }
            match replies.recv_timeout(TICK) {
                Err(RecvTimeoutError::Timeout) if silence.lasts(self.messages(), TICK) => {
                    return Err(self.lose("does not identify itself"));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.lose("exited unexpectedly"));
                }
                _ => {}
            }
        }
    }

    /// There will be no more messages: waiting threads get an error. The first reason is the right one.
    pub(super) fn lose(&self, why: &str) -> ProgramError {
        let mut waiting = lock(&self.waiting);
        let gone = waiting
            .gone
            .get_or_insert_with(|| ProgramError::new(&self.file, why));
        let gone = gone.clone();
        waiting.asked.clear();
        gone
    }

    fn listen(&self, from: UnixStream, warnings: &WarningSink) {
        let mut from = BufReader::new(from);
        let theirs = read_frame::<String>(&mut from, Some(LONGEST_IDENTITY));
        match theirs {
            Ok(theirs) if theirs == identity() => lock(&self.waiting).known = true,
            Ok(theirs) => {
                let ours = identity();
                self.lose(&format!(
                    "is of another build: it is {theirs:?}, and this warpcc wants {ours:?}; \
                     install both from the same release"
                ));
                return;
            }
            Err(error) => {
                self.lose(&describe_error(&error));
                return;
            }
        }
        loop {
            let reply = match read_frame::<Reply>(&mut from, None) {
                Ok(reply) => reply,
                Err(error) => {
                    self.lose(&describe_error(&error));
                    return;
                }
            };
            self.messages.fetch_add(1, Ordering::Relaxed);
            match reply {
                Reply::Alive => {}
                Reply::Warning(text) => warnings.emit(&text),
                Reply::To(id, body) => {
                    if let Some(who) = lock(&self.waiting).asked.get(&id) {
                        // Perhaps nobody waits any more.
                        drop(who.send(body));
                    }
                }
            }
        }
    }
}

fn describe_error(error: &FrameError) -> String {
    match error {
        FrameError::Ended => "exited unexpectedly".to_owned(),
        // With something unread, or in the middle of a message.
        FrameError::Io(error)
            if matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof
            ) =>
        {
            "exited unexpectedly".to_owned()
        }
        FrameError::Io(error) => format!("cannot be read from: {error}"),
        FrameError::Malformed => "sent an invalid message".to_owned(),
    }
}
