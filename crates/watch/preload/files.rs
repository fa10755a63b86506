//! Hooks of the functions that open, list and look at files.

use core::ffi::{CStr, c_int, c_uint};

use crate::announce;
use crate::folders;
use crate::hold;
use crate::hook;
use crate::identity::Identity;
use crate::input;
use crate::kernel_files;
use crate::made;
use crate::state::{self, LONGEST};
use crate::sys::{self, AT_FDCWD, EACCES, EBADF, EEXIST, EFAULT, EINTR, EINVAL, EISDIR, ENAMETOOLONG, ENOENT, ENOSYS, ENOTDIR, ENXIO, EPERM, ERANGE, EROFS, ETXTBSY, O_ACCMODE, O_CREAT, O_DIRECTORY, O_NOFOLLOW, O_PATH, O_RDWR, O_TMPFILE, O_TRUNC, Any, Path, text};
use crate::unread;

/// The descriptor for a call that opened no file, or none that counts.
pub(crate) const NO_FILE: c_int = -1;
/// The device number of `/dev/tty`.
const TERMINAL: u64 = 5 << 8;

/// Logs the result of a look at `path`: `kind` if the file exists, otherwise a kind that depends on the error. `file` is the
/// descriptor that an `open` returned.
///
/// # Safety
/// `path` is what the program gave to a C library function that returned `error`.
pub(crate) unsafe fn seen(directory: c_int, path: Path, kind: u8, error: c_int, file: c_int) {
    let kind = match error {
        0 => kind,
        // A file where a folder was wanted. SAFETY: the call did not fail with EFAULT.
        ENOTDIR if unsafe { hold::is_there(directory, path) } => b'S',
        ENOENT | ENOTDIR => b'M',
        error if is_refusal(error) => b'y',
        // The file exists, but not for this use.
        EISDIR | ETXTBSY | EEXIST | EINVAL | ERANGE => b'S',
        // The error says nothing about a file, or the program will repeat the call.
        EINTR | EBADF | EFAULT | ENAMETOOLONG | ENOSYS => return,
        // There is no terminal, which is known without a file. SAFETY: the call did not fail with EFAULT.
        ENXIO if unsafe { is_terminal(directory, path) } => return,
        _ => b'U',
    };
    let mut full = [0_u8; LONGEST];
    // SAFETY: the call did not fail with EFAULT, so the kernel could read it.
    let Some(name) = (unsafe { named(directory, path, &mut full) }) else {
        return;
    };
    match kind {
        b'R' | b'W' => {}
        b'y' => return state::uses(kind, name),
        _ => return state::path(kind, name),
    }
    let identity = if file < 0 {
        Identity::default()
    } else {
        Identity::of_open(file)
    };
    if kind == b'R' && file >= 0 {
        // SAFETY: as the caller promises.
        unsafe { input::opened(&identity, path, file) };
        if kernel_files::log(file, &identity, name) {
            return;
        }
    }
    // Writes to the program's own output are captured elsewhere.
    if !(kind == b'W' && file >= 0 && is_own_stream(&identity)) {
        state::file(kind, &identity, name);
    }
}

/// Whether an error says that this user may not, or that the file system is read-only.
pub(crate) fn is_refusal(error: c_int) -> bool {
    matches!(error, EACCES | EPERM | EROFS)
}

/// The name for the log, absolute if it is relative to an open directory; `None` if there is no name to log.
///
/// # Safety
/// `path` is null or NUL-terminated.
pub(crate) unsafe fn named<'b>(
    directory: c_int,
    path: Path,
    full: &'b mut [u8; LONGEST],
) -> Option<&'b [u8]> {
    // SAFETY: as the caller promises.
    match unsafe { text(path) }? {
        // With an empty name the *at functions look at the descriptor itself.
        [] => None,
        name if name[0] == b'/' || directory == AT_FDCWD => Some(name),
        name => {
            let found = below(directory, name, full);
            if found.is_none() {
                state::path(b'U', b"a path relative to a directory without a name");
            }
            found
        }
    }
}

