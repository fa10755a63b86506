//! Whether a claim is alive: the lock on a seat's file, which the kernel releases when its holder ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};

use crate::folder::Folder;

/// A locked seat.
#[derive(Debug)]
pub struct Seat {
    /// Its number.
    pub number: usize,
    file: File,
}

impl Seat {
    /// Takes seat `number`; `None` if it is held.
    ///
    /// # Errors
    /// The file cannot be opened or locked.
    pub fn take(folder: &Folder, number: usize) -> io::Result<Option<Self>> {
        Ok(lock(&folder.seat(number))?.map(|file| Self { number, file }))
    }

    /// Releases the seat, even if a child that is just being started has a copy of the descriptor.
    pub fn release(&self) {
        unlock(&self.file);
    }

    /// Leaves the lock to the program that this process becomes, and to its children.
    ///
    /// # Errors
    /// The descriptor cannot be changed; it is then closed at exec, and the claim with it.
    pub fn keep_across_exec(self) -> io::Result<()> {
        use std::os::fd::IntoRawFd;
        rustix::io::fcntl_setfd(&self.file, rustix::io::FdFlags::empty())?;
        // Never closed by us: it lives as long as the process.
        let _ = self.file.into_raw_fd();
        Ok(())
    }
}

/// The file at `path`, created for this user alone if it is not there; never through a link.
///
/// # Errors
/// It cannot be opened.
pub fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .open(path)
}

/// The file at `path`, locked; `None` if it is held. Creates the file where it is missing.
///
/// # Errors
/// It cannot be opened or locked.
pub fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = open_file(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Releases the lock, also where a child that is just being started has a copy of the descriptor.
pub fn unlock(file: &File) {
    // If this fails, closing the descriptor releases the lock.
    let _ = flock(file, FlockOperation::Unlock);
}

/// Whether seat `number` is held.
///
/// If this cannot be determined, the seat counts as held. With a slot too few a build is slower. With a slot too many
/// it may run out of memory.
pub fn is_held(folder: &Folder, number: usize) -> bool {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::open(folder.seat(number), flags, Mode::empty()) {
        // Locked and released at once, under the board's lock: no process takes a seat meanwhile.
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockExclusive).is_err(),
        Err(rustix::io::Errno::NOENT) => false,
        Err(_) => true,
    }
}

/// The socket on which a waiter is woken.
#[derive(Debug)]
pub struct WakeSocket {
    socket: UnixDatagram,
    path: std::path::PathBuf,
}

impl WakeSocket {
    /// Binds the socket of a seat that the caller holds.
    ///
    /// # Errors
    /// The socket cannot be bound; the waiter then has to look every so often.
    pub fn bind(folder: &Folder, number: usize) -> io::Result<Self> {
        let path = folder.socket(number);
        // A killed holder of the seat may have left this file.
        let _ = std::fs::remove_file(&path);
        let socket = within_limit(folder, number, |path| UnixDatagram::bind(path))?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, path })
    }

    /// It is readable when another process has called [`wake`].
    pub fn socket(&self) -> &UnixDatagram {
        &self.socket
    }

    /// Discards the calls of [`wake`] so far.
    pub fn clear(&self) {
        let mut byte = [0; 1];
        while self.socket.recv(&mut byte).is_ok() {}
    }
}

impl Drop for WakeSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Wakes the process that waits on seat `number`.
pub fn wake(sender: &UnixDatagram, folder: &Folder, number: usize) {
    // There is no listener, or it was called already. The board has the rest.
    let _ = within_limit(folder, number, |path| sender.send_to(&[1], path));
}

/// Socket addresses hold 107 bytes. A longer path goes through a descriptor of its folder.
fn within_limit<T>(
    folder: &Folder,
    number: usize,
    with: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<T> {
    use std::os::fd::AsRawFd;
    let path = folder.socket(number);
    if path.as_os_str().len() < 107 {
        return with(&path);
    }
    let sockets = File::open(folder.sockets())?;
    let short = format!("/proc/self/fd/{}/{number}", sockets.as_raw_fd());
    with(Path::new(&short))
}
