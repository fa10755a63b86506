//! Waits for a grant without using CPU: in `poll` on a socket and, for the few watchers, on the pidfds of running
//! processes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::cancel::{Cancel, Cancelled};
use crate::clock::{is_within, now};
use crate::file::LockTimeout;
use crate::own::Own;
use crate::proc;
use crate::reconcile::CheckLevel;
use crate::record::{Record, SeatState};
use crate::seat::WakeSocket;
use crate::shared::{Me, Shared};

/// How often a watcher checks for changes that no descriptor reports: stopped owners, and memory that others gave back.
const WATCH: Duration = Duration::from_millis(500);
/// The same where a running claim cannot be watched, or where the wait is for memory.
const CLOSE_WATCH: Duration = Duration::from_millis(100);
/// Without a socket.
const NO_SOCKET: Duration = Duration::from_millis(50);
/// If the board was not checked for this long, in nanoseconds, a waiter that does not watch checks it: all watchers may
/// have been killed at once.
const UNCHECKED: u64 = 1_500_000_000;
/// Descriptors of a watcher.
const MOST: usize = 256;

impl Shared {
    /// Waits until `own` runs.
    ///
    /// # Errors The board cannot be used any more. The inner error is a cancelled wait.
    pub(crate) fn wait(&self, own: &Own, cancel: &Cancel) -> io::Result<Result<(), Cancelled>> {
        if own.record().state == SeatState::Running {
            return Ok(Ok(()));
        }
        if self.is_nested(self.file.peek()?.records()) {
            self.transact(LockTimeout::Soon, |table| own.change(table, run_nested))?;
            return Ok(Ok(()));
        }
        let socket = WakeSocket::bind(&self.folder, own.seat).ok();
        let mut watch = Watch::default();
        loop {
            let mut record = self.file.peek_seat(own.seat)?;
            if record.ticket != own.ticket {
                // Being written just now, or lost.
                record = self.check_board(own)?;
            }
            if record.state == SeatState::Running {
                own.remember(&record);
                return Ok(Ok(()));
            }
            if cancel.is_cancelled() {
                return Ok(Err(Cancelled));
            }
            if record.flags.watch {
                if watch.refresh(self.file.peek()?.records(), self.me) {
                    // A claim that was running has ended already.
                    self.check_board(own)?;
                    continue;
                }
            } else {
                watch = Watch::default();
            }
            let timeout = match (&socket, record.flags.watch) {
                (None, _) => NO_SOCKET,
                (_, true) if watch.cannot_see || record.refused > 0 => CLOSE_WATCH,
                (_, true) => WATCH,
                // The times differ, so that not all wake at once.
                (_, false) => Duration::from_millis(2000 + own.seat as u64 * 37 % 3000),
            };
            let woken = sleep(socket.as_ref(), &watch, cancel, timeout)?;
            if let Some(socket) = &socket {
                socket.clear();
            }
            let unchecked = || {
                let header = self.file.peek_header().ok().flatten();
                header.is_none_or(|h| !is_within(UNCHECKED, h.checked, now()))
            };
            match woken {
                Woken::Notified => {}
                Woken::Death(which) => {
                    watch.forget(which);
                    self.check_board(own)?;
                }
                Woken::TimedOut if record.flags.watch || socket.is_none() || unchecked() => {
                    self.check_board(own)?;
                }
                Woken::TimedOut => {}
            }
        }
    }

    /// Checks the whole board, and puts `own` back on it if it is lost.
    fn check_board(&self, own: &Own) -> io::Result<Record> {
        self.transact(LockTimeout::Later, |table| {
            own.restore(table);
            // A waiter that looks is not stopped.
            if table.records()[own.seat].flags.paused {
                table.change(own.seat).flags.paused = false;
            }
            // The claim that we are a part of may have been lost from the board when we came, and be back now. Without it we
            // would wait for a process that waits for us.
            if table.records()[own.seat].state == SeatState::Waiting
                && self.is_nested(table.records())
            {
                own.change(table, run_nested);
            }
            self.reconcile(table, CheckLevel::Check, now());
            table.note_awake(own.seat);
            table.records().get(own.seat).copied().unwrap_or_default()
        })
    }
}