/// Logs a look at a name itself, not at the file to which it may lead.
///
/// # Safety
/// As for [`seen`].
pub(crate) unsafe fn itself(directory: c_int, path: Path, error: c_int) {
    // SAFETY: passed on.
    unsafe {
        seen(directory, path, b'S', error, NO_FILE);
        if matches!(error, ENOENT | ENOTDIR) {
            seen(directory, path, b'O', 0, NO_FILE);
        }
    }
}

/// Logs that something has a name: whether it is a link, and where that leads.
///
/// # Safety
/// As for [`seen`].
pub(crate) unsafe fn itself_there(directory: c_int, path: Path) {
    let mut full = [0_u8; LONGEST];
    let mut text = [0_u8; LONGEST];
    // SAFETY: the call did not fail, so the kernel could read the path.
    unsafe {
        if let Some(name) = named(directory, path, &mut full) {
            let target = sys::readlink(directory, CStr::from_ptr(path), &mut text);
            state::leads(b'Y', name, target);
        }
    }
}

/// Flags of the `*at` functions: where the name leads, and the name itself.
const FOLLOW: c_int = 0;
pub(crate) const NOFOLLOW: c_int = 0x100;

/// Logs a `stat` of a name itself or of the file to which it leads, depending on the flags of the `*at` functions. The
/// result for a regular file, which `read` takes from `to`, is logged too.
///
/// # Safety
/// As for [`seen`]; if there is no error, `to` has the type that `read` expects.
unsafe fn looked(
    directory: c_int,
    path: Path,
    flags: c_int,
    error: c_int,
    to: Any,
    read: unsafe fn(Any) -> Identity,
) {
    // SAFETY: passed on.
    unsafe {
        let said = if error == 0 { read(to) } else { Identity::default() };
        let is_named = text(path).is_some_and(|name| !name.is_empty());
        if said.is_character_device() || said.is_link() || error == 0 && !is_named {
            input::looked(directory, path);
        }
        if error != 0 && flags & NOFOLLOW != 0 {
            return itself(directory, path, error);
        }
        if flags & NOFOLLOW != 0 {
            itself_there(directory, path);
        }
        let mut full = [0_u8; LONGEST];
        if !said.is_file() {
            seen(directory, path, b'S', error, NO_FILE);
        } else if let Some(name) = named(directory, path, &mut full) {
            state::file(b'I', &said, name);
        }
    }
}

/// Logs the names of an open folder, which are listed.
pub(crate) fn listed(directory: c_int) {
    let mut full = [0_u8; LONGEST];
    match below(directory, b".", &mut full) {
        Some(name) => state::path(b'D', &name[..name.len() - 2]),
        None => state::path(b'U', b"it lists a directory without a name"),
    }
}

/// Logs that a program asked for the working directory.
fn asked_where(error: c_int) {
    // If the buffer is too short, the program asks again.
    if error != ERANGE {
        state::path(b'H', b"");
    }
}

/// Whether the path is the terminal's. A terminal need not exist.
///
/// # Safety
/// `path` is null or NUL-terminated.
unsafe fn is_terminal(directory: c_int, path: Path) -> bool {
    // SAFETY: as the caller promises.
    directory == AT_FDCWD
        && !path.is_null()
        && Identity::of_path(unsafe { CStr::from_ptr(path) }).special == TERMINAL
}

/// Whether the program writes its messages to this pipe or terminal anyway, although it opened it by name.
pub(crate) fn is_own_stream(identity: &Identity) -> bool {
    let is = |stream: c_int| {
        let own = Identity::of_open(stream);
        (own.device, own.inode) == (identity.device, identity.inode)
    };
    !identity.is_file() && identity.mode != 0 && (is(1) || is(2))
}

