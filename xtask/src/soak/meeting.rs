//! Where fake tools meet the soak while a call runs: a socket without a file, which nobody who watches files sees. They
//! ask what time it is, and wait there for a change to be made in the middle of a call.

use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::space::Space;

/// Does the work with somebody listening, where the history needs it.
///
/// # Errors
/// The socket cannot be made; or those of the work.
pub fn during<T>(space: &Space, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if space.race.is_none() && space.clock.is_none() {
        return work();
    }
    let address = SocketAddr::from_abstract_name(space.fill("{root}/soak"))?;
    let listener = listen(&address)?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| answer(space, &listener, &over));
        let done = work();
        over.store(true, Ordering::SeqCst);
        // The listener wakes up and sees that it is over.
        _ = UnixStream::connect_addr(&address);
        done
    })
}

fn listen(address: &SocketAddr) -> io::Result<UnixListener> {
    // Another thread's child holds the last one open until it becomes its program.
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
