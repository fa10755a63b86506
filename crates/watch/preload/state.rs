//! The only state: the record buffer, the records already made, and the process that owns it.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::announce;
use crate::identity::Identity;
use crate::log_file;
use crate::own_files::OwnFiles;
use crate::sys::{self, AT_FDCWD};
use crate::unread;

const BUFFER: usize = 64 * 1024;
const HEADER: usize = 7;
/// Longest payload: a record stays within one page.
pub(crate) const LONGEST: usize = 4080;
const REMEMBERED: usize = 4096;

/// Everything that is remembered between two hooks.
pub(crate) struct State {
    mode: Mode,
    owner: u32,
    count: u32,
    used: usize,
    /// Whether `E` was written: from then on nothing may wait in the buffer.
    pub(crate) ended: bool,
    /// Hashes of the records already made, by their low bits. If one replaces another, the other record is only logged
    /// again.
    seen: [u64; REMEMBERED],
    buffer: [u8; BUFFER],
    log: [u8; 4096],
    pub(crate) own: OwnFiles,
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Unknown,
    Off,
    On,
}

struct Shared {
    locked: AtomicBool,
    state: UnsafeCell<State>,
}

// SAFETY: the state is only reached through `with`, which holds the lock.
unsafe impl Sync for Shared {}

static SHARED: Shared = Shared {
    locked: AtomicBool::new(false),
    state: UnsafeCell::new(State {
        mode: Mode::Unknown,
        owner: 0,
        count: 0,
        used: 0,
        ended: false,
        seen: [0; REMEMBERED],
        buffer: [0; BUFFER],
        log: [0; 4096],
        own: OwnFiles::NONE,
    }),
};

/// Set if the lock could not be taken. The record is then lost, and the count in `E` shows that.
static LOST: AtomicBool = AtomicBool::new(false);

/// Runs `body` with the state. Gives up after a while: this same thread may hold the lock, interrupted by a signal, or a
/// thread that a fork left behind.
pub(crate) fn with(body: impl FnOnce(&mut State)) {
    announce::if_due();
    let mut tries = 0_u32;
    while SHARED
        .locked
        .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        tries += 1;
        if tries > 50_000_000 {
            LOST.store(true, Ordering::Relaxed);
            return;
        }
        core::hint::spin_loop();
    }
    // SAFETY: the lock is held.
    let state = unsafe { &mut *SHARED.state.get() };
    if state.mode == Mode::Unknown {
        state.begin();
    }
    if state.mode == Mode::On {
        body(state);
    }
    SHARED.locked.store(false, Ordering::Release);
}

/// Frees the lock in a fork child, whichever thread of its parent held it.
pub(crate) fn unlock() {
    SHARED.locked.store(false, Ordering::Relaxed);
}

impl State {
    /// Reads the variable with the log's path and, if it is set, logs which program this is.
    fn begin(&mut self) {
        if !sys::has_environment() {
            return; // It is too early to know: the next call tries again.
        }
        self.mode = Mode::Off;
        let Some(path) = sys::variable(b"WARPCC_WATCH_LOG") else {
            return;
        };
        let path = path.to_bytes_with_nul();
        if path.first() != Some(&b'/') || path.len() > self.log.len() {
            return;
        }
        self.log[..path.len()].copy_from_slice(path);
        self.mode = Mode::On;
        self.owner = sys::pid();
        let itself = c"/proc/self/exe";
        let identity = Identity::of_path(itself);
        let mut head = [0_u8; 16];
        head[..8].copy_from_slice(&identity.device.to_le_bytes());
        head[8..].copy_from_slice(&identity.inode.to_le_bytes());
        let mut text = [0_u8; LONGEST - 16];
        let executable = sys::readlink(AT_FDCWD, itself, &mut text[..LONGEST / 2]).len();
        // This leaves the NUL after the executable in place.
        let cwd = sys::cwd(&mut text[executable + 1..]).len();
        self.own.read(&text[..executable]);
        unread::started(&text[..executable]);
        self.put(b'X', &head, &text[..executable + 1 + cwd]);
        // This is written at once: a process that is killed before it ends must be in the log.
        self.flush();
    }

