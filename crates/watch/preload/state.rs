//! The only state: the record buffer, the records already made, and the process that owns it.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use crate::sys::{self, Identity, Path};
use crate::{log_file, streams, symbols};

const BUFFER: usize = 64 * 1024;
const HEADER: usize = 7;
/// Longest payload: a record stays within one page.
pub(crate) const LONGEST: usize = 4080;
const REMEMBERED: usize = 4096;
/// The variable with the folder of the call's own files.
const HOLD: &[u8] = b"WARPCC_WATCH_HOLD";

struct State {
    mode: Mode,
    owner: u32,
    count: u32,
    used: usize,
    /// Whether `E` was written: from then on nothing may wait in the buffer.
    ended: bool,
    /// Hashes of the records already made, by their low bits. If one replaces another, the other record is only logged
    /// again.
    seen: [u64; REMEMBERED],
    buffer: [u8; BUFFER],
    log: [u8; 4096],
    /// The folders of the call's own files, in lines, without a slash at the end. It is empty where other files may be changed.
    own: [u8; LONGEST],
    own_length: usize,
    /// This library's path in `LD_PRELOAD`, if there is a folder of the call's own files.
    library: [u8; LONGEST],
    library_length: usize,
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
        own: [0; LONGEST],
        own_length: 0,
        library: [0; LONGEST],
        library_length: 0,
    }),
};

/// Set if the lock could not be taken. The record is then lost, and the count in `E` shows that.
static LOST: AtomicBool = AtomicBool::new(false);

/// Runs `body` with the state. Gives up after a while: this same thread may hold the lock, interrupted by a signal, or a
/// thread that a fork left behind.
fn with(body: impl FnOnce(&mut State)) {
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
        let executable = sys::readlink(itself, &mut text[..LONGEST / 2]).len();
        // This leaves the NUL after the executable in place.
        let cwd = sys::cwd(&mut text[executable + 1..]).len();
        self.hold(&text[..executable]);
        self.put(b'X', &head, &text[..executable + 1 + cwd]);
        // This is written at once: a process that is killed before it ends must be in the log.
        self.flush();
    }

    /// Reads which files this program may change: `<program>:...:<folders>` means that it may change those below the folders,
    /// which are in lines, unless it is one of the programs.
    fn hold(&mut self, executable: &[u8]) {
        let Some(value) = sys::variable(HOLD) else {
            return;
        };
        let itself = executable.rsplit(|byte| *byte == b'/').next();
        let mut rest = value.to_bytes();
        while rest.first().is_some_and(|byte| *byte != b'/') {
            let Some(end) = rest.iter().position(|byte| *byte == b':') else {
                return;
            };
            if itself == Some(&rest[..end]) {
                return;
            }
            rest = &rest[end + 1..];
        }
        if rest.len() <= self.own.len() {
            self.own[..rest.len()].copy_from_slice(rest);
            self.own_length = rest.len();
        }
        // The user's libraries come first.
        let libraries = sys::variable(b"LD_PRELOAD").map_or(&b""[..], CStr::to_bytes);
        let library = libraries.rsplit(|byte| *byte == b':').next().unwrap_or_default();
        if library.len() <= self.library.len() {
            self.library[..library.len()].copy_from_slice(library);
            self.library_length = library.len();
        }
    }

    /// What follows the name of a folder of the call's own files; empty for the folder itself.
    fn rest<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        let folders = self.own[..self.own_length].split(|byte| *byte == b'\n');
        let mut rests = folders.filter_map(|folder| path.strip_prefix(folder));
        rests.find(|rest| matches!(rest.first(), None | Some(b'/')))
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

    /// Logs the number of records, and writes all that are left.
    fn end(&mut self) {
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

/// Whether this program may change only the call's own files.
pub(crate) fn holds() -> bool {
    let mut holds = false;
    with(|state| holds = state.own_length > 0);
    holds
}

/// Whether a real path is below the folder of the call's own files.
pub(crate) fn is_own(path: &[u8]) -> bool {
    let mut is_own = false;
    with(|state| is_own = state.rest(path).is_some_and(|rest| rest.first() == Some(&b'/')));
    is_own
}

/// Whether a real path is that folder, or below it.
pub(crate) fn is_own_folder(path: &[u8]) -> bool {
    let mut is_own = false;
    with(|state| {
        let rest = state.rest(path);
        is_own = rest.is_some();
    });
    is_own
}

/// Whether a program with these variables loads this library, and knows what it may change.
///
/// # Safety
/// `environment` is a list of NUL-terminated strings that ends in null, or is null.
pub(crate) unsafe fn is_handed_on(environment: *const Path) -> bool {
    let mut found = [false; 3];
    let mut entry = environment;
    // SAFETY: as the caller promises.
    while let Some(variable) = (!entry.is_null()).then(|| unsafe { text(*entry) }).flatten() {
        if let Some(value) = variable.strip_prefix(b"LD_PRELOAD=") {
            with(|state| {
                let library = &state.library[..state.library_length];
                found[0] |= value.windows(library.len().max(1)).any(|part| part == library);
            });
        }
        found[1] |= variable.starts_with(b"WARPCC_WATCH_LOG=/");
        found[2] |= variable.starts_with(HOLD) && variable.get(HOLD.len()) == Some(&b'=');
        // SAFETY: this was not the end.
        entry = unsafe { entry.add(1) };
    }
    found == [true; 3]
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
        if sys::pid() == state.owner {
            let cwd = sys::cwd(&mut text);
            state.put(b'C', &[], cwd);
        } else {
            // In a vfork child the record would move the parent, which has not moved.
            state.put(b'U', &[], b"a vfork child changed its working directory");
        }
    });
}

