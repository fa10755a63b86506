//! The board's file and its lock. The lock is held for table arithmetic only, and one whose holder was stopped is replaced.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::folder::Folder;
use crate::proc;
use crate::record::{Header, Record, SEATS, SIZE};
use crate::seat;
use crate::table::SeatTable;

/// A holder that is stopped for this long loses the lock.
const STOPPED: Duration = Duration::from_millis(200);
/// Any holder loses it after this long: the work under it takes less than a millisecond.
const STUCK: Duration = Duration::from_secs(10);
/// How many records are read at once.
const PIECE: usize = 64;

/// How urgently a caller wants the lock. This decides its pauses between tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockTimeout {
    /// A process gives back something that others wait for.
    Soon,
    /// A process starts to wait, or checks the board. There may be a thousand of these. If all tried without longer
    /// pauses, the holder of the lock would get no CPU.
    Later,
}

impl LockTimeout {
    fn longest_pause(self) -> Duration {
        Duration::from_millis(match self {
            Self::Soon => 4,
            Self::Later => 50,
        })
    }
}

/// The board, opened.
#[derive(Debug)]
pub struct BoardFile {
    folder: Folder,
    board: File,
    /// Only one thread of this process at a time: for the kernel all threads are one holder.
    lock: Mutex<File>,
}

impl BoardFile {
    /// Opens the board of `folder`, making what is missing.
    ///
    /// # Errors
    /// A file cannot be opened.
    pub fn open(folder: &Folder) -> io::Result<Self> {
        Ok(Self {
            board: open(&folder.board())?,
            lock: Mutex::new(open(&folder.lock())?),
            folder: folder.clone(),
        })
    }

    /// Whether the board was removed from its folder. Its users go on with it; a
    /// new process makes a new one.
    pub fn is_removed(&self) -> bool {
        is_removed(&self.board)
    }

    /// Reads the table, lets `change` change it and writes what is different, all under the lock.
    /// `change` runs again if the lock was taken from us meanwhile.
    ///
    /// # Errors
    /// The board cannot be locked, read or written.
    pub fn with<T>(
        &self,
        timeout: LockTimeout,
        mut change: impl FnMut(&mut SeatTable) -> T,
    ) -> io::Result<T> {
        loop {
            let held = BoardLock::take(self, timeout)?;
            let mut table = self.read()?;
            let result = change(&mut table);
            // Stopped for so long that another process replaced the lock: the table that was read is old.
            if held.is_lost() {
                continue;
            }
            for (seat, bytes) in table.changes() {
                self.board.write_all_at(&bytes, offset(seat))?;
            }
            if let Some(bytes) = table.header_change() {
                self.board.write_all_at(&bytes, 0)?;
            }
            return Ok(result);
        }
    }

    /// Reads pieces that fit on the stack: the page faults of a new buffer for a full board would cost more than the
    /// reading.
    fn read(&self) -> io::Result<SeatTable> {
        let mut bytes = [0; SIZE * PIECE];
        let got = read_at_most(&self.board, &mut bytes, 0)?;
        let (head, seats) = bytes[..got].split_at(got.min(SIZE));
        let header = <&[u8; SIZE]>::try_from(head).ok().and_then(Header::decode);
        // Without a header, what is in the seats counts.
        let used = header.map_or(SEATS, |header| header.used as usize);
        let mut table = SeatTable::new(header, used.min(PIECE));
        table.read_seats(&seats[..seats.len().min(used * SIZE)]);
        let mut at = PIECE - 1;
        while at < used {
            let wanted = (used - at).min(PIECE) * SIZE;
            let got = read_at_most(&self.board, &mut bytes[..wanted], offset(at))?;
            table.read_seats(&bytes[..got]);
            if got < wanted {
                break;
            }
            at += PIECE;
        }
        Ok(table)
    }