    /// Adds a record whose payload is `head` and `body`.
    fn put(&mut self, kind: u8, head: &[u8], body: &[u8]) {
        let length = head.len() + body.len();
        if length > LONGEST {
            return self.put(b'U', &[], b"a path too long to log");
        }
        if self.used + HEADER + length + 1 > BUFFER {
            self.flush();
        }
        self.count += 1;
        let mut at = self.used;
        let mut push = |bytes: &[u8]| {
            self.buffer[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        push(&[kind]);
        push(&self.owner.to_le_bytes());
        push(&(length as u16).to_le_bytes());
        push(head);
        push(body);
        push(b"\n");
        self.used = at;
        if self.ended {
            self.flush();
        }
    }

    /// Writes the buffer to the log. If that fails the records are lost, and `E` counts more than the log has.
    fn flush(&mut self) {
        if self.used > 0 {
            log_file::append(self.log.as_ptr(), &self.buffer[..self.used]);
            self.used = 0;
        }
    }

    /// Whether this record was made before. If not, it is remembered.
    fn repeated(&mut self, kind: u8, head: &[u8], body: &[u8]) -> bool {
        // FNV-1a: it is short, and its low bits are spread well enough.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in core::iter::once(&kind).chain(head).chain(body) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let slot = &mut self.seen[hash as usize % REMEMBERED];
        core::mem::replace(slot, hash) == hash
    }

    fn once(&mut self, kind: u8, head: &[u8], body: &[u8]) {
        if !self.repeated(kind, head, body) {
            self.put(kind, head, body);
        }
    }

    /// Whether this process made the records. A vfork child has them only because it shares its parent's memory.
    pub(crate) fn is_owner(&self) -> bool {
        sys::pid() == self.owner
    }

    /// Begins again in a fork child, without the records of its parent.
    pub(crate) fn begin_again(&mut self) {
        self.owner = sys::pid();
        self.used = 0;
        self.count = 0;
        self.ended = false;
        let mut text = [0_u8; LONGEST];
        let cwd = sys::cwd(&mut text);
        self.put(b'F', &[], cwd);
        self.flush();
    }

    /// Logs the number of records, and writes all that are left.
    pub(crate) fn end(&mut self) {
        if LOST.load(Ordering::Relaxed) {
            self.put(b'U', &[], b"a record was lost to a lock");
        }
        let count = self.count.to_le_bytes();
        self.put(b'E', &[], &count);
        self.flush();
    }
}

/// Logs a path, or a variable's name, once.
pub(crate) fn path(kind: u8, path: &[u8]) {
    with(|state| state.once(kind, &[], path));
}

/// Logs how the program may use a path, as the kernel says at this moment: the errors of being there, being read, written and
/// executed, each a byte. They may change before somebody reads the log.
pub(crate) fn uses(kind: u8, path: &[u8]) {
    let mut text = [0_u8; LONGEST];
    let answers = match path.len() < text.len() {
        true => {
            text[..path.len()].copy_from_slice(path);
            CStr::from_bytes_until_nul(&text).map_or([0; 4], sys::uses)
        }
        false => [0; 4],
    };
    with(|state| state.once(kind, &answers, path));
}

/// Logs a path each time that it is passed.
pub(crate) fn path_each(kind: u8, path: &[u8]) {
    with(|state| state.put(kind, &[], path));
}

/// Logs a file with its identity when it was opened, once for each identity.
pub(crate) fn file(kind: u8, identity: &Identity, path: &[u8]) {
    with(|state| {
        state.once(kind, &identity.bytes(), path);
        // This is written at once: a file must be in the log even if the process is killed before it ends.
        if kind == b'W' {
            state.flush();
        }
    });
}

/// Logs that the program would change this file now, and ends it.
pub(crate) fn end_held(path: &[u8]) -> ! {
    with(|state| {
        state.put(b'h', &[], &path[..path.len().min(LONGEST)]);
        state.flush();
    });
    sys::end_group()
}

/// Logs where a path leads: `length(u16) path target`.
pub(crate) fn leads(kind: u8, path: &[u8], target: &[u8]) {
    with(|state| {
        let mut text = [0_u8; LONGEST];
        let (Ok(length), end) = (u16::try_from(path.len()), path.len() + target.len()) else {
            return state.put(b'U', &[], b"a path too long to log");
        };
        if end + 2 > LONGEST {
            return state.put(b'U', &[], b"a path too long to log");
        }
        text[..path.len()].copy_from_slice(path);
        text[path.len()..end].copy_from_slice(target);
        state.once(kind, &length.to_le_bytes(), &text[..end]);
    });
}

/// Logs a process about to start or started; `pid` is the one that runs the new program.
pub(crate) fn process(kind: u8, pid: u32, path: &[u8]) {
    with(|state| {
        let last = path.len().min(LONGEST - 4);
        state.put(kind, &pid.to_le_bytes(), &path[..last]);
    });
}

/// Logs the working directory after a change.
pub(crate) fn directory_changed() {
    with(|state| {
        let mut text = [0_u8; LONGEST];
        // Relative paths mean something else from now on.
        state.seen = [0; REMEMBERED];
        if state.is_owner() {
            let cwd = sys::cwd(&mut text);
            state.put(b'C', &[], cwd);
        } else {
            // In a vfork child the record would move the parent, which has not moved.
            state.put(b'U', &[], b"a vfork child changed its working directory");
        }
    });
}
