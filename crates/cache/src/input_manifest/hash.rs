//! Hashes many files, each once, and makes sure that none changed meanwhile.

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::large_file::{hash_in_threads, is_large};
use super::signature::{Base, Signature};
use super::time_comparison::TimeComparison;
use super::trust::Trust;
use crate::guards;

/// Below this many files, starting threads costs more than it saves.
const FILES_PER_THREAD: usize = 64;
const MOST_THREADS: usize = 4;
/// Larger files are hashed piece by piece, unless their text is inspected. A piece stays in the processor's cache.
const PIECE: usize = 128 << 10;
/// A smaller program is hashed sooner than its note is read.
const SMALL_PROGRAM: usize = 256 << 10;

/// A file's signature and the BLAKE3 of its content, which belong together.
pub(super) struct Hashed {
    pub signature: Signature,
    pub content: [u8; 32],
    /// The signature to store: it stays equal only while the content does. `None` if there is no such signature.
    pub remembered: Option<Signature>,
    /// Whether the last name of the path was no link.
    pub is_plain: bool,
    /// Whether the text tells a compiler to compare files' times.
    pub compares_times: bool,
}

/// Buffers that are used again for the next file.
#[derive(Default)]
struct Workspace {
    buffer: Vec<u8>,
    trust: Trust,
    reading: Reading,
}

/// How many threads read a large file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The calling thread.
    #[default]
    OneThread,
    /// Several, for one that waits for the result.
    Threads,
}

pub(super) enum HashFault {
    /// The file changed while it was read.
    Changed,
    /// The path exists but is no regular file.
    NotAFile,
    Unreadable(Errno),
}

/// Stores the hashes of programs and libraries by their signatures: the 250 MB of a toolkit are hashed once, not after every
/// run.
pub trait ContentHashes: Sync {
    /// The BLAKE3 of the file with this signature, if it is stored.
    fn recall(&self, signature: &Signature) -> Option<[u8; 32]>;
    /// Stores the BLAKE3 of a file whose content cannot change without a new signature.
    fn remember(&self, signature: &Signature, content: &[u8; 32]);
    /// The note about the files of a place; empty if there is none.
    fn recall_place(&self, place: &[u8]) -> Vec<u8>;
    /// Stores the note about the files of a place.
    fn remember_place(&self, place: &[u8], files: &[u8]);
}

/// Gets each file's text while it is in memory.
pub type Inspect<'a> = &'a mut (dyn FnMut(&Path, &[u8]) + Send);

