//! The tokens of make and of ninja 1.13: how many commands a build tool lets its children run at a time.
//!
//! The client of the `jobserver` crate can be made from the environment only with `unsafe`, because nothing proves that
//! descriptor 3 is what `MAKEFLAGS` says. Its wait cannot be cancelled. So this module examines the descriptors and
//! then opens them again through `/proc/self/fd`. The new descriptors are ends of the same pipe, but our own: they can
//! be nonblocking without an effect on make, and it does not matter if another process closes make's descriptor.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::OFlags;

use crate::cancel::{Cancel, Cancelled};

/// Whether `MAKEFLAGS` names a jobserver that can be used.
#[derive(Debug, Clone)]
pub enum Joined {
    /// There is no jobserver, so our commands are not counted.
    Absent,
    /// There is one and it can be used.
    Yes(Tokens),
    /// There is one and it cannot be used, for this reason. It is then treated as absent, but the caller may report it.
    /// For example, make closes the descriptors if there is no `+` before the command.
    Unusable(String),
}

/// The tokens that this process may use: the one that it was started with, and those that it
/// fetches. Clones are the same ones.
#[derive(Debug, Clone)]
pub struct Tokens(Arc<TokenPool>);

#[derive(Debug)]
struct TokenPool {
    /// 1 while the token that we were started with is free.
    own: OwnedFd,
    read: File,
    write: File,
    taken: Mutex<TakenTokens>,
}

/// The tokens to give back, whatever ends this process.
#[derive(Debug, Default)]
struct TakenTokens {
    bytes: Vec<u8>,
    /// All were given back, and no more are taken.
    over: bool,
}

/// The right to run one more command. Dropping the token gives it back.
#[derive(Debug)]
pub struct Token {
    from: Arc<TokenPool>,
    /// The byte that was read from the pipe, to be written back unchanged; `None` for our own token.
    byte: Option<u8>,
}

impl Tokens {
    /// Joins the jobserver that `makeflags`, the value of `MAKEFLAGS`, names.
    pub fn join(makeflags: &str) -> Joined {
        let Some(auth) = auth(makeflags) else {
            return Joined::Absent;
        };
        match open(auth) {
            Ok((read, write)) => match Self::from_ends(read, write) {
                Ok(tokens) => Joined::Yes(tokens),
                Err(error) => Joined::Unusable(error.to_string()),
            },
            Err(error) => Joined::Unusable(format!("{auth}: {error}")),
        }
    }

    fn from_ends(read: File, write: File) -> io::Result<Self> {
        let own = eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(TokenPool {
            own,
            read,
            write,
            taken: Mutex::default(),
        })))
    }

    /// Waits for a token: the one this process was started with if it is free, or one of the build tool's. So the first
    /// of several concurrent commands never waits, whatever the build tool does.
    ///
    /// # Errors
    /// Cancelled meanwhile.
    pub fn acquire(&self, cancel: &Cancel) -> Result<Token, Cancelled> {
        loop {
            cancel.check()?;
            if let Some(token) = self.try_acquire() {
                return Ok(token);
            }
            self.0.wait(cancel);
        }
    }

    /// Gives back what was taken from the build tool, and takes nothing more: this process ends now, without
    /// waiting for the holders of tokens.
    pub fn give_all_back(&self) {
        let mut taken = self.0.taken();
        taken.over = true;
        for byte in std::mem::take(&mut taken.bytes) {
            self.0.put_byte(byte);
        }
    }

    /// A token if one is free now.
    pub fn try_acquire(&self) -> Option<Token> {
        let byte = if self.0.take_own() {
            None
        } else {
            Some(self.0.take_byte()?)
        };
        Some(Token {
            from: Arc::clone(&self.0),
            byte,
        })
    }
}

impl TokenPool {
    fn take_own(&self) -> bool {
        let mut count = [0; 8];
        rustix::io::read(&self.own, &mut count).is_ok()
    }

