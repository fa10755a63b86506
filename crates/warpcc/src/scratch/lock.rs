//! The lock of a private folder: taken, or waited for as long as its holder works.

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

/// A holder must be seen stopped or gone for so long: a debugger stops a process for moments.
const SURE: Duration = Duration::from_millis(100);
/// The wait after which a line in the log names the process that is waited for.
const TOLD: Duration = Duration::from_secs(3);
/// How often every process is looked at.
const WIDE_LOOK: Duration = Duration::from_secs(5);
/// The longest wait: by then plain nvcc would have finished too.
const LONGEST: Duration = Duration::from_secs(30 * 60);
/// How long the tools of a killed holder may take to end.
const DYING: Duration = Duration::from_secs(5);
/// The same where the tools cannot be seen.
const UNSEEN: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The result of asking for a lock.
pub enum Taken {
    /// It is ours; whether we waited for another process.
    Ours { lock: File, waited: bool },
    /// Waiting is no use, for this reason.
    PassedBy(String),
}

/// Takes the lock at `path`, of the folder at `folder`. Waits for a holder that works.
///
/// # Errors
/// The lock cannot be opened.
pub fn take(path: &Path, folder: &Path, log: &Log) -> io::Result<Taken> {
    let began = Instant::now();
    let mut waited = false;
    while began.elapsed() < LONGEST {
        let lock = match open(path) {
            // The last one to leave removes the parent too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
            other => other?,
        };
        match wait(&lock, path, began, &mut waited, log)? {
            Waited::Locked => {}
            Waited::Removed => continue,
            Waited::PassedBy(why) => return Ok(Taken::PassedBy(why)),
        }
        // The holder removes the file when it ends, so the file that we locked may have no name any more.
        if !is_linked(&lock, path) {
            continue;
        }
        if let Some(before) = Holder::read(&lock)
            && let Some(why) = outlive(&before, folder)
        {
            return Ok(Taken::PassedBy(why));
        }
        if let Some(us) = Holder::this_process() {
            us.write(&lock);
        }
        return Ok(Taken::Ours { lock, waited });
    }
    Ok(Taken::PassedBy(format!(
        "waited {} minutes for {}",
        LONGEST.as_secs() / 60,
        path.display()
    )))
}

fn open(path: &Path) -> io::Result<File> {
    // Closed by exec: a daemon that a compiler wrapper starts must not have it.
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
    /// The process that held it has removed it: a new one is to be asked for.
    Removed,
    PassedBy(String),
}

/// Looks again and again, and not by a blocking flock: nothing would end that wait but the holder.
fn wait(
    lock: &File,
    path: &Path,
    began: Instant,
    waited: &mut bool,
    log: &Log,
) -> io::Result<Waited> {
    let mut pause = Duration::from_millis(1);
    let mut useless: Option<Instant> = None;
    let mut next_wide_look = WIDE_LOOK;
    let mut told = false;
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
        let mut standing = holder.map_or(HolderState::Unknown, |holder| holder.standing());
        let elapsed = began.elapsed();
        if elapsed > next_wide_look {
            next_wide_look = elapsed + WIDE_LOOK;
            if standing == HolderState::Works && holder.is_some_and(|h| h.has_stopped_tool()) {
                return Ok(passed_by(holder, "has a tool that was stopped"));
            }
        }
        match standing {
            HolderState::Works | HolderState::Unknown => useless = None,
            HolderState::Stopped | HolderState::Gone => {
                let since = *useless.get_or_insert_with(Instant::now);
                if since.elapsed() < SURE {
                    standing = HolderState::Works;
                }
            }
        }
        match standing {
            HolderState::Stopped => return Ok(passed_by(holder, "was stopped")),
            HolderState::Gone => {
                return Ok(passed_by(
                    holder,
                    "has ended, but another process still holds its lock",
                ));
            }
            HolderState::Works | HolderState::Unknown => {}
        }
        if elapsed > TOLD && !told {
            told = true;
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
            return Ok(passed_by(
                holder,
                &format!("took more than {minutes} minutes"),
            ));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn passed_by(holder: Option<Holder>, what: &str) -> Waited {
    let pid = holder.map_or(0, |holder| holder.pid);
    Waited::PassedBy(format!(
        "process {pid}, which runs the same command, {what}"
    ))
}

/// Waits until what a killed holder started has ended as well; a reason where it does not.
fn outlive(before: &Holder, folder: &Path) -> Option<String> {
    let began = Instant::now();
    loop {
        match before.has_survivors(folder) {
            Some(false) => return None,
            None if began.elapsed() > UNSEEN => return None,
            Some(true) if began.elapsed() > DYING => {
                return Some(format!(
                    "tools of process {}, which was killed, still run",
                    before.pid
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