/// A path relative to an open directory, made absolute; `None` where the directory has no name.
pub(crate) fn below<'b>(
    directory: c_int,
    name: &[u8],
    full: &'b mut [u8; LONGEST],
) -> Option<&'b [u8]> {
    let parent = sys::name_of_open(directory, full).len();
    let end = parent + 1 + name.len();
    if parent == 0 || full[0] != b'/' || end > full.len() {
        return None;
    }
    full[parent] = b'/';
    full[parent + 1..end].copy_from_slice(name);
    Some(&full[..end])
}

/// Logs an `open` that returned `file`.
///
/// # Safety
/// As for [`seen`].
pub(crate) unsafe fn opened(directory: c_int, path: Path, flags: c_int, error: c_int, file: c_int) {
    // SAFETY: passed on.
    unsafe {
        unread::opened(file);
        if error == 0 && flags & O_NOFOLLOW != 0 {
            itself_there(directory, path);
        }
        if error == 0 && flags & O_CREAT == 0 {
            folders::opened(directory, path, file);
        }
        if flags & O_TMPFILE != 0 {
            // A file without a name in that directory.
            seen(directory, path, b'S', error, NO_FILE);
        } else if flags & O_PATH != 0 {
            seen(directory, path, b'S', error, NO_FILE);
        } else if flags & O_DIRECTORY != 0 {
            seen(directory, path, b'D', error, NO_FILE);
        } else if flags & (O_ACCMODE | O_CREAT) == 0 {
            seen(directory, path, b'R', error, file);
        } else {
            if flags & O_ACCMODE == O_RDWR && flags & (O_TRUNC | O_CREAT) == 0 {
                seen(directory, path, b'R', error, file);
            }
            if flags & O_CREAT != 0 && is_refusal(error) {
                return made::refused(directory, path, error);
            }
            seen(directory, path, b'W', error, file);
            if flags & O_CREAT != 0 && error == ENOENT {
                made::not_made(directory, path);
            }
        }
    }
}

/// Logs an `fopen` that returned `stream`.
///
/// # Safety
/// As for [`seen`]; the same applies to `mode`, and `stream` is null or open.
pub(crate) unsafe fn streamed(path: Path, mode: Path, error: c_int, stream: Any) {
    // SAFETY: passed on.
    unsafe {
        let file = if stream.is_null() {
            NO_FILE
        } else {
            announce::opened(path, stream);
            sys::fileno(stream)
        };
        let mode = text(mode).unwrap_or_default();
        let flags = match mode.first() {
            Some(b'r') if mode.contains(&b'+') => O_RDWR,
            Some(b'r') => 0,
            _ => O_CREAT,
        };
        opened(AT_FDCWD, path, flags, error, file);
    }
}

/// Logs the directory a `glob` pattern lists.
///
/// # Safety
/// `pattern` is null or NUL-terminated.
unsafe fn globbed(pattern: Path) {
    // SAFETY: as the caller promises.
    let Some(pattern) = (unsafe { text(pattern) }) else {
        return;
    };
    let slash = pattern.iter().rposition(|byte| *byte == b'/');
    let directory = match slash {
        None => &b"."[..],
        Some(0) => b"/",
        Some(at) => &pattern[..at],
    };
    if directory.iter().any(|byte| b"*?[{~\\".contains(byte)) {
        state::path(b'U', b"a pattern with wildcards in its directories");
    } else {
        state::path(b'D', directory);
    }
}

const NONE: Any = core::ptr::null_mut();

