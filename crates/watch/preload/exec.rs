//! Hooks of the functions that start or end programs.
//!
//! A call that succeeds never returns, so the program that it starts is logged before the call.

use core::ffi::{CStr, c_int, c_void};

use crate::hold;
use crate::identity::Identity;
use crate::state::{self, LONGEST};
use crate::sys::{self, ConstAny, Path, text};
use crate::{Real, hook, libraries, lifetime};

static EXECVE: Real = Real::new();
static EXECV: Real = Real::new();
static EXECVP: Real = Real::new();
static EXIT: Real = Real::new();

/// Finds in advance the functions that a fork child of a threaded program calls: in such a child the loader's lock may be
/// held for ever.
pub(crate) fn resolve_early() {
    EXECVE.get("execve\0");
    EXECV.get("execv\0");
    EXECVP.get("execvp\0");
    EXIT.get("_exit\0");
}

/// Logs whether the program is there.
fn candidate(path: &CStr) -> bool {
    match sys::executable(path) {
        0 => {
            let identity = Identity::of_path(path);
            if identity.is_file() {
                state::file(b'R', &identity, path.to_bytes());
            } else {
                // A folder.
                state::path(b'S', path.to_bytes());
            }
            identity.is_file()
        }
        sys::ENOENT | sys::ENOTDIR => {
            state::path(b'M', path.to_bytes());
            false
        }
        sys::EACCES => {
            state::uses(b'y', path.to_bytes());
            false
        }
        _ => {
            state::path(b'S', path.to_bytes());
            false
        }
    }
}

/// Logs the search for a program as `execvp` makes it, because that search does not call our hooks. Returns the length of
/// the found path in `full`, or of the name itself if none was found, and whether one was found.
///
/// # Safety
/// `name` is null or NUL-terminated.
unsafe fn search(name: Path, full: &mut [u8; LONGEST]) -> (usize, bool) {
    // SAFETY: as the caller promises.
    let Some(file) = (unsafe { text(name) }) else {
        return (0, false);
    };
    let plain = file.len().min(full.len() - 1);
    let mut found = false;
    if file.contains(&b'/') {
        // SAFETY: as above.
        found = candidate(unsafe { CStr::from_ptr(name) });
    } else {
        // These are the folders that glibc uses without a PATH.
        let path = sys::variable(b"PATH").map_or(&b"/bin:/usr/bin"[..], CStr::to_bytes);
        for directory in path.split(|byte| *byte == b':') {
            let mut end = directory.len();
            if end + file.len() + 2 > full.len() {
                state::path(b'U', b"a PATH entry too long to log");
                continue;
            }
            full.fill(0);
            full[..end].copy_from_slice(directory);
            if end > 0 {
                full[end] = b'/';
                end += 1;
            }
            full[end..end + file.len()].copy_from_slice(file);
            if CStr::from_bytes_until_nul(&full[..]).is_ok_and(candidate) {
                return (end + file.len(), true);
            }
        }
    }
    full[..plain].copy_from_slice(&file[..plain]);
    (plain, found)
}

/// Logs that a program which is there could not be started: its interpreter is missing or refused, or something else is in the
/// way. A file that is no program is known by its content.
fn not_started(found: bool, error: c_int) {
    if found && error != sys::ENOEXEC {
        state::path(b'U', b"a program could not be started");
    }
}

/// Logs that this process becomes `path`, calls the real function, and takes the record back if it failed.
///
/// # Safety
/// `path` is null or NUL-terminated. `environment` is a list of such strings that ends in null, or is null.
unsafe fn become_program(path: Path, environment: ConstAny, real: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: as the caller promises; errno is this thread's.
    unsafe {
        hold::before_program(path, environment.cast());
        let pid = sys::pid();
        let mut full = [0; LONGEST];
        let (length, found) = search(path, &mut full);
        state::process(b'P', pid, &full[..length]);
        lifetime::leaving();
        let result = real();
        let errno = *sys::__errno_location();
        state::process(b'Q', pid, &[]);
        not_started(found, errno);
        *sys::__errno_location() = errno;
        result
    }
}

