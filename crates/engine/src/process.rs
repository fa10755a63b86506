//! Runs one command to its end and collects both output streams, its exit status, CPU time and peak memory.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal, kill_process_group};
use wait4::Wait4;
use warpcc_budget::{Cancel, Claim};

use crate::drain::read_output;
use crate::file_input::{FileInput, open_marked};
use crate::parent_death::{DeathPipe, Lend};
use crate::room::READS_INPUT;
use crate::terminal::{Screen, Terminal};

/// A command to run.
#[derive(Debug)]
pub struct ProcessSpec<'a> {
    /// The program's file.
    pub program: &'a Path,
    /// Its `argv[0]`.
    pub name: &'a str,
    /// The arguments after the program.
    pub args: &'a [OsString],
    /// The whole environment; nothing is inherited.
    pub environment: &'a [(OsString, OsString)],
    /// The working directory.
    pub directory: &'a Path,
    /// The terminal that standard error imitates; `None` for a pipe.
    pub terminal: Option<&'a Terminal>,
    /// Standard output goes to that terminal too, where the user's does. What the program writes to it is then in
    /// [`Ended::stderr`].
    pub output_on_terminal: bool,
    /// The claim under which the command runs. Its process id is added to the claim.
    pub claim: Option<&'a Claim>,
}

/// The result of a command.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    /// The exit code, or 128 + the signal.
    pub code: i32,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Standard output, whole.
    pub stdout: Vec<u8>,
    /// Standard error, whole.
    pub stderr: Vec<u8>,
    /// User CPU time.
    pub user: Duration,
    /// System CPU time.
    pub system: Duration,
    /// Peak resident memory in KiB.
    pub peak_kib: u64,
    /// Why warpcc ended it; `None` if warpcc did not.
    pub by_us: Option<EndReason>,
}

/// Why warpcc ended a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// Its result is not wanted any more.
    Unwanted,
    /// It had to make room: it runs again when there is more memory.
    Memory,
}

/// The children that run now, and the tasks that wait for their turn, so that a signal can end them all.
#[derive(Debug, Default)]
pub struct Children {
    running: Mutex<Vec<Running>>,
    waiting: Mutex<Vec<Waiting>>,
    /// The number of the next wait: a task may wait several times.
    ticket: AtomicU64,
    closed: AtomicBool,
    /// Milliseconds that a child may hang; 0 means no limit.
    stall_millis: AtomicU64,
}

/// The text of [`Hung`], in every message that contains it.
pub const HUNG: &str = "hung and was killed";

/// A child hung and was killed. This is no result of the compiler.
#[derive(Debug, thiserror::Error)]
#[error(
    "{program} {}: for {} s it used no processor time and printed nothing",
    HUNG,
    window.as_secs_f64()
)]
pub struct Hung {
    /// The program's file.
    pub program: String,
    /// The length of the time without progress.
    pub window: Duration,
}