    /// The whole table without the lock, for readers. A record that is just being
    /// written is left out.
    ///
    /// # Errors
    /// The board cannot be read.
    pub fn peek(&self) -> io::Result<SeatTable> {
        self.read()
    }

    /// One seat without the lock; a free one while it is being written.
    ///
    /// # Errors
    /// The board cannot be read.
    pub fn peek_seat(&self, seat: usize) -> io::Result<Record> {
        let mut bytes = [0; SIZE];
        read_at_most(&self.board, &mut bytes, offset(seat))?;
        Ok(Record::decode(&bytes, seat))
    }

    /// The header without the lock, if it can be read.
    ///
    /// # Errors
    /// The board cannot be read.
    pub fn peek_header(&self) -> io::Result<Option<Header>> {
        let mut bytes = [0; SIZE];
        read_at_most(&self.board, &mut bytes, 0)?;
        Ok(Header::decode(&bytes))
    }
}

fn offset(seat: usize) -> u64 {
    (seat as u64 + 1) * SIZE as u64
}

fn open(path: &std::path::Path) -> io::Result<File> {
    let file = seat::open_file(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other(format!(
            "{} is not a file",
            path.display()
        )));
    }
    Ok(file)
}

fn read_at_most(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// The lock, held.
struct BoardLock<'a> {
    file: MutexGuard<'a, File>,
    of: &'a BoardFile,
}

impl<'a> BoardLock<'a> {
    /// Does not use a blocking flock: if the holder is stopped, it would block every build of the user, and nothing
    /// could end that wait.
    fn take(of: &'a BoardFile, timeout: LockTimeout) -> io::Result<Self> {
        let began = Instant::now();
        let mut look = STOPPED;
        // The pauses differ between processes.
        let mut pause = Duration::from_micros(20 + u64::from(std::process::id() % 32));
        loop {
            // It is not kept during the pause: another thread may need it more urgently.
            let mut file = of.lock.lock().unwrap_or_else(PoisonError::into_inner);
            match flock(&*file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    let mut held = Self { file, of };
                    if held.is_lost() {
                        // Closing the old one unlocks it.
                        *held.file = open(&of.folder.lock())?;
                        continue;
                    }
                    // This is for a process that finds the lock held for long. Nothing depends on it.
                    let _ = held.file.write_all_at(&std::process::id().to_le_bytes(), 0);
                    return Ok(held);
                }
                Err(Errno::WOULDBLOCK) => {
                    let waited = began.elapsed();
                    if waited > look {
                        look = waited + STOPPED;
                        if waited > STUCK || holder_is_stopped(&file) {
                            replace(&of.folder, &file)?;
                            *file = open(&of.folder.lock())?;
                            continue;
                        }
                    }
                    drop(file);
                    thread::sleep(pause);
                    pause = (pause * 2).min(timeout.longest_pause());
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether the lock was replaced. Where the board is gone with it, all processes that know this
    /// board also know this lock.
    fn is_lost(&self) -> bool {
        is_removed(&self.file) && !self.of.is_removed()
    }
}

impl Drop for BoardLock<'_> {
    fn drop(&mut self) {
        // Unlocked even where a child that is just being started has a copy.
        let _ = flock(&*self.file, FlockOperation::Unlock);
    }
}

fn is_removed(file: &File) -> bool {
    file.metadata().map_or(true, |m| m.nlink() == 0)
}

fn holder_is_stopped(lock: &File) -> bool {
    let mut pid = [0; 4];
    lock.read_exact_at(&mut pid, 0).is_ok()
        && proc::stat(u32::from_le_bytes(pid)).is_some_and(|stat| stat.is_stopped())
}

/// Removes the lock's file, if it still is the one that we know.
fn replace(folder: &Folder, known: &File) -> io::Result<()> {
    let path = folder.lock();
    let same = std::fs::symlink_metadata(&path)
        .is_ok_and(|there| known.metadata().is_ok_and(|m| m.ino() == there.ino()));
    if same {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
