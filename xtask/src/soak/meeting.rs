//! The socket over which fake tools talk to the soak while a call runs. It has no file, so that watching files does not show
//! it. The tools ask for the time, and wait for a change to be made in the middle of a call.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::space::Space;

/// Does the work with a thread that listens, and one that fills pipes, where the history needs them.
///
/// # Errors
/// The socket cannot be made, or the work fails.
pub fn during<T>(space: &Space, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let meets = space.race.is_some() || space.clock.is_some();
    if !meets && space.pipes.is_empty() {
        return work();
    }
    let address = SocketAddr::from_abstract_name(space.fill("{root}/soak"))?;
    let listener = meets.then(|| listen(&address)).transpose()?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        if let Some(listener) = &listener {
            scope.spawn(|| answer(space, listener, &over));
        }
        if !space.pipes.is_empty() {
            scope.spawn(|| fill_pipes(space, &over));
        }
        let done = work();
        over.store(true, Ordering::SeqCst);
        if meets {
            // The listener wakes up and sees that the work is over.
            _ = UnixStream::connect_addr(&address);
        }
        done
    })
}

/// Gives every reader of a pipe its line. Never waits: without a reader, opening a pipe fails.
fn fill_pipes(space: &Space, over: &AtomicBool) {
    while !over.load(Ordering::SeqCst) {
        let projects = ["w", "w2"].map(|name| space.root.join(name));
        let in_projects = |(path, line)| projects.each_ref().map(|w| (w.join(path), line));
        for (path, line) in space.pipes.iter().flat_map(in_projects) {
            let is_pipe = path
                .metadata()
                .is_ok_and(|found| found.file_type().is_fifo());
            let open = || {
                let mut options = OpenOptions::new();
                options
                    .write(true)
                    .custom_flags(libc::O_NONBLOCK)
                    .open(&path)
            };
            if let Some(mut pipe) = is_pipe.then(open).and_then(Result::ok) {
                _ = pipe.write_all(line.as_bytes());
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn listen(address: &SocketAddr) -> io::Result<UnixListener> {
    // Another thread's child holds the last socket open until it executes its program.
    for _ in 0..200 {
        match UnixListener::bind_addr(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                thread::sleep(Duration::from_millis(5));
            }
            made => return made,
        }
    }
    UnixListener::bind_addr(address)
}

fn answer(space: &Space, listener: &UnixListener, over: &AtomicBool) {
    let mut race = space.race.clone();
    for stream in listener.incoming() {
        if over.load(Ordering::SeqCst) {
            return;
        }
        let Ok(mut stream) = stream else { continue };
        let mut question = [0];
        match stream.read(&mut question) {
            Ok(1) if question == *b"t" => {
                let time = space.clock.as_deref().unwrap_or("00:00:00");
                _ = stream.write_all(time.as_bytes());
            }
            Ok(1) => {
                if let Some(step) = race.take() {
                    space.change_files(&step);
                }
            }
            Ok(_) | Err(_) => {}
        }
    }
}
