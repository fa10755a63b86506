//! The process that compiles: it reads texts from its standard input, a socket, and answers with images until the other
//! end is closed. It has no cache, takes no lock and writes no file, so it can be killed at any time.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use rustix::process::{Signal, getpid, getppid, kill_process};

use crate::deep_stack::STACK;
use crate::environment::Environment;
use crate::job_texts::JobTexts;
use crate::nvrtc::Nvrtc;

use super::message::{Answer, Hello, LARGEST, Ready, Received, Task, framed, ready_to_bytes};

/// How often this process shows that it is alive while NVRTC works, and how often it looks for its parent.
const BEAT: Duration = Duration::from_millis(500);

/// How long the parent may take for its first message, which it sends at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// Compiles for the process that started this one, until that process ends or needs no more. For programs that
/// [`WorkerCommand`](crate::WorkerCommand) starts: they call this and then exit.
///
/// # Errors
/// The standard input is not a socket of such a process. The error is a text for the user.
pub fn serve_compilations() -> Result<(), String> {
    let not_ours = |why: String| {
        format!(
            "this program compiles for a program that uses warpcc-rtc, and only that can start it: {why}"
        )
    };
    let socket = io::stdin().as_fd().try_clone_to_owned();
    let socket = UnixStream::from(socket.map_err(|error| not_ours(error.to_string()))?);
    // A pipe or a file has no such setting.
    let waits = socket.set_read_timeout(Some(BEAT));
    waits.map_err(|error| not_ours(format!("its standard input is no socket ({error})")))?;
    let reading = socket.try_clone().map_err(|error| error.to_string())?;
    let (tell, messages) = mpsc::channel();
    std::thread::Builder::new()
        .name("warpcc-rtc-parent".to_owned())
        .spawn(move || {
            read_messages(reading, &tell);
            end_now();
        })
        .map_err(|error| error.to_string())?;
    answer_all(socket, &messages).map_err(not_ours)
}

/// Passes messages on until the socket is closed, or the parent has ended. A child of the parent's may hold a copy of
/// the parent's socket: then it is not closed.
fn read_messages(mut socket: UnixStream, tell: &Sender<Vec<u8>>) {
    let parent = getppid();
    let mut received = Received::default();
    let mut bytes = vec![0; 64 << 10];
    while getppid() == parent {
        match socket.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => received.add(&bytes[..count]),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => continue,
                _ => return,
            },
        }
        loop {
            match received
                .take(LARGEST)
                .map(|found| found.map(|message| tell.send(message)))
            {
                Ok(None) => break,
                Ok(Some(Ok(()))) => {}
                _ => return,
            }
        }
    }
}

/// Ends this process at once. NVRTC may be at work in another thread, so no library may run what it does at an exit.
fn end_now() {
    _ = kill_process(getpid(), Signal::KILL);
}

fn answer_all(mut socket: UnixStream, messages: &Receiver<Vec<u8>>) -> Result<(), String> {
    let mut send = move |message: &[u8]| {
        let frame = framed(message).ok_or("a message is too long")?;
        socket.write_all(&frame).map_err(|error| error.to_string())
    };
    // The parent may have ended before it said anything, and a child of its own may keep the socket open.
    let hello = messages.recv_timeout(PATIENCE);
    let hello = hello.map_err(|_| "nothing came from it")?;
    let hello = Hello::from_bytes(&hello).ok_or("what it says is not understood")?;
    let its_parent = getppid().map(|parent| parent.as_raw_nonzero().get().cast_unsigned());
    if its_parent != Some(hello.parent) {
        return Err("it is not from the parent of this process".to_owned());
    }
    let (ready, nvrtc) = load(&hello.library);
    send(&ready_to_bytes(&ready))?;
    let Some(nvrtc) = nvrtc else {
        return Ok(());
    };
    for message in messages {
        let task = Task::from_bytes(&message).ok_or("what it asks is not understood")?;
        let number = task.number;
        let answer = match is_here(&task) {
            true => compile(&nvrtc, task.texts, || send(&[]))?,
            false => Answer::Left,
        };
        send(&answer.to_bytes(number))?;
    }
    Ok(())
}

fn load(library: &Path) -> (Ready, Option<Arc<Nvrtc>>) {
    let nvrtc = match Nvrtc::find(Some(library), &Environment::default()) {
        Ok(nvrtc) => nvrtc,
        Err(error) => return (Err(error.to_string()), None),
    };
    match nvrtc.loaded() {
        Some(build) => (Ok(build.clone()), Some(Arc::new(nvrtc))),
        None => (Err("the files of NVRTC are not known".to_owned()), None),
    }
}

/// Whether this process is in the folder that the task is for.
fn is_here(task: &Task) -> bool {
    let needed = task.directory.as_ref();
    needed.is_none_or(|needed| std::path::absolute(".").is_ok_and(|here| here == *needed))
}

/// Compiles, and calls `beat` from time to time.
fn compile(
    nvrtc: &Arc<Nvrtc>,
    texts: JobTexts,
    mut beat: impl FnMut() -> Result<(), String>,
) -> Result<Answer, String> {
    let (tell, made) = mpsc::channel();
    let nvrtc = nvrtc.clone();
    let thread = std::thread::Builder::new()
        .name("warpcc-rtc".to_owned())
        .stack_size(STACK)
        .spawn(move || drop(tell.send(nvrtc.run(&texts.job(None)))));
    if thread.is_err() {
        return Ok(Answer::Left);
    }
    loop {
        match made.recv_timeout(BEAT) {
            Ok(done) => return Ok(Answer::Done(done)),
            Err(RecvTimeoutError::Timeout) => beat()?,
            Err(RecvTimeoutError::Disconnected) => return Ok(Answer::Left),
        }
    }
}