/// Logs that the process is about to become another program, or to end without its destructors.
///
/// In a vfork child nothing is done: the buffer belongs to the parent and outlives the child.
pub(crate) fn leaving() {
    let mut own = false;
    with(|state| own = sys::pid() == state.owner);
    if own {
        streams::ending();
        libraries();
        with(State::end);
    }
}

/// The destructor: like `leaving`, and later records are written at once.
pub(crate) fn finished() {
    // SAFETY: errno is this thread's.
    let errno = unsafe { *sys::__errno_location() };
    leaving();
    with(|state| state.ended = true);
    // SAFETY: as above.
    unsafe { *sys::__errno_location() = errno };
}

/// Whether an argument has clang's `-working-directory` in it. No other sign of this option is seen.
///
/// # Safety
/// `arguments` are `count` strings that end in NUL, or a null pointer.
pub(crate) unsafe fn names_folder(count: c_int, arguments: *const *const c_char) -> bool {
    const OPTION: &[u8] = b"-working-directory";
    let count = usize::try_from(count).unwrap_or_default();
    (0..count).any(|number| {
        // SAFETY: as the caller promises.
        let argument = unsafe { *arguments.add(number) };
        // SAFETY: a string that ends in NUL.
        let text = |argument| unsafe { CStr::from_ptr(argument) }.to_bytes();
        !argument.is_null() && text(argument).windows(OPTION.len()).any(|part| part == OPTION)
    })
}

/// The constructor.
pub(crate) fn started() {
    // This is called without our lock, like `libraries`.
    if symbols::main_program_has_environ() {
        path(b'J', b"");
    }
    libraries();
    // SAFETY: __register_atfork has this signature since glibc 2.3.2; a null handle never unregisters,
    // and a preloaded library is never unloaded.
    unsafe {
        let register = symbols::next("__register_atfork\0");
        if !register.is_null() {
            type Handler = Option<extern "C" fn()>;
            let register: unsafe extern "C" fn(Handler, Handler, Handler, *mut c_void) -> c_int =
                core::mem::transmute(register);
            register(None, None, Some(forked), core::ptr::null_mut());
        }
    }
}

/// In a fork child: drops the records, which the parent will write itself.
extern "C" fn forked() {
    // SAFETY: errno is this thread's.
    let errno = unsafe { *sys::__errno_location() };
    // This is the only thread, whichever thread held the lock.
    SHARED.locked.store(false, Ordering::Relaxed);
    with(|state| {
        state.owner = sys::pid();
        state.used = 0;
        state.count = 0;
        state.ended = false;
        let mut text = [0_u8; LONGEST];
        let cwd = sys::cwd(&mut text);
        state.put(b'F', &[], cwd);
        state.flush();
    });
    // SAFETY: as above.
    unsafe { *sys::__errno_location() = errno };
}

/// Logs every mapped library except this one: at the start, and again later for those that `dlopen` loaded.
///
/// It runs without our lock: the loader takes its own, and the thread that holds that one may wait for ours.
pub(crate) fn libraries() {
    extern "C" fn visit(object: *mut sys::LoadedObject, _: usize, _: *mut c_void) -> c_int {
        // SAFETY: the loader's description, valid for the call.
        let (object, name) = unsafe { (&*object, text((*object).name)) };
        // The main program's name is empty, and that of the kernel's object has no slash.
        if let Some(name) = name.filter(|name| name.contains(&b'/') && !ours(object)) {
            // SAFETY: the loader's names end in NUL.
            let identity = Identity::of_path(unsafe { CStr::from_ptr(object.name) });
            file(b'L', &identity, name);
        }
        0
    }
    // SAFETY: `visit` has the signature.
    unsafe { sys::dl_iterate_phdr(visit, core::ptr::null_mut()) };
}

/// Whether the object is this library.
pub(crate) fn ours(object: &sys::LoadedObject) -> bool {
    let here = ours as *const () as usize;
    // SAFETY: the loader's table of that many headers.
    let headers =
        unsafe { core::slice::from_raw_parts(object.headers, object.header_count.into()) };
    headers.iter().any(|header| {
        let start = object.address.wrapping_add(header.address as usize);
        header.kind == sys::PT_LOAD && here.wrapping_sub(start) < header.memory_size as usize
    })
}

/// The bytes of a C string, unless null.
///
/// `pointer` is null or NUL-terminated, and the text does not change meanwhile.
pub(crate) unsafe fn text<'t>(pointer: *const c_char) -> Option<&'t [u8]> {
    // SAFETY: as the caller promises.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_bytes())
}
