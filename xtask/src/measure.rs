//! Runs one command and measures its cost, including its children's time.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::process;

/// The cost of one run of a command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Seconds on the clock.
    pub wall: f64,
    /// Processor time in programs, in seconds, of the process and of all processes that it waited for.
    pub user: f64,
    /// Processor time in the kernel, in seconds, of the same processes.
    pub system: f64,
    /// The peak memory of its largest process, in KiB.
    pub peak_kib: i64,
}

impl Cost {
    /// Processor time, in seconds.
    pub fn cpu(&self) -> f64 {
        self.user + self.system
    }

    /// The middle of several runs, each column by itself.
    pub fn median(costs: &[Cost]) -> Cost {
        let middle = |column: fn(&Cost) -> f64| median(costs.iter().map(column).collect());
        Cost {
            wall: middle(|cost| cost.wall),
            user: middle(|cost| cost.user),
            system: middle(|cost| cost.system),
            peak_kib: middle(|cost| cost.peak_kib as f64) as i64,
        }
    }
}

/// Runs a command with nothing on its standard input; anything but success is an error.
pub fn run(command: &mut Command) -> Result<Cost> {
    let shown = process::show(command);
    let start = Instant::now();
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("failed to start `{shown}`"))?;
    let (status, usage) = wait(child.id()).with_context(|| format!("failed to wait: `{shown}`"))?;
    let wall = start.elapsed();
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(Cost {
        wall: wall.as_secs_f64(),
        user: seconds(usage.ru_utime),
        system: seconds(usage.ru_stime),
        peak_kib: usage.ru_maxrss,
    })
}

/// Waits for a child of ours. The standard library's own wait does not give the child's resource usage.
#[expect(unsafe_code, reason = "wait4 has no safe wrapper in the crates we use")]
fn wait(pid: u32) -> Result<(ExitStatus, libc::rusage)> {
    let pid = libc::pid_t::try_from(pid).context("a process id that is none")?;
    let mut status = 0;
    // SAFETY: all zeroes is a valid `rusage`, which is made of integers only.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live, writable values of the types wait4 asks for, and
        // nobody else waits for this child: its handle is dropped without waiting.
        let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
        if waited == pid {
            return Ok((ExitStatus::from_raw(status), usage));
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error.into());
        }
    }
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_grandchildren_counts() {
        let spin = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        let nested = format!("sh -c '{spin}'; true");
        let cost = run(Command::new("sh").args(["-c", &nested])).expect("a shell runs");
        assert!(
            cost.cpu() > 0.01 && cost.wall > 0.01 && cost.peak_kib > 0,
            "{cost:?}"
        );
    }

    #[test]
    fn failure_is_an_error() {
        assert!(run(Command::new("false").arg("x")).is_err());
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