fn missing() -> c_int {
    // SAFETY: errno is this thread's.
    unsafe { *sys::__errno_location() = sys::ENOSYS };
    -1
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execve(path: Path, arguments: ConstAny, environment: ConstAny) -> c_int {
    let Some(real) = EXECVE.get("execve\0") else {
        return missing();
    };
    // SAFETY: the caller's arguments, passed on to the function it meant.
    unsafe {
        let real: unsafe extern "C" fn(Path, ConstAny, ConstAny) -> c_int = core::mem::transmute(real);
        become_program(path, environment, || real(path, arguments, environment))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execv(path: Path, arguments: ConstAny) -> c_int {
    let Some(real) = EXECV.get("execv\0") else {
        return missing();
    };
    // SAFETY: as above.
    unsafe {
        let real: unsafe extern "C" fn(Path, ConstAny) -> c_int = core::mem::transmute(real);
        become_program(path, sys::variables(), || real(path, arguments))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execvp(path: Path, arguments: ConstAny) -> c_int {
    let Some(real) = EXECVP.get("execvp\0") else {
        return missing();
    };
    // SAFETY: as above.
    unsafe {
        let real: unsafe extern "C" fn(Path, ConstAny) -> c_int = core::mem::transmute(real);
        become_program(path, sys::variables(), || real(path, arguments))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execvpe(path: Path, arguments: ConstAny, environment: ConstAny) -> c_int {
    static REAL: Real = Real::new();
    let Some(real) = REAL.get("execvpe\0") else {
        return missing();
    };
    // SAFETY: as above.
    unsafe {
        let real: unsafe extern "C" fn(Path, ConstAny, ConstAny) -> c_int = core::mem::transmute(real);
        become_program(path, environment, || real(path, arguments, environment))
    }
}

type Spawn = unsafe extern "C" fn(*mut c_int, Path, ConstAny, ConstAny, ConstAny, ConstAny) -> c_int;

/// Logs the search for a program, spawns it and logs the child.
///
/// # Safety
/// The arguments are those of a `posix_spawn` call.
unsafe fn spawn(real: Spawn, child: *mut c_int, path: Path, rest: [ConstAny; 4]) -> c_int {
    let [actions, attributes, arguments, environment] = rest;
    // SAFETY: the caller's arguments, but for the child's number, which is wanted even if it is not.
    unsafe {
        hold::before_program(path, environment.cast());
        let mut full = [0; LONGEST];
        let (length, found) = search(path, &mut full);
        let mut own = 0;
        let number = if child.is_null() { &raw mut own } else { child };
        let result = real(number, path, actions, attributes, arguments, environment);
        let errno = *sys::__errno_location();
        match result {
            0 => state::process(b'N', *number as u32, &full[..length]),
            error => not_started(found, error),
        }
        *sys::__errno_location() = errno;
        result
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawn(
    child: *mut c_int,
    path: Path,
    actions: ConstAny,
    attributes: ConstAny,
    arguments: ConstAny,
    environment: ConstAny,
) -> c_int {
    static REAL: Real = Real::new();
    let Some(real) = REAL.get("posix_spawn\0") else {
        return sys::ENOSYS;
    };
    // SAFETY: as above.
    unsafe {
        spawn(
            core::mem::transmute::<*mut c_void, Spawn>(real),
            child,
            path,
            [actions, attributes, arguments, environment],
        )
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawnp(
    child: *mut c_int,
    path: Path,
    actions: ConstAny,
    attributes: ConstAny,
    arguments: ConstAny,
    environment: ConstAny,
) -> c_int {
    static REAL: Real = Real::new();
    let Some(real) = REAL.get("posix_spawnp\0") else {
        return sys::ENOSYS;
    };
    // SAFETY: as above.
    unsafe {
        spawn(
            core::mem::transmute::<*mut c_void, Spawn>(real),
            child,
            path,
            [actions, attributes, arguments, environment],
        )
    }
}

/// The shell of `system` and `popen`, which start it themselves.
const SHELL: &CStr = c"/bin/sh";

/// Logs that the C library starts a shell.
fn shell() {
    if candidate(SHELL) {
        state::path_each(b'A', SHELL.to_bytes());
    }
}

hook! {
    fn popen(command: Path, mode: Path) -> *mut c_void, core::ptr::null_mut(),
        before { hold::before_program(SHELL.as_ptr(), sys::variables().cast()) }, |r, e| if e == 0 { shell() };
    fn system(command: Path) -> c_int, -1,
        before { hold::before_program(SHELL.as_ptr(), sys::variables().cast()) }, |r, e| if e == 0 && !command.is_null() { shell() };
}

/// Logs the libraries first: one that is unloaded here would be missing at the end.
#[unsafe(no_mangle)]
unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    static REAL: Real = Real::new();
    let Some(real) = REAL.get("dlclose\0") else {
        return missing();
    };
    // SAFETY: as above. (`dlopen` itself cannot be replaced: it searches where its caller was linked to.)
    unsafe {
        let errno = *sys::__errno_location();
        libraries::log();
        *sys::__errno_location() = errno;
        let real: unsafe extern "C" fn(*mut c_void) -> c_int = core::mem::transmute(real);
        real(handle)
    }
}

/// Ends the process without destructors, ours included.
unsafe fn exit_now(status: c_int) -> ! {
    lifetime::leaving();
    if let Some(real) = EXIT.get("_exit\0") {
        // SAFETY: the caller's argument, passed on to the function it meant.
        unsafe {
            let real: unsafe extern "C" fn(c_int) -> ! = core::mem::transmute(real);
            real(status)
        }
    }
    loop {
        // SAFETY: as above, without the C library.
        unsafe { sys::syscall(sys::SYS_EXIT_GROUP, status) };
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _exit(status: c_int) -> ! {
    // SAFETY: passed on.
    unsafe { exit_now(status) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: passed on.
    unsafe { exit_now(status) }
}
