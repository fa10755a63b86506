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
    /// The part of both that the process itself took, without its children: in steps of the kernel's clock, 10 ms.
    pub own: f64,
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
            own: middle(|cost| cost.own),
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
    let own = own_time(child.id()).with_context(|| format!("failed to wait: `{shown}`"))?;
    let (status, usage) = wait(child.id()).with_context(|| format!("failed to wait: `{shown}`"))?;
    let wall = start.elapsed();
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(Cost {
        wall: wall.as_secs_f64(),
        user: seconds(usage.ru_utime),
        system: seconds(usage.ru_stime),
        own,
        peak_kib: usage.ru_maxrss,
    })
}

/// Waits until a child of ours has ended, and reads how much processor time it took without its own children.
#[expect(
    unsafe_code,
    reason = "waitid has no safe wrapper in the crates we use"
)]
fn own_time(pid: u32) -> Result<f64> {
    // SAFETY: all zeroes is a valid `siginfo_t`.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let how = libc::WEXITED | libc::WNOWAIT;
    // SAFETY: the pointer is to a live, writable value; the child stays to be waited for.
    while unsafe { libc::waitid(libc::P_PID, pid, &raw mut info, how) } != 0 {
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error.into());
        }
    }
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path).with_context(|| format!("failed to read {path}"))?;
    // The program's name is in parentheses, and may have spaces and parentheses itself (proc_pid_stat(5)).
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = |number: usize| {
        let field = fields.split_ascii_whitespace().nth(number - 3);
        field.and_then(|text| text.parse::<u64>().ok())
    };
    let (Some(user), Some(system)) = (ticks(14), ticks(15)) else {
        bail!("{path} has no times: {stat}");
    };
    // SAFETY: no arguments in memory.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    Ok((user + system) as f64 / per_second as f64)
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
    fn own_time_is_without_that_of_children() {
        let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let itself = run(Command::new("sh").args(["-c", spin])).expect("a shell runs");
        assert!(itself.own > 0.5 * itself.cpu(), "{itself:?}");
        let nested = format!("sh -c '{spin}'; true");
        let child = run(Command::new("sh").args(["-c", &nested])).expect("a shell runs");
        assert!(child.own < 0.5 * child.cpu(), "{child:?}");
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