// `open` takes its mode as a variable argument. A definition with three fixed arguments is sound on both architectures:
// variable integer arguments are passed in the same registers.
hook! {
    fn open(path: Path, flags: c_int, mode: c_uint) -> c_int, -1,
        before { hold::before_open(AT_FDCWD, path, flags) }, |r, e| opened(AT_FDCWD, path, flags, e, r);
    fn open64(path: Path, flags: c_int, mode: c_uint) -> c_int, -1,
        before { hold::before_open(AT_FDCWD, path, flags) }, |r, e| opened(AT_FDCWD, path, flags, e, r);
    fn __open_2(path: Path, flags: c_int) -> c_int, -1,
        before { hold::before_open(AT_FDCWD, path, flags) }, |r, e| opened(AT_FDCWD, path, flags, e, r);
    fn __open64_2(path: Path, flags: c_int) -> c_int, -1,
        before { hold::before_open(AT_FDCWD, path, flags) }, |r, e| opened(AT_FDCWD, path, flags, e, r);
    fn openat(at: c_int, path: Path, flags: c_int, mode: c_uint) -> c_int, -1,
        before { hold::before_open(at, path, flags) }, |r, e| opened(at, path, flags, e, r);
    fn openat64(at: c_int, path: Path, flags: c_int, mode: c_uint) -> c_int, -1,
        before { hold::before_open(at, path, flags) }, |r, e| opened(at, path, flags, e, r);
    fn __openat_2(at: c_int, path: Path, flags: c_int) -> c_int, -1,
        before { hold::before_open(at, path, flags) }, |r, e| opened(at, path, flags, e, r);
    fn __openat64_2(at: c_int, path: Path, flags: c_int) -> c_int, -1,
        before { hold::before_open(at, path, flags) }, |r, e| opened(at, path, flags, e, r);
    fn creat(path: Path, mode: c_uint) -> c_int, -1,
        before { hold::before_open(AT_FDCWD, path, O_CREAT) }, |r, e| opened(AT_FDCWD, path, O_CREAT, e, r);
    fn creat64(path: Path, mode: c_uint) -> c_int, -1,
        before { hold::before_open(AT_FDCWD, path, O_CREAT) }, |r, e| opened(AT_FDCWD, path, O_CREAT, e, r);
    fn fopen(path: Path, mode: Path) -> Any, NONE,
        before { hold::before_stream(path, mode) }, |r, e| streamed(path, mode, e, r);
    fn fopen64(path: Path, mode: Path) -> Any, NONE,
        before { hold::before_stream(path, mode) }, |r, e| streamed(path, mode, e, r);
    fn freopen(path: Path, mode: Path, stream: Any) -> Any, NONE,
        before { hold::before_stream(path, mode) }, |r, e| streamed(path, mode, e, r);
    fn freopen64(path: Path, mode: Path, stream: Any) -> Any, NONE,
        before { hold::before_stream(path, mode) }, |r, e| streamed(path, mode, e, r);
    fn opendir(path: Path) -> Any, NONE, |r, e| folders::listed_by_name(path, e, r);
    fn fdopendir(directory: c_int) -> Any, NONE, |r, e| if e == 0 { listed(directory) };
    fn getdents64(directory: c_int, to: Any, size: usize) -> isize, -1, |r, e| if e == 0 { listed(directory) };

    fn stat(path: Path, to: Any) -> c_int, -1, |r, e| looked(AT_FDCWD, path, FOLLOW, e, to, Identity::of_stat);
    fn stat64(path: Path, to: Any) -> c_int, -1, |r, e| looked(AT_FDCWD, path, FOLLOW, e, to, Identity::of_stat);
    fn lstat(path: Path, to: Any) -> c_int, -1, |r, e| looked(AT_FDCWD, path, NOFOLLOW, e, to, Identity::of_stat);
    fn lstat64(path: Path, to: Any) -> c_int, -1, |r, e| looked(AT_FDCWD, path, NOFOLLOW, e, to, Identity::of_stat);
    fn fstatat(at: c_int, path: Path, to: Any, flags: c_int) -> c_int, -1,
        |r, e| looked(at, path, flags, e, to, Identity::of_stat);
    fn fstatat64(at: c_int, path: Path, to: Any, flags: c_int) -> c_int, -1,
        |r, e| looked(at, path, flags, e, to, Identity::of_stat);
    fn __xstat(v: c_int, path: Path, to: Any) -> c_int, -1,
        |r, e| looked(AT_FDCWD, path, FOLLOW, e, to, Identity::of_stat);
    fn __xstat64(v: c_int, path: Path, to: Any) -> c_int, -1,
        |r, e| looked(AT_FDCWD, path, FOLLOW, e, to, Identity::of_stat);
    fn __lxstat(v: c_int, path: Path, to: Any) -> c_int, -1,
        |r, e| looked(AT_FDCWD, path, NOFOLLOW, e, to, Identity::of_stat);
    fn __lxstat64(v: c_int, path: Path, to: Any) -> c_int, -1,
        |r, e| looked(AT_FDCWD, path, NOFOLLOW, e, to, Identity::of_stat);
    fn __fxstatat(v: c_int, at: c_int, path: Path, to: Any, f: c_int) -> c_int, -1,
        |r, e| looked(at, path, f, e, to, Identity::of_stat);
    fn __fxstatat64(v: c_int, at: c_int, path: Path, to: Any, f: c_int) -> c_int, -1,
        |r, e| looked(at, path, f, e, to, Identity::of_stat);
    fn statx(at: c_int, path: Path, flags: c_int, mask: c_uint, to: Any) -> c_int, -1,
        |r, e| looked(at, path, flags, e, to, Identity::of_statx);

    fn glob(pattern: Path, flags: c_int, error: Any, to: Any) -> c_int, -1, |r, e| globbed(pattern);
    fn glob64(pattern: Path, flags: c_int, error: Any, to: Any) -> c_int, -1, |r, e| globbed(pattern);
    fn scandir(path: Path, names: Any, filter: Any, order: Any) -> c_int, -1,
        |r, e| seen(AT_FDCWD, path, b'D', e, NO_FILE);
    fn scandir64(path: Path, names: Any, filter: Any, order: Any) -> c_int, -1,
        |r, e| seen(AT_FDCWD, path, b'D', e, NO_FILE);
    fn scandirat(at: c_int, path: Path, names: Any, filter: Any, order: Any) -> c_int, -1,
        |r, e| seen(at, path, b'D', e, NO_FILE);
    fn scandirat64(at: c_int, path: Path, names: Any, filter: Any, order: Any) -> c_int, -1,
        |r, e| seen(at, path, b'D', e, NO_FILE);
    fn ftw(path: Path, visit: Any, files: c_int) -> c_int, -1, |r, e| walked();
    fn ftw64(path: Path, visit: Any, files: c_int) -> c_int, -1, |r, e| walked();
    fn nftw(path: Path, visit: Any, files: c_int, flags: c_int) -> c_int, -1, |r, e| walked();
    fn nftw64(path: Path, visit: Any, files: c_int, flags: c_int) -> c_int, -1, |r, e| walked();
    fn fts_open(paths: Any, options: c_int, order: Any) -> Any, NONE, |r, e| walked();
    fn fts64_open(paths: Any, options: c_int, order: Any) -> Any, NONE, |r, e| walked();

    fn getcwd(to: Any, size: usize) -> Any, NONE, |r, e| asked_where(e);
    fn __getcwd_chk(to: Any, size: usize, whole: usize) -> Any, NONE, |r, e| asked_where(e);
    fn getwd(to: Any) -> Any, NONE, |r, e| asked_where(e);
    fn __getwd_chk(to: Any, whole: usize) -> Any, NONE, |r, e| asked_where(e);
    fn get_current_dir_name() -> Any, NONE, |r, e| asked_where(e);
    fn chdir(path: Path) -> c_int, -1, |r, e| folders::moved(path, e);
    fn fchdir(directory: c_int) -> c_int, -1, |r, e| if e == 0 { state::directory_changed() };
}

/// Logs that a tree of folders is listed by the C library itself.
fn walked() {
    state::path(b'U', b"it walks a tree of folders");
}

