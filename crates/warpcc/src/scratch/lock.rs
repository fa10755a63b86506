//! Locks a scratch folder. Waits for the process that holds the lock, as long as that process works.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::holder::{Holder, HolderState};
use crate::log::Log;

/// How long the holder must be stopped or gone before this process gives up: a debugger stops a process for moments.
const SURE: Duration = Duration::from_millis(100);
/// The wait after which the log names the holder.
const LOG_AFTER: Duration = Duration::from_secs(3);
/// How often all processes are listed, to find a stopped tool of the holder.
const LIST_INTERVAL: Duration = Duration::from_secs(5);
/// The longest wait. Plain nvcc would have finished earlier.
const LONGEST: Duration = Duration::from_secs(30 * 60);
/// How long the tools of a killed holder may take to end.
const TOOLS_END: Duration = Duration::from_secs(5);
/// The same where the tools are in another container, so that it cannot be seen whether they have ended.
const UNSEEN_TOOLS_END: Duration = Duration::from_secs(1);
/// The longest pause between two attempts to lock.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The result of an attempt to lock a scratch folder.
pub enum LockResult {
    /// This process has the lock. `waited` is true if it waited for another process.
    Locked { lock: File, waited: bool },
    /// This process does not wait any longer, for this reason.
    GivenUp(String),
}

/// Locks the file at `path`, which belongs to the scratch folder `folder`. Waits for a holder that works.
///
/// # Errors
/// The lock cannot be opened, or a sandbox refuses locks.
pub fn take(path: &Path, folder: &Path, log: &Log) -> io::Result<LockResult> {
    let began = Instant::now();
    let mut waited = false;
    // Where a sandbox refuses locks, no lock file is made: without its lock, nobody may remove it. This unlocks nothing.
    if let Some(Ok(parent)) = path.parent().map(File::open) {
        flock(&parent, FlockOperation::Unlock)?;
    }
    while began.elapsed() < LONGEST {
        let lock = match open(path) {
            // The last process that leaves the parent folder removes it: the caller makes it again.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
            other => other?,
        };
        match wait(&lock, path, began, &mut waited, log)? {
            Waited::Locked => {}
            Waited::Removed => continue,
            Waited::GivenUp(why) => return Ok(LockResult::GivenUp(why)),
        }
        // The earlier holder removes the file when it ends, so this process may have locked a file that has no name any more.
        if !is_linked(&lock, path) {
            continue;
        }
        if let Some(earlier) = Holder::read(&lock)
            && let Some(why) = wait_for_tools_of(&earlier, folder)
        {
            return Ok(LockResult::GivenUp(why));
        }
        if let Some(us) = Holder::this_process() {
            us.write(&lock);
        }
        return Ok(LockResult::Locked { lock, waited });
    }
    Ok(LockResult::GivenUp(format!(
        "waited {} minutes for {}",
        LONGEST.as_secs() / 60,
        path.display()
    )))
}

fn open(path: &Path) -> io::Result<File> {
    // Rust opens files so that exec closes them. A daemon that a compiler wrapper starts does not get the lock.
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

enum Waited {
    Locked,
    /// The holder has removed the lock file. A new one has to be made.
    Removed,
    GivenUp(String),
}

/// Tries to lock again and again. A blocking flock would end only when the holder ends.
fn wait(
    lock: &File,
    path: &Path,
    began: Instant,
    waited: &mut bool,
    log: &Log,
) -> io::Result<Waited> {
    let mut pause = Duration::from_millis(1);
    let mut useless: Option<Instant> = None;
    let mut next_list = LIST_INTERVAL;
    let mut is_logged = false;
    loop {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Waited::Locked),
            Err(Errno::WOULDBLOCK | Errno::INTR) => *waited = true,
            Err(error) => return Err(error.into()),
        }
        if !is_linked(lock, path) {
            return Ok(Waited::Removed);
        }
        let holder = Holder::read(lock);
        let mut state = holder.map_or(HolderState::Unknown, |holder| holder.state());
        let elapsed = began.elapsed();
        if elapsed > next_list {
            next_list = elapsed + LIST_INTERVAL;
            if state == HolderState::Works && holder.is_some_and(|h| h.has_stopped_tool()) {
                return Ok(give_up(holder, "has a tool that was stopped"));
            }
        }
        match state {
            HolderState::Works | HolderState::Unknown => useless = None,
            HolderState::Stopped | HolderState::Gone => {
                let since = *useless.get_or_insert_with(Instant::now);
                if since.elapsed() < SURE {
                    state = HolderState::Works;
                }
            }
        }
        match state {
            HolderState::Stopped => return Ok(give_up(holder, "was stopped")),
            HolderState::Gone => {
                return Ok(give_up(
                    holder,
                    "has ended, but another process still holds its lock",
                ));
            }
            HolderState::Works | HolderState::Unknown => {}
        }
        if elapsed > LOG_AFTER && !is_logged {
            is_logged = true;
            log.line(|| {
                let who = holder.map_or("another process".to_owned(), |h| h.pid.to_string());
                format!(
                    "waiting for {who}, which runs the same command ({})",
                    path.display()
                )
            });
        }
        if elapsed > LONGEST {
            let minutes = LONGEST.as_secs() / 60;
            return Ok(give_up(
                holder,
                &format!("took more than {minutes} minutes"),
            ));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn give_up(holder: Option<Holder>, what: &str) -> Waited {
    let pid = holder.map_or(0, |holder| holder.pid);
    Waited::GivenUp(format!(
        "process {pid}, which runs the same command, {what}"
    ))
}

/// Waits until the tools of a holder that was killed have ended. Gives a reason to give up if they do not end.
fn wait_for_tools_of(holder: &Holder, folder: &Path) -> Option<String> {
    let began = Instant::now();
    loop {
        match holder.has_survivors(folder) {
            Some(false) => return None,
            None if began.elapsed() > UNSEEN_TOOLS_END => return None,
            Some(true) if began.elapsed() > TOOLS_END => {
                return Some(format!(
                    "tools of process {}, which was killed, still run",
                    holder.pid
                ));
            }
            _ => thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn is_linked(lock: &File, path: &Path) -> bool {
    let (Ok(ours), Ok(named)) = (lock.metadata(), fs::metadata(path)) else {
        return false;
    };
    (named.ino(), named.dev()) == (ours.ino(), ours.dev())
}
