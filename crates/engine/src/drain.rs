//! Reads both output streams of a tool, until the tool has ended or hangs.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::stall::Watchdog;

/// How long warpcc still reads output after a tool has ended: other processes may finish its messages. A daemon that the
/// tool started may keep the streams open for ever.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The output that was read, and why reading ended.
#[derive(Debug, Default)]
pub struct Drained {
    /// The bytes of standard output, then of standard error.
    pub texts: [Vec<u8>; 2],
    /// Whether the watchdog found that the tool hangs.
    pub hung: bool,
}

/// Reads the output of the tool `pid`, which leads a process group, until it has ended. If the tool hangs for `window`, it
/// is killed, with all processes that it started.
pub fn read_output(pid: Pid, streams: [Option<OwnedFd>; 2], window: Option<Duration>) -> Drained {
    // Without the descriptor, only the end of the streams shows that the tool is over, and a tool that hangs is not noticed.
    let process = pidfd_open(pid, PidfdFlags::empty()).ok();
    let window = window.filter(|_| process.is_some());
    let mut watchdog = window.map(|window| Watchdog::new(pid, window));
    let mut drained = drain(streams, process.as_ref(), &mut watchdog);
    if let (Some(process), Some(watchdog)) = (&process, &mut watchdog) {
        // The tool may have closed its streams and go on.
        drained.hung = drained.hung || !wait_for_end(process, watchdog);
        if drained.hung {
            watchdog.end();
        }
    }
    drained
}

/// Reads `streams` to their ends, each as soon as it has data. One thread reads all, because a machine may have few threads.
/// `process` is readable when the tool has ended.
fn drain(
    mut streams: [Option<OwnedFd>; 2],
    process: Option<&OwnedFd>,
    watchdog: &mut Option<Watchdog>,
) -> Drained {
    let mut drained = Drained::default();
    let mut piece = vec![0; 64 * 1024];
    let mut ended: Option<Instant> = None;
    loop {
        let open: Vec<usize> = (0..2).filter(|&at| streams[at].is_some()).collect();
        if open.is_empty() {
            return drained;
        }
        let watched = process.filter(|_| ended.is_none());
        let asked = streams.iter().flatten().chain(watched);
        let mut asked: Vec<PollFd<'_>> = asked.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let patience = match (ended, &watchdog) {
            (Some(since), _) => Some(LAST_WORDS.saturating_sub(since.elapsed())),
            (None, Some(watchdog)) => Some(watchdog.pause()),
            (None, None) => None,
        };
        match poll(&mut asked, patience.map(timespec).as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            // Nothing more can be read: what was read so far counts.
            Err(_) => return drained,
        }
        let ready: Vec<bool> = asked.iter().map(|p| !p.revents().is_empty()).collect();
        if watched.is_some() && ready.last() == Some(&true) {
            ended = Some(Instant::now());
        }
        let mut spoke = false;
        for (at, _) in open.into_iter().zip(ready).filter(|(_, ready)| *ready) {
            let Some(stream) = &streams[at] else { continue };
            match rustix::io::read(stream, &mut piece) {
                Ok(read) if read > 0 => {
                    drained.texts[at].extend_from_slice(&piece[..read]);
                    spoke = true;
                }
                Err(Errno::INTR) => {}
                // A pipe ends with an empty read, a terminal that the child has closed with an error (EIO).
                Ok(_) | Err(_) => streams[at] = None,
            }
        }
        if let Some(since) = ended {
            if since.elapsed() >= LAST_WORDS {
                return drained;
            }
        } else if let Some(watchdog) = watchdog {
            if spoke {
                watchdog.moved();
            } else if watchdog.check() {
                drained.hung = true;
                return drained;
            }
        }
    }
}

/// Waits until `process` has ended. False if it hangs and writes nothing.
fn wait_for_end(process: &OwnedFd, watchdog: &mut Watchdog) -> bool {
    loop {
        let mut asked = [PollFd::new(process, PollFlags::IN)];
        match poll(&mut asked, Some(&timespec(watchdog.pause()))) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) | Err(_) => return true,
        }
        if watchdog.check() {
            return false;
        }
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}
