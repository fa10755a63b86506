//! Runs a program that may hang or print without end, with limits for both. Also measures its CPU time.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// The most of a program's output that is read, in bytes.
const MOST_SAID: u64 = 64 << 10;
/// Pauses between two checks whether a program has ended: short at first, for short programs.
const SHORTEST_NAP: Duration = Duration::from_micros(500);
const LONGEST_NAP: Duration = Duration::from_millis(20);
/// Clock ticks in a second, which Linux tells programs of every architecture.
const TICKS: f64 = 100.0;

/// The end of a program.
pub(crate) struct Ended {
    /// `None`: it was stopped, since it took too long.
    pub(crate) status: Option<ExitStatus>,
    /// Processor time in seconds.
    pub(crate) seconds: f64,
    /// Its output on both streams, cut to a readable length.
    pub(crate) said: String,
}

/// Runs `command`, with its output kept in the file `log` meanwhile.
///
/// # Errors
/// It cannot be started, or the log not written.
pub(crate) fn run(command: &mut Command, log: &Path, longest: Duration) -> io::Result<Ended> {
    let out = File::create(log)?;
    command
        .stdin(Stdio::null())
        .stdout(out.try_clone()?)
        .stderr(out);
    let mut child = command.spawn()?;
    let (in_time, seconds) = wait(&child, longest);
    if !in_time {
        child.kill()?;
    }
    let status = child.wait()?;
    let mut said = Vec::new();
    File::open(log)?.take(MOST_SAID).read_to_end(&mut said)?;
    Ok(Ended {
        status: in_time.then_some(status),
        seconds,
        said: String::from_utf8_lossy(&said).into_owned(),
    })
}

/// Waits without reaping, because the CPU time of a process is lost when it is reaped.
fn wait(child: &Child, longest: Duration) -> (bool, f64) {
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return (true, 0.0);
    };
    let end = Instant::now() + longest;
    let mut nap = SHORTEST_NAP;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    loop {
        match waitid(WaitId::Pid(pid), options) {
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Ok(Some(_)) | Err(_) => return (true, used(child.id())),
        }
        if Instant::now() >= end {
            return (false, used(child.id()));
        }
        thread::sleep(nap);
        nap = (nap * 2).min(LONGEST_NAP);
    }
}

/// Seconds of processors of a process and of those it waited for.
fn used(id: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // The name before it may hold blanks and brackets.
    let Some((_, rest)) = text.rsplit_once(')') else {
        return 0.0;
    };
    // The state is the third field; utime, stime, cutime and cstime are the 14th to 17th.
    let fields = rest.split_whitespace().skip(11).take(4);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / TICKS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_cpu_time_are_known() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let log = folder.path().join("log");
        let spin = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo done; exit 3";
        let ended = run(
            Command::new("sh").args(["-c", spin]),
            &log,
            Duration::from_secs(60),
        )?;
        assert_eq!(ended.status.and_then(|s| s.code()), Some(3));
        assert_eq!(ended.said, "done\n");
        assert!(ended.seconds > 0.0, "{}", ended.seconds);
        Ok(())
    }

    #[test]
    fn one_that_hangs_or_floods_is_bounded() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let log = folder.path().join("log");
        let mut hangs = Command::new("sleep");
        let ended = run(hangs.arg("60"), &log, Duration::from_millis(50))?;
        assert!(ended.status.is_none());
        let mut floods = Command::new("sh");
        let ended = run(
            floods.args(["-c", "head -c 1000000 /dev/zero"]),
            &log,
            Duration::from_secs(60),
        )?;
        assert_eq!(ended.said.len() as u64, MOST_SAID);
        Ok(())
    }
}