/// Grants a claim that is part of another one.
fn run_nested(record: &mut Record) {
    record.state = SeatState::Running;
    record.started = now().max(1);
    record.flags.nested = true;
    record.flags.watch = false;
}

/// Why a sleep ended.
enum Woken {
    /// The socket was written to, or the wait was cancelled. The board shows which.
    Notified,
    /// A watched process ended.
    Death(usize),
    TimedOut,
}

fn sleep(
    socket: Option<&WakeSocket>,
    watch: &Watch,
    cancel: &Cancel,
    timeout: Duration,
) -> io::Result<Woken> {
    let mut fds = Vec::with_capacity(2 + watch.fds.len());
    for (_, fd) in &watch.fds {
        fds.push(PollFd::new(fd, PollFlags::IN));
    }
    let cancel = cancel.descriptor();
    if let Some(cancel) = &cancel {
        fds.push(PollFd::new(cancel, PollFlags::IN));
    }
    if let Some(socket) = socket {
        fds.push(PollFd::from_borrowed_fd(
            socket.socket().as_fd(),
            PollFlags::IN,
        ));
    }
    let timeout = Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: timeout.subsec_nanos().into(),
    };
    match poll(&mut fds, Some(&timeout)) {
        Ok(0) => Ok(Woken::TimedOut),
        Ok(_) => {
            let first = fds.iter().position(|fd| !fd.revents().is_empty());
            Ok(match first {
                Some(place) if place < watch.fds.len() => Woken::Death(place),
                _ => Woken::Notified,
            })
        }
        Err(Errno::INTR) => Ok(Woken::Notified),
        Err(error) => Err(error.into()),
    }
}

/// A process: its number, and when it was started.
type Process = (u32, u64);

/// The processes that a watcher watches.
#[derive(Debug, Default)]
struct Watch {
    fds: Vec<(Process, OwnedFd)>,
    /// Those without a descriptor, and those that ended while another process still holds their seat.
    hidden: Vec<Process>,
    /// Whether there are any of those.
    cannot_see: bool,
}

impl Watch {
    /// Watches the owners of running claims and the other watchers. True if one of them is new
    /// here and cannot be found.
    fn refresh(&mut self, records: &[Record], me: Me) -> bool {
        let mut wanted: Vec<Process> = records
            .iter()
            .filter(|r| r.state == SeatState::Running || r.flags.watch)
            .map(|r| (r.pid, r.pid_start))
            .filter(|&(pid, _)| pid != me.pid)
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        self.fds.retain(|(process, _)| wanted.contains(process));
        self.hidden.retain(|process| wanted.contains(process));
        let mut gone = false;
        for process in wanted {
            let known = self.fds.iter().any(|(p, _)| *p == process);
            if known || self.hidden.contains(&process) {
                continue;
            }
            match open(process).filter(|_| self.fds.len() < MOST) {
                Some(fd) => self.fds.push((process, fd)),
                None => {
                    self.hidden.push(process);
                    gone = true;
                }
            }
        }
        self.cannot_see = !self.hidden.is_empty();
        gone
    }

    /// The process at `place` has ended. Its seat may still be locked by children of the program that it became. Then
    /// it is checked at intervals.
    fn forget(&mut self, place: usize) {
        let (process, _) = self.fds.swap_remove(place);
        self.hidden.push(process);
        self.cannot_see = true;
    }
}

fn open((pid, start): Process) -> Option<OwnedFd> {
    let fd = pidfd_open(
        Pid::from_raw(i32::try_from(pid).ok()?)?,
        PidfdFlags::empty(),
    )
    .ok()?;
    // A number of another namespace, or used again.
    proc::stat(pid).filter(|stat| stat.start == start)?;
    Some(fd)
}