    fn taken(&self) -> MutexGuard<'_, TakenTokens> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_byte(&self) -> Option<u8> {
        let mut taken = self.taken();
        if taken.over {
            return None;
        }
        let mut byte = [0];
        match (&self.read).read(&mut byte) {
            Ok(1) => {
                taken.bytes.push(byte[0]);
                Some(byte[0])
            }
            // Another process was faster, or the other end did not write what it announced.
            _ => None,
        }
    }

    fn give_byte(&self, byte: u8) {
        let mut taken = self.taken();
        // It may have been given back with all others.
        if let Some(place) = taken.bytes.iter().position(|&other| other == byte) {
            taken.bytes.swap_remove(place);
            self.put_byte(byte);
        }
    }

    fn put_byte(&self, byte: u8) {
        // A pipe that is full never gave us this token.
        drop((&self.write).write(&[byte]));
    }

    fn wait(&self, cancel: &Cancel) {
        let mut fds = vec![
            PollFd::new(&self.own, PollFlags::IN),
            PollFd::new(&self.read, PollFlags::IN),
        ];
        let cancelled = cancel.descriptor();
        if let Some(fd) = &cancelled {
            fds.push(PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN));
        }
        // The long end is for a handle without descriptors.
        let second = Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        };
        let _ = poll(&mut fds, Some(&second));
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        match self.byte {
            Some(byte) => self.from.give_byte(byte),
            None => drop(rustix::io::write(&self.from.own, &1u64.to_ne_bytes())),
        }
    }
}

/// The value of the last `--jobserver-auth=` or, of makes before 4.2, `--jobserver-fds=`, before
/// `--`, after which there are variables.
fn auth(makeflags: &str) -> Option<&str> {
    makeflags
        .split_ascii_whitespace()
        .take_while(|word| *word != "--")
        .filter_map(|word| {
            word.strip_prefix("--jobserver-auth=")
                .or_else(|| word.strip_prefix("--jobserver-fds="))
        })
        .last()
}

fn open(auth: &str) -> io::Result<(File, File)> {
    if let Some(path) = auth.strip_prefix("fifo:") {
        let path = Path::new(path);
        let read = open_pipe(path, OpenOptions::new().read(true))?;
        return Ok((read, open_pipe(path, OpenOptions::new().write(true))?));
    }
    let wrong = || io::Error::other("not two descriptors");
    let (read, write) = auth.split_once(',').ok_or_else(wrong)?;
    let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
    let path = |number: u32| PathBuf::from(format!("/proc/self/fd/{number}"));
    let (read, write) = (path(number(read)?), path(number(write)?));
    let (there, here) = (fs::metadata(&read)?, fs::metadata(&write)?);
    if (there.dev(), there.ino()) != (here.dev(), here.ino()) {
        return Err(io::Error::other("not the ends of one pipe"));
    }
    let read = open_pipe(&read, OpenOptions::new().read(true))?;
    Ok((read, open_pipe(&write, OpenOptions::new().write(true))?))
}

/// Opens a pipe, named or not, with a descriptor of our own. Nothing else is opened: a device might
/// act on it.
fn open_pipe(path: &Path, how: &mut OpenOptions) -> io::Result<File> {
    let refuse = || io::Error::other("not a pipe");
    if !fs::metadata(path)?.file_type().is_fifo() {
        return Err(refuse());
    }
    let file = how
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(path)?;
    // It may have been another file by then.
    if !file.metadata()?.file_type().is_fifo() {
        return Err(refuse());
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_before_the_variables_counts() {
        assert_eq!(auth(" -j4 --jobserver-auth=3,4"), Some("3,4"));
        assert_eq!(auth("w --jobserver-fds=5,6 -j"), Some("5,6"));
        assert_eq!(
            auth("--jobserver-auth=3,4 --jobserver-auth=fifo:/tmp/x"),
            Some("fifo:/tmp/x")
        );
        assert_eq!(auth("k -- X=--jobserver-auth=3,4"), None);
        assert_eq!(auth("k -- --jobserver-auth=3,4"), None);
        assert_eq!(auth(""), None);
    }
}
