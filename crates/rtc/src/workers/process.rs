//! A process that compiles, as the process that started it sees it.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::call_limits::CallLimits;
use crate::job_texts::JobTexts;
use crate::nvrtc::{CompileOutput, LoadedBuild, NvrtcError};

use super::command::WorkerCommand;
use super::message::{Answer, Hello, LARGEST, Received, framed, ready_from_bytes, task_to_bytes};

/// How late a limit is noticed.
const PAUSE: Duration = Duration::from_millis(20);
/// How long the process may show no sign of life, in pauses: a machine can be very busy. Pauses are counted, because the
/// time in which both processes are stopped does not count.
const PATIENCE: u32 = 500;

/// The most characters of what a process printed that are shown.
const MOST_WORDS: usize = 2000;

/// A process that has loaded NVRTC and waits for texts. Dropping it kills the process.
pub(super) struct Worker {
    child: Child,
    /// Names the process also after others have waited for it; `None` before Linux 5.3.
    handle: Option<OwnedFd>,
    socket: UnixStream,
    received: Received,
    /// How many texts it was given.
    tasks: u64,
    /// What the process prints.
    output: File,
}

/// What a process is to send.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// What it has loaded, without signs of life before.
    Greeting,
    /// The answer to a task.
    Answer,
}

impl Expected {
    /// A program that is no such process may begin with any number.
    fn longest(self) -> usize {
        match self {
            Self::Greeting => 64 << 10,
            Self::Answer => LARGEST,
        }
    }
}

/// Why there is no answer.
pub(super) enum Trouble {
    /// A limit was reached.
    Limit,
    /// The process is of no more use; the reason, for the user.
    Failed(String),
}

impl Worker {
    /// Starts a process, which must load the NVRTC `build`.
    pub(super) fn start(
        command: &WorkerCommand,
        build: &LoadedBuild,
        limits: &CallLimits,
    ) -> Result<Self, Trouble> {
        let mut worker = Self::spawn(command).map_err(|error| {
            let program = command.program.display();
            Trouble::Failed(format!("{program} does not start: {error}"))
        })?;
        let hello = Hello {
            parent: std::process::id(),
            library: build.library.clone(),
        };
        let ready = worker.exchange(&hello.to_bytes(), Expected::Greeting, limits)?;
        match ready_from_bytes(&ready) {
            Some(Ok(theirs)) if theirs == *build => Ok(worker),
            Some(Ok(_)) => Err(Trouble::Failed("it has loaded another NVRTC".to_owned())),
            Some(Err(why)) => Err(Trouble::Failed(why)),
            None => Err(Trouble::Failed(not_understood())),
        }
    }

