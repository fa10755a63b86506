//! The running `warpcc-remote`: the process, the messages to it, and the requests that wait for its replies.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::listener::Heard;
use super::mutex::lock;
use super::program_error::ProgramError;
use super::silence::Silence;
use super::warning_sink::WarningSink;
use crate::frame::write_frame;
use crate::protocol::{Opening, Question, ReplyBody, identity};

/// Deadline of a write: the program reads messages at once, unless it hangs.
const TAKES_WITHIN: Duration = Duration::from_secs(10);

/// Messages sent before the program's end have arrived by then.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How often it is checked whether the program has ended.
const POLL: Duration = Duration::from_millis(20);

/// The process.
pub(super) struct Running {
    child: Mutex<Child>,
    to: Mutex<UnixStream>,
    heard: Arc<Heard>,
    next: AtomicU64,
}

impl Running {
    /// Starts the program in `file`.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(
        file: &Path,
        opening: &Opening,
        warnings: &Arc<WarningSink>,
    ) -> io::Result<Self> {
        // Closed in every program that we start; one end becomes the standard input of this one.
        let (ours, theirs) = UnixStream::pair()?;
        let child = Command::new(file)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            // What the user reads is the compiler's; what went wrong comes as a message.
            .stderr(Stdio::null())
            // Ctrl-C is ours: what runs on a cluster is called back before it ends.
            .process_group(0)
            .spawn()?;
        ours.set_write_timeout(Some(TAKES_WITHIN))?;
        let heard = Heard::new(ours.try_clone()?, file, warnings)?;
        let mut to = ours;
        // If it does not accept them, its own message, or its end, says why.
        let greeted = write_frame(&mut to, &identity());
        drop(greeted.and_then(|()| write_frame(&mut to, opening)));
        Ok(Running {
            child: Mutex::new(child),
            to: Mutex::new(to),
            heard,
            next: AtomicU64::new(0),
        })
    }

    /// Returns when it is known to be from the same build.
    ///
    /// # Errors
    /// It is not, or gone.
    pub(super) fn wait_for_identity(&self) -> Result<(), ProgramError> {
        self.heard.wait_for_identity()
    }

    /// Asks under a number of its own.
    ///
    /// # Errors
    /// It is gone.
    pub(super) fn ask(
        &self,
        question: impl FnOnce(u64) -> Question,
    ) -> Result<PendingQuestion<'_>, ProgramError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let replies = self.heard.expect(id)?;
        let asked = PendingQuestion {
            running: self,
            id,
            replies,
        };
        self.send(&question(id))?;
        Ok(asked)
    }

    fn send(&self, question: &Question) -> Result<(), ProgramError> {
        let sent = write_frame(&mut *lock(&self.to), question);
        // One that has ended, or is of another build, takes nothing either; what it said, or its end, is the better reason.
        sent.map_err(|error| {
            let said = self.heard.gone_within(LAST_WORDS);
            said.unwrap_or_else(|| self.give_up(&format!("does not accept requests: {error}")))
        })
    }

    /// This process does not ask it any more.
    fn give_up(&self, why: &str) -> ProgramError {
        let gone = self.heard.lose(why);
        // A stopped one, too.
        drop(lock(&self.child).kill());
        gone
    }
}

impl Drop for Running {
    /// The thread that asked has the reply, so nothing is running.
    fn drop(&mut self) {
        let mut child = lock(&self.child);
        drop(child.kill());
        // It is not waited for: if the kernel blocks that process, this one would be blocked too.
        drop(child.try_wait());
    }
}

/// A question under its number.
pub(super) struct PendingQuestion<'a> {
    running: &'a Running,
    pub(super) id: u64,
    replies: Receiver<ReplyBody>,
}

impl Drop for PendingQuestion<'_> {
    fn drop(&mut self) {
        self.running.heard.forget(self.id);
    }
}

impl PendingQuestion<'_> {
    /// The next reply, for which is waited no longer than `limit` in all. `look` is called again and again meanwhile.
    pub(super) fn reply(
        &self,
        limit: Duration,
        mut look: impl FnMut(),
    ) -> Result<ReplyBody, ProgramError> {
        let (mut silence, mut waited) = (Silence::default(), Duration::ZERO);
        let heard = &self.running.heard;
        loop {
            match self.replies.recv_timeout(POLL) {
                Ok(reply) => return Ok(reply),
                Err(RecvTimeoutError::Disconnected) => {
                    let gone = heard.gone();
                    return Err(gone.unwrap_or_else(|| self.give_up("exited unexpectedly")));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            waited += POLL;
            if silence.lasts(heard.messages(), POLL) {
                return Err(self.give_up("does not answer"));
            }
            if waited > limit {
                return Err(self.give_up("took too long"));
            }
            look();
        }
    }

    fn give_up(&self, why: &str) -> ProgramError {
        self.running.give_up(why)
    }

    /// More about it.
    pub(super) fn say(&self, question: &Question) -> Result<(), ProgramError> {
        self.running.send(question)
    }

    /// It sent a reply to a request that does not fit.
    pub(super) fn unexpected(&self) -> ProgramError {
        self.give_up("sent an unexpected reply")
    }
}