/// Hashes every path; the results are in the order of the paths.
pub(super) fn hash_each(
    base: &Base,
    paths: &[&CStr],
    inspect: Option<Inspect<'_>>,
    contents: Option<&dyn ContentHashes>,
) -> Vec<Result<Hashed, HashFault>> {
    let threads = match paths.len() {
        0..FILES_PER_THREAD => 1,
        count => std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(count / FILES_PER_THREAD + 1)
            .min(MOST_THREADS),
    };
    let inspect = inspect.map(Mutex::new);
    let inspect = inspect.as_ref();
    if threads == 1 {
        let mut space = Workspace::default();
        return paths
            .iter()
            .map(|path| hash(base, path, &mut space, inspect, contents))
            .collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut space = Workspace::default();
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(index) else {
                return done;
            };
            done.push((index, hash(base, path, &mut space, inspect, contents)));
        }
    };
    let mut all: Vec<(usize, _)> = std::thread::scope(|scope| {
        let started: Vec<_> = (1..threads)
            // If a thread cannot be started, fewer share the work.
            .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut all = work();
        for thread in started {
            match thread.join() {
                Ok(done) => all.extend(done),
                // Only the caller's inspection can panic, and the panic is passed on to the caller.
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_unstable_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, result)| result).collect()
}

/// The BLAKE3 of a large file that the process waits for: several threads read it.
///
/// # Errors
/// The file cannot be read, or changes meanwhile.
pub fn library_content(path: &Path) -> io::Result<[u8; 32]> {
    content_of(path, None, Reading::Threads)
}

/// The BLAKE3 of one file's content.
pub(crate) fn content_of(
    path: &Path,
    contents: Option<&dyn ContentHashes>,
    reading: Reading,
) -> io::Result<[u8; 32]> {
    let text = CString::new(path.as_os_str().as_bytes())?;
    let space = &mut Workspace {
        reading,
        ..Workspace::default()
    };
    let hashed = hash(&Base::Current, &text, space, None, contents);
    hashed
        .map(|hashed| hashed.content)
        .map_err(|fault| match fault {
            HashFault::Unreadable(error) => error.into(),
            HashFault::Changed => io::Error::other("it changed while it was read"),
            HashFault::NotAFile => io::Error::other("not a regular file"),
        })
}

fn hash(
    base: &Base,
    path: &CStr,
    space: &mut Workspace,
    inspect: Option<&Mutex<Inspect<'_>>>,
    contents: Option<&dyn ContentHashes>,
) -> Result<Hashed, HashFault> {
    // Without NONBLOCK, opening a pipe without a writer would hang.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = base.open_at(path, flags).map_err(HashFault::Unreadable)?;
    let began = SystemTime::now();
    let before = Signature::of_open(&file).map_err(HashFault::Unreadable)?;
    if !before.is_file() {
        return Err(HashFault::NotAFile);
    }
    let size = usize::try_from(before.size).map_err(|_| HashFault::Changed)?;
    let remembered = space.trust.of_file(&before, &file);
    // This is for programs only, whose text need not be inspected.
    let contents = contents.filter(|_| size > SMALL_PROGRAM && is_program(&file));
    let known = contents.zip(remembered);
    if let Some(content) = known.and_then(|(contents, named)| contents.recall(&named)) {
        return Ok(Hashed {
            signature: before,
            content,
            remembered,
            is_plain: false,
            compares_times: false,
        });
    }
    let buffer = &mut space.buffer;
    let inspect = inspect.filter(|_| contents.is_none());
    let mut times = TimeComparison::new();
    let content = match inspect {
        None if space.reading == Reading::Threads && is_large(size) => {
            hash_in_threads(&file, size)?
        }
        None if size > PIECE => {
            // Nobody compares times because of a program's text.
            let times = (!is_program(&file)).then_some(&mut times);
            hash_in_pieces(&file, size, buffer, times)?
        }
        _ => {
            let text = read_exactly(&file, size, buffer)?;
            if let Some(inspect) = inspect {
                let mut inspect = inspect.lock().unwrap_or_else(|poison| poison.into_inner());
                inspect(super::as_path(path), text);
            }
            times.is_found = times.is_in(text);
            blake3::hash(text)
        }
    };
    // The kernel's own files (procfs, sysfs) have another length than they report.
    if !ends_here(&file)? && !guards::is_off("files-without-end") {
        return Err(HashFault::NotAFile);
    }
    let after = Signature::of_open(&file).map_err(HashFault::Unreadable)?;
    if before != after {
        return Err(HashFault::Changed);
    }
    let content = content.into();
    // The file must have been old before it was read: hashing takes longer than the tick in which a second change gets no
    // new time.
    let settled = known.filter(|(_, named)| named.was_settled_at(began));
    if let Some((contents, named)) = settled {
        contents.remember(&named, &content);
    }
    Ok(Hashed {
        signature: before,
        content,
        remembered,
        is_plain: false,
        compares_times: times.is_found && !is_program(&file),
    })
}

/// Whether the file ends where reading stopped.
fn ends_here(file: &OwnedFd) -> Result<bool, HashFault> {
    loop {
        match rustix::io::read(file, &mut [0; 1]) {
            Ok(read) => return Ok(read == 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(HashFault::Unreadable(error)),
        }
    }
}

/// Whether the file is an ELF program or library.
fn is_program(file: &OwnedFd) -> bool {
    let mut magic = [0; 4];
    matches!(rustix::io::pread(file, &mut magic, 0), Ok(4)) && magic == *b"\x7fELF"
}

fn hash_in_pieces(
    file: &OwnedFd,
    size: usize,
    buffer: &mut Vec<u8>,
    mut times: Option<&mut TimeComparison>,
) -> Result<blake3::Hash, HashFault> {
    let mut hasher = blake3::Hasher::new();
    let mut rest = size;
    while rest > 0 {
        let piece = read_exactly(file, rest.min(PIECE), buffer)?;
        hasher.update(piece);
        if let Some(times) = &mut times {
            times.search(piece);
        }
        rest -= piece.len();
    }
    Ok(hasher.finalize())
}

/// Reads the next `count` bytes. If there are fewer, the file shrank; if there are more, the second signature differs.
fn read_exactly<'a>(
    file: &OwnedFd,
    count: usize,
    buffer: &'a mut Vec<u8>,
) -> Result<&'a [u8], HashFault> {
    if buffer.len() < count {
        buffer
            .try_reserve(count - buffer.len())
            .map_err(|_| HashFault::Unreadable(Errno::NOMEM))?;
        buffer.resize(count, 0);
    }
    let mut filled = 0;
    while filled < count {
        match rustix::io::read(file, &mut buffer[filled..count]) {
            Ok(0) => return Err(HashFault::Changed),
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(HashFault::Unreadable(error)),
        }
    }
    Ok(&buffer[..count])
}