    fn spawn(command: &WorkerCommand) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(PAUSE))?;
        ours.set_write_timeout(Some(PAUSE))?;
        let output = output_file()?;
        let mut starting = Command::new(&command.program);
        starting
            .args(&command.arguments)
            .stdin(OwnedFd::from(theirs))
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            // Ctrl-C and other signals to the caller's group are for the caller.
            .process_group(0);
        let child = starting.spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let handle = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Ok(Self {
            child,
            handle,
            socket: ours,
            received: Received::default(),
            tasks: 0,
            output,
        })
    }

    /// Has the texts compiled. `None` if the process leaves it to this one.
    pub(super) fn run(
        &mut self,
        directory: Option<&Path>,
        texts: &JobTexts,
        limits: &CallLimits,
    ) -> Result<Option<Result<CompileOutput, NvrtcError>>, Trouble> {
        self.tasks += 1;
        let task = task_to_bytes(self.tasks, directory, texts);
        let answer = self.exchange(&task, Expected::Answer, limits)?;
        match Answer::from_bytes(&answer, self.tasks, texts.expressions()) {
            Some(Answer::Done(done)) => Ok(Some(done)),
            Some(Answer::Left) => Ok(None),
            None => Err(Trouble::Failed(not_understood())),
        }
    }

    /// Sends a message and waits for the answer.
    fn exchange(
        &mut self,
        message: &[u8],
        expected: Expected,
        limits: &CallLimits,
    ) -> Result<Vec<u8>, Trouble> {
        let frame = framed(message);
        let frame = frame.ok_or_else(|| Trouble::Failed("the texts are too long".to_owned()))?;
        let mut quiet = 0;
        let mut rest = &frame[..];
        while !rest.is_empty() {
            match send(&self.socket, rest, SendFlags::NOSIGNAL) {
                Ok(count) => {
                    quiet = 0;
                    rest = &rest[count..];
                }
                Err(Errno::AGAIN) => check(limits, &mut quiet)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.ended(error)),
            }
        }
        let mut bytes = vec![0; 64 << 10];
        loop {
            match self.received.take(expected.longest()) {
                Ok(None) => {}
                Ok(Some(beat)) if beat.is_empty() && expected == Expected::Answer => continue,
                Ok(Some(answer)) => return Ok(answer),
                Err(_) => return Err(Trouble::Failed(not_understood())),
            }
            match recv(&self.socket, &mut bytes[..], RecvFlags::empty()) {
                Ok((_, 0)) => return Err(self.ended(Errno::PIPE)),
                Ok((_, count)) => {
                    // Signs of life may come without end.
                    check_limits(limits)?;
                    quiet = 0;
                    self.received.add(&bytes[..count]);
                }
                Err(Errno::AGAIN) => check(limits, &mut quiet)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.ended(error)),
            }
        }
    }

    /// Why the process no longer answers.
    fn ended(&mut self, error: Errno) -> Trouble {
        self.kill();
        let how = match self.child.wait() {
            Ok(status) => status.to_string(),
            Err(_) => error.to_string(),
        };
        match self.last_words() {
            Some(words) => Trouble::Failed(format!("{how}: {words}")),
            None => Trouble::Failed(how),
        }
    }

    /// The last line that the process printed.
    fn last_words(&mut self) -> Option<String> {
        let mut all = Vec::new();
        self.output.rewind().ok()?;
        self.output.read_to_end(&mut all).ok()?;
        // Zeros follow it.
        let text = String::from_utf8_lossy(&all);
        let text = text.trim_end_matches('\0');
        let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
        let line = line.trim();
        let most = line.char_indices().nth(MOST_WORDS);
        Some(line[..most.map_or(line.len(), |(end, _)| end)].to_owned())
    }

    /// Ends the process, which has no files and no locks.
    pub(super) fn kill(&mut self) {
        // A child of this process may have a copy of the socket, which stays open without this.
        drop(self.socket.shutdown(std::net::Shutdown::Both));
        drop(match &self.handle {
            Some(handle) => pidfd_send_signal(handle.as_fd(), Signal::KILL).map_err(Into::into),
            None => self.child.kill(),
        });
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
        // The program may have waited for all its children itself.
        drop(self.child.wait());
    }
}

/// A file in memory for what a process prints. It has all its bytes and cannot grow, because a process may print without end.
fn output_file() -> io::Result<File> {
    const MOST: u64 = 16 << 10;
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(memfd_create("warpcc-rtc-worker", flags)?);
    file.set_len(MOST)?;
    fcntl_add_seals(&file, SealFlags::GROW | SealFlags::SHRINK)?;
    Ok(file)
}

/// Fails after a pause if a limit was reached, or if it was one of too many.
fn check(limits: &CallLimits, quiet: &mut u32) -> Result<(), Trouble> {
    check_limits(limits)?;
    *quiet += 1;
    match *quiet > PATIENCE {
        true => Err(Trouble::Failed(format!(
            "it showed no sign of life for {} seconds",
            (PAUSE * PATIENCE).as_secs()
        ))),
        false => Ok(()),
    }
}

fn check_limits(limits: &CallLimits) -> Result<(), Trouble> {
    limits.passed("").map_err(|_| Trouble::Limit)
}

