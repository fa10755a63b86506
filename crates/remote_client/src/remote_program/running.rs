//! `warpcc-remote` while it runs: the process, what is sent to it, and the questions that wait for it.

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

use super::gone::Gone;
use super::listener::Heard;
use super::mutex::held;
use super::silence::Silence;
use super::tell::Tell;
use crate::frame::write_frame;
use crate::protocol::{Opening, Question, ReplyBody, identity};

/// It reads at once what it is sent. Who does not for so long never will.
const TAKES_WITHIN: Duration = Duration::from_secs(10);

/// What was said before an end has been heard by then.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How often who waits looks around.
const GLANCE: Duration = Duration::from_millis(20);

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
    pub(super) fn start(file: &Path, opening: &Opening, tell: &Arc<Tell>) -> io::Result<Self> {
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
        let heard = Heard::new(ours.try_clone()?, file, tell)?;
        let mut to = ours;
        // Where it does not take them, what it says itself, or its end, tells why.
        let greeted = write_frame(&mut to, &identity());
        drop(greeted.and_then(|()| write_frame(&mut to, opening)));
        Ok(Running {
            child: Mutex::new(child),
            to: Mutex::new(to),
            heard,
            next: AtomicU64::new(0),
        })
    }

    /// Comes back when it is known to be of our build.
    ///
    /// # Errors
    /// It is not, or gone.
    pub(super) fn wait_for_identity(&self) -> Result<(), Gone> {
        self.heard.wait_for_identity()
    }

    /// Asks under a number of its own.
    ///
    /// # Errors
    /// It is gone.
    pub(super) fn ask(&self, question: impl FnOnce(u64) -> Question) -> Result<Asked<'_>, Gone> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let replies = self.heard.expect(id)?;
        let asked = Asked {
            running: self,
            id,
            replies,
        };
        self.send(&question(id))?;
        Ok(asked)
    }

    fn send(&self, question: &Question) -> Result<(), Gone> {
        let sent = write_frame(&mut *held(&self.to), question);
        // One that has ended, or is of another build, takes nothing either; what it said, or its end, is the better reason.
        sent.map_err(|error| {
            let said = self.heard.gone_within(LAST_WORDS);
            said.unwrap_or_else(|| self.give_up(&format!("does not take questions: {error}")))
        })
    }

    /// Nothing more is expected of it in this process.
    fn give_up(&self, why: &str) -> Gone {
        let gone = self.heard.lose(why);
        // A stopped one, too.
        drop(held(&self.child).kill());
        gone
    }
}

impl Drop for Running {
    /// The asking thread has the reply, so nothing is under way.
    fn drop(&mut self) {
        let mut child = held(&self.child);
        drop(child.kill());
        // It is not waited for: a process that the kernel holds would hold us.
        drop(child.try_wait());
    }
}

/// A question under its number.
pub(super) struct Asked<'a> {
    running: &'a Running,
    pub(super) id: u64,
    replies: Receiver<ReplyBody>,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.running.heard.forget(self.id);
    }
}

impl Asked<'_> {
    /// The next reply, for which is waited no longer than `limit` in all. `look` is called again and again meanwhile.
    pub(super) fn reply(&self, limit: Duration, mut look: impl FnMut()) -> Result<ReplyBody, Gone> {
        let (mut silence, mut waited) = (Silence::default(), Duration::ZERO);
        let heard = &self.running.heard;
        loop {
            match self.replies.recv_timeout(GLANCE) {
                Ok(reply) => return Ok(reply),
                Err(RecvTimeoutError::Disconnected) => {
                    let gone = heard.gone();
                    return Err(gone.unwrap_or_else(|| self.give_up("has ended")));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            waited += GLANCE;
            if silence.lasts(heard.messages(), GLANCE) {
                return Err(self.give_up("does not answer"));
            }
            if waited > limit {
                return Err(self.give_up("takes too long"));
            }
            look();
        }
    }

    fn give_up(&self, why: &str) -> Gone {
        self.running.give_up(why)
    }

    /// More about it.
    pub(super) fn say(&self, question: &Question) -> Result<(), Gone> {
        self.running.send(question)
    }

    /// It has replied to another question than it was asked.
    pub(super) fn odd(&self) -> Gone {
        self.give_up("sends what was not asked for")
    }
}