impl Hung {
    /// Whether this is why [`Children::run`] failed.
    pub fn is_in(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

#[derive(Debug)]
struct Waiting {
    task: usize,
    ticket: u64,
    cancel: Cancel,
}

#[derive(Debug)]
struct Running {
    task: usize,
    group: Pid,
    by_us: Option<EndReason>,
}

impl Running {
    fn end(&mut self, why: EndReason) {
        self.by_us = Some(why);
        // The child may have ended meanwhile; then there is no process to signal.
        let _ = kill_process_group(self.group, Signal::KILL);
    }
}

impl Children {
    fn list(&self) -> MutexGuard<'_, Vec<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends every child for which `which` holds, with all processes that it started, and every wait.
    pub fn kill(&self, which: impl Fn(usize) -> bool) {
        for waiting in self.queue().iter().filter(|w| which(w.task)) {
            waiting.cancel.cancel();
        }
        for running in self.list().iter_mut().filter(|r| which(r.task)) {
            running.end(EndReason::Unwanted);
        }
    }

    /// Ends the child with this process id, to make room. A process that is not a child of this run is not touched.
    pub fn evict(&self, process: u32) {
        let of_process = |r: &&mut Running| u32::try_from(r.group.as_raw_pid()) == Ok(process);
        if let Some(running) = self.list().iter_mut().find(of_process) {
            running.end(EndReason::Memory);
        }
    }

    /// Runs `wait` for `task`. [`Children::kill`] cancels it, as it ends a child.
    pub fn waiting<T>(&self, task: usize, wait: impl FnOnce(&Cancel) -> T) -> T {
        let cancel = Cancel::new();
        let ticket = self.ticket.fetch_add(1, Ordering::Relaxed);
        self.queue().push(Waiting {
            task,
            ticket,
            cancel: cancel.clone(),
        });
        if self.is_closed() {
            cancel.cancel();
        }
        let result = wait(&cancel);
        self.queue().retain(|other| other.ticket != ticket);
        result
    }

    /// Waits at most `patience` until no task waits any more: after [`Children::close`], jobs on other machines are
    /// cancelled there.
    pub fn settle(&self, patience: Duration) {
        let clock = Instant::now();
        while !self.queue().is_empty() && clock.elapsed() < patience {
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends every child, and lets no other start.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.kill(|_| true);
    }

    /// Whether [`Children::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Sets the time `window` after which a child that hangs is ended. It applies to children that start later.
    pub fn limit_idle_time(&self, window: Option<Duration>) {
        let millis = window.map_or(0, |window| window.as_millis());
        let millis = u64::try_from(millis).unwrap_or(u64::MAX);
        self.stall_millis.store(millis, Ordering::Relaxed);
    }

    /// How long a child may hang.
    fn window(&self) -> Option<Duration> {
        match self.stall_millis.load(Ordering::Relaxed) {
            0 => None,
            millis => Some(Duration::from_millis(millis)),
        }
    }

    /// Runs `spec` as `task`.
    ///
    /// # Errors
    /// The program cannot be started, everything was closed, or the program [hung](Hung).
    pub fn run(&self, task: usize, spec: &ProcessSpec<'_>) -> io::Result<Ended> {
        let input = FileInput::open();
        let nothing = || open_marked(Path::new("/dev/null")).map(Stdio::from);
        let terminal = spec.terminal.and_then(|terminal| terminal.open().ok());
        let (screen, stdin, stdout, stderr) = match terminal {
            Some(Screen {
                ours,
                errors,
                input: typed,
            }) => {
                let is_shared =
                    spec.output_on_terminal && spec.terminal.is_some_and(Terminal::is_for_output);
                let shared = is_shared.then(|| errors.try_clone()).transpose()?;
                (
                    Some(ours),
                    match typed {
                        Some(typed) => Stdio::from(typed),
                        None => nothing()?,
                    },
                    shared.map_or_else(Stdio::piped, Stdio::from),
                    Stdio::from(errors),
                )
            }
            None => (
                None,
                match input.as_ref().and_then(FileInput::share) {
                    Some(shared) => shared,
                    None => nothing()?,
                },
                Stdio::piped(),
                Stdio::piped(),
            ),
        };
        let death_pipe = DeathPipe::new();
        let mut child = self.start(task, spec, [stdin, stdout, stderr], death_pipe.as_ref())?;
        if let Some(claim) = spec.claim {
            claim.started(child.id());
        }
        let mut ended = Ended::default();
        let out = child.stdout.take().map(OwnedFd::from);
        let err = match screen {
            Some(screen) => Some(OwnedFd::from(screen)),
            None => child.stderr.take().map(OwnedFd::from),
        };
        let drained = pid_of(&child).map(|pid| read_output(pid, [out, err], self.window()));
        let drained = drained.unwrap_or_default();
        [ended.stdout, ended.stderr] = drained.texts;
        let waited = child.wait4();
        drop(death_pipe);
        {
            let mut running = self.list();
            let is_it = |r: &Running| u32::try_from(r.group.as_raw_pid()) == Ok(child.id());
            let place = running.iter().position(is_it);
            ended.by_us = place.and_then(|place| running.swap_remove(place).by_us);
        }
        let usage = waited?;
        if drained.hung && ended.by_us.is_none() {
            let window = self.window().unwrap_or_default();
            let program = spec.program.display().to_string();
            return Err(io::Error::other(Hung { program, window }));
        }
        if input.is_some_and(|input| input.is_read_on()) {
            let program = spec.program.display();
            return Err(io::Error::other(format!("{program}: {READS_INPUT}")));
        }
        ended.signal = usage.status.signal();
        ended.code = usage
            .status
            .code()
            .unwrap_or_else(|| 128 + ended.signal.unwrap_or(0));
        ended.user = usage.rusage.utime;
        ended.system = usage.rusage.stime;
        ended.peak_kib = usage.rusage.maxrss / 1024;
        Ok(ended)
    }

    /// Starts the program in a process group of its own, and adds it to the list of running children.
    fn start(
        &self,
        task: usize,
        spec: &ProcessSpec<'_>,
        [stdin, stdout, stderr]: [Stdio; 3],
        death_pipe: Option<&DeathPipe>,
    ) -> io::Result<Child> {
        // The command holds the tool's side of the terminal. It is dropped at the end of this function, because our side
        // ends only when that is closed.
        let mut command = Command::new(spec.program);
        command
            .arg0(spec.name)
            .args(spec.args)
            .env_clear()
            .envs(spec.environment.iter().map(|(k, v)| (k, v)))
            .current_dir(spec.directory)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr)
            // With the group, cc1plus and as end together with their driver.
            .process_group(0);
        let lend = |to| {
            if let Some(death_pipe) = death_pipe {
                death_pipe.lend(to);
            }
        };
        // The lock also prevents that a tool inherits another tool's death_pipe.
        let mut running = self.list();
        if self.closed.load(Ordering::SeqCst) {
            return Err(io::Error::other("interrupted"));
        }
        lend(Lend::ToChildren);
        let spawned = command.spawn();
        lend(Lend::ToNobody);
        let child = spawned.map_err(|e| {
            let why = format!("cannot start {}: {e}", spec.program.display());
            io::Error::new(e.kind(), why)
        })?;
        if let Some(group) = pid_of(&child) {
            if let Some(death_pipe) = death_pipe {
                death_pipe.tie(group);
            }
            running.push(Running {
                task,
                group,
                by_us: None,
            });
        }
        Ok(child)
    }
}

fn pid_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_streams_come_whole_however_they_are_mixed() -> io::Result<()> {
        // More data than a pipe holds on each stream, alternating, and then one stream closed after the other.
        let script = "i=0; while [ $i -lt 3000 ]; do echo out$i$i$i$i$i$i$i$i; echo err$i$i$i$i$i$i$i >&2; \
                      i=$((i+1)); done; exec >&-; head -c 200000 /dev/zero >&2";
        let args = ["-c".into(), script.into()];
        let spec = ProcessSpec {
            program: Path::new("/bin/sh"),
            name: "sh",
            args: &args,
            environment: &[("PATH".into(), "/usr/bin:/bin".into())],
            directory: Path::new("/"),
            terminal: None,
            output_on_terminal: false,
            claim: None,
        };
        let ended = Children::default().run(0, &spec)?;
        assert_eq!(ended.code, 0);
        assert_eq!(ended.stdout.iter().filter(|b| **b == b'\n').count(), 3000);
        let lines = ended.stderr.iter().filter(|b| **b == b'\n').count();
        let zeros = ended.stderr.iter().filter(|b| **b == 0).count();
        assert_eq!((lines, zeros), (3000, 200_000));
        Ok(())
    }
}