fn not_understood() -> String {
    "its answer is not understood".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Compiler;
    use crate::request::CompileRequest;

    #[test]
    #[ignore = "started by the next, as a process that compiles"]
    fn compiles() {
        super::super::serve_compilations().expect("it was started by a test");
    }

    #[test]
    fn a_process_makes_what_nvrtc_makes_here() {
        let folder = warpcc_testkit::Nvrtc::newest().folder;
        let compiler = Compiler::open(&folder).expect("NVRTC");
        let build = compiler.loaded().expect("its files are known");
        let test = "workers::process::tests::compiles";
        let command = WorkerCommand::new(
            std::env::current_exe().expect("a path"),
            ["--ignored", "--exact", test, "--nocapture"],
        );
        let limits = CallLimits::default();
        let Ok(mut worker) = Worker::start(&command, build, &limits) else {
            panic!("it does not start");
        };
        let directory = std::path::absolute(".").expect("a folder");
        let mut run = |source: &str, directory: Option<&Path>| {
            let target = "sm_90".parse().expect("a target");
            let mut request = CompileRequest::new("k", source, target);
            request.name_expressions.push("k<int>".into());
            let mut there = None;
            let here = compiler.compile_in(&request, &limits, |texts| {
                there = worker.run(directory, texts, &limits).ok();
                None
            });
            (there.expect("an answer"), here)
        };
        let good = "template<class T> __global__ void k(T* x) { *x = 1; }";
        for directory in [None, Some(directory.as_path())] {
            let (Some(Ok(there)), Ok(here)) = run(good, directory) else {
                panic!("it does not compile");
            };
            assert_eq!(there.image, *here.image);
            assert_eq!(there.lowered[0], here.lowered[0].1);
        }
        // Another folder than that of the process.
        assert!(matches!(
            run(good, Some(Path::new("/nowhere"))),
            (None, Ok(_))
        ));
        let (Some(Err(NvrtcError::Refused { log, .. })), Err(_)) = run("oops", None) else {
            panic!("it compiles");
        };
        assert!(log.contains("oops"), "{log}");
    }
    #[test]
    #[ignore = "started by the next, as a process that shows without end that it is alive"]
    fn lives_only() {
        use super::super::message::ready_to_bytes;
        use std::io::Write as _;
        let socket = io::stdin().as_fd().try_clone_to_owned();
        let mut socket = UnixStream::from(socket.expect("a socket"));
        let folder = warpcc_testkit::Nvrtc::newest().folder;
        let compiler = Compiler::open(&folder).expect("NVRTC");
        let build = compiler.loaded().expect("its files are known").clone();
        let ready = framed(&ready_to_bytes(&Ok(build))).expect("a frame");
        socket.write_all(&ready).expect("written");
        while socket.write_all(&[0; 4 << 10]).is_ok() {}
    }

    #[test]
    fn signs_of_life_do_not_hide_a_limit() {
        let folder = warpcc_testkit::Nvrtc::newest().folder;
        let compiler = Compiler::open(&folder).expect("NVRTC");
        let build = compiler.loaded().expect("its files are known");
        let test = "workers::process::tests::lives_only";
        let command = WorkerCommand::new(
            std::env::current_exe().expect("a path"),
            ["--ignored", "--exact", test, "--nocapture"],
        );
        let Ok(mut worker) = Worker::start(&command, build, &CallLimits::default()) else {
            panic!("it does not start");
        };
        let cancel = crate::call_limits::Cancel::new();
        cancel.cancel();
        let limits = CallLimits {
            cancel: Some(cancel),
            ..CallLimits::default()
        };
        let request = CompileRequest::new("k", "text", "sm_90".parse().expect("a target"));
        let texts = JobTexts::new_checked(&request, &[]).expect("texts");
        let run = worker.run(None, &texts, &limits);
        assert!(matches!(run, Err(Trouble::Limit)));
    }
}
