//! Hooks of the functions that look at files.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

use crate::hook;
use crate::state::{self, LONGEST, text};
use crate::sys::{
    self, AT_FDCWD, EACCES, EBADF, EEXIST, EFAULT, EINTR, EINVAL, EISDIR, ENAMETOOLONG, ENOENT,
    ENOSYS, ENOTDIR, EPERM, ERANGE, EROFS, ETXTBSY, O_ACCMODE, O_CREAT, O_DIRECTORY, O_PATH,
    O_RDWR, O_TMPFILE, O_TRUNC,
};

type Path = *const c_char;
type Any = *mut c_void;

/// Logs the outcome of looking at `path`: `kind` if it was there, otherwise what the error says.
///
/// # Safety
/// `path` is what the program gave to a C library function that returned `error`.
unsafe fn seen(directory: c_int, path: Path, kind: u8, error: c_int) {
    let kind = match error {
        0 => kind,
        ENOENT | ENOTDIR => b'M',
        // There, but not for this use.
        EACCES | EPERM | EROFS | EISDIR | ETXTBSY | EEXIST | EINVAL | ERANGE => b'S',
        // The name says nothing about files, or the call will be made again.
        EINTR | EBADF | EFAULT | ENAMETOOLONG | ENOSYS => return,
        _ => b'U',
    };
    // SAFETY: the call did not fail with EFAULT, so the kernel could read it.
    let Some(name) = (unsafe { text(path) }) else {
        return;
    };
    match name {
        // With an empty name the *at functions look at the descriptor itself.
        [] => {}
        [b'/', ..] => state::path(kind, name),
        _ if directory == AT_FDCWD => state::path(kind, name),
        _ => below(directory, name, kind),
    }
}

/// Logs a path relative to an open directory.
fn below(directory: c_int, name: &[u8], kind: u8) {
    const LINK: &[u8] = b"/proc/self/fd/";
    let mut link = [0_u8; LINK.len() + 12];
    link[..LINK.len()].copy_from_slice(LINK);
    let mut digits = [0_u8; 10];
    let mut first = digits.len();
    let mut rest = directory.unsigned_abs();
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    link[LINK.len()..LINK.len() + digits.len() - first].copy_from_slice(&digits[first..]);
    let mut full = [0_u8; LONGEST];
    let parent = match CStr::from_bytes_until_nul(&link) {
        Ok(link) => sys::readlink(link, &mut full).len(),
        Err(_) => 0,
    };
    let end = parent + 1 + name.len();
    if parent == 0 || full[0] != b'/' || end > full.len() {
        return state::path(b'U', b"a path relative to a directory without a name");
    }
    full[parent] = b'/';
    full[parent + 1..end].copy_from_slice(name);
    state::path(kind, &full[..end]);
}

/// Logs an `open`.
///
/// # Safety
/// As for [`seen`].
unsafe fn opened(directory: c_int, path: Path, flags: c_int, error: c_int) {
    // SAFETY: passed on.
    unsafe {
        if flags & O_TMPFILE != 0 {
            // A file without a name in that directory.
            seen(directory, path, b'S', error);
        } else if flags & O_PATH != 0 {
            seen(directory, path, b'S', error);
        } else if flags & O_DIRECTORY != 0 {
            seen(directory, path, b'D', error);
        } else if flags & (O_ACCMODE | O_CREAT) == 0 {
            seen(directory, path, b'R', error);
        } else {
            if flags & O_ACCMODE == O_RDWR && flags & (O_TRUNC | O_CREAT) == 0 {
                seen(directory, path, b'R', error);
            }
            seen(directory, path, b'W', error);
        }
    }
}

/// Logs an `fopen`.
///
/// # Safety
/// As for [`seen`]; `mode` likewise.
unsafe fn streamed(path: Path, mode: Path, error: c_int) {
    // SAFETY: passed on.
    unsafe {
        let mode = text(mode).unwrap_or_default();
        let update = mode.contains(&b'+');
        match mode.first() {
            Some(b'r') => {
                seen(AT_FDCWD, path, b'R', error);
                if update {
                    seen(AT_FDCWD, path, b'W', error);
                }
            }
            _ => seen(AT_FDCWD, path, b'W', error),
        }
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

// `open` takes its mode as a variable argument. Defining it with three fixed ones is sound on both
// architectures: variable integer arguments travel in the same registers.
hook! {
    fn open(path: Path, flags: c_int, mode: c_uint) -> c_int, -1, |r, e| opened(AT_FDCWD, path, flags, e);
    fn open64(path: Path, flags: c_int, mode: c_uint) -> c_int, -1, |r, e| opened(AT_FDCWD, path, flags, e);
    fn __open_2(path: Path, flags: c_int) -> c_int, -1, |r, e| opened(AT_FDCWD, path, flags, e);
    fn __open64_2(path: Path, flags: c_int) -> c_int, -1, |r, e| opened(AT_FDCWD, path, flags, e);
    fn openat(at: c_int, path: Path, flags: c_int, mode: c_uint) -> c_int, -1, |r, e| opened(at, path, flags, e);
    fn openat64(at: c_int, path: Path, flags: c_int, mode: c_uint) -> c_int, -1, |r, e| opened(at, path, flags, e);
    fn __openat_2(at: c_int, path: Path, flags: c_int) -> c_int, -1, |r, e| opened(at, path, flags, e);
    fn __openat64_2(at: c_int, path: Path, flags: c_int) -> c_int, -1, |r, e| opened(at, path, flags, e);
    fn creat(path: Path, mode: c_uint) -> c_int, -1, |r, e| seen(AT_FDCWD, path, b'W', e);
    fn creat64(path: Path, mode: c_uint) -> c_int, -1, |r, e| seen(AT_FDCWD, path, b'W', e);
    fn fopen(path: Path, mode: Path) -> Any, NONE, |r, e| streamed(path, mode, e);
    fn fopen64(path: Path, mode: Path) -> Any, NONE, |r, e| streamed(path, mode, e);
    fn freopen(path: Path, mode: Path, stream: Any) -> Any, NONE, |r, e| streamed(path, mode, e);
    fn freopen64(path: Path, mode: Path, stream: Any) -> Any, NONE, |r, e| streamed(path, mode, e);
    fn opendir(path: Path) -> Any, NONE, |r, e| seen(AT_FDCWD, path, b'D', e);

    fn mkstemp(path: *mut c_char) -> c_int, -1, |r, e| made(path, e);
    fn mkstemp64(path: *mut c_char) -> c_int, -1, |r, e| made(path, e);
    fn mkstemps(path: *mut c_char, suffix: c_int) -> c_int, -1, |r, e| made(path, e);
    fn mkstemps64(path: *mut c_char, suffix: c_int) -> c_int, -1, |r, e| made(path, e);
    fn mkostemp(path: *mut c_char, flags: c_int) -> c_int, -1, |r, e| made(path, e);
    fn mkostemp64(path: *mut c_char, flags: c_int) -> c_int, -1, |r, e| made(path, e);
    fn rename(from: Path, to: Path) -> c_int, -1, |r, e| made(to, e);
    fn link(from: Path, to: Path) -> c_int, -1, |r, e| made(to, e);
    fn symlink(from: Path, to: Path) -> c_int, -1, |r, e| made(to, e);

    fn stat(path: Path, to: Any) -> c_int, -1, |r, e| seen(AT_FDCWD, path, b'S', e);
    fn stat64(path: Path, to: Any) -> c_int, -1, |r, e| seen(AT_FDCWD, path, b'S', e);
    fn lstat(path: Path, to: Any) -> c_int, -1, |r, e| seen(AT_FDCWD, path, b'S', e);
    fn lstat64(path: Path, to: Any) -> c_int, -1, |r, e| seen(AT_FDCWD, path, b'S', e);
    fn fstatat(at: c_int, path: Path, to: Any, flags: c_int) -> c_int, -1, |r, e| seen(at, path, b'S', e);
    fn fstatat64(at: c_int, path: Path, to: Any, flags: c_int) -> c_int, -1, |r, e| seen(at, path, b'S', e);
    fn __xstat(v: c_int, path: Path, to: Any) -> c_int, -1, |r, e| seen(AT_FDCWD, path, b'S', e);
    fn __xstat64(v: c_int, path: Path, to: Any) -> c_int, -1, |r, e| seen(AT_FDCWD, path, b'S', e);
    fn __lxstat(v: c_int, path: Path, to: Any) -> c_int, -1, |r, e| seen(AT_FDCWD, path, b'S', e);
    fn __lxstat64(v: c_int, path: Path, to: Any) -> c_int, -1, |r, e| seen(AT_FDCWD, path, b'S', e);
    fn __fxstatat(v: c_int, at: c_int, path: Path, to: Any, f: c_int) -> c_int, -1, |r, e| seen(at, path, b'S', e);
    fn __fxstatat64(v: c_int, at: c_int, path: Path, to: Any, f: c_int) -> c_int, -1, |r, e| seen(at, path, b'S', e);
    fn statx(at: c_int, path: Path, flags: c_int, mask: c_uint, to: Any) -> c_int, -1, |r, e| seen(at, path, b'S', e);
    fn access(path: Path, mode: c_int) -> c_int, -1, |r, e| seen(AT_FDCWD, path, b'S', e);
    fn eaccess(path: Path, mode: c_int) -> c_int, -1, |r, e| seen(AT_FDCWD, path, b'S', e);
    fn euidaccess(path: Path, mode: c_int) -> c_int, -1, |r, e| seen(AT_FDCWD, path, b'S', e);
    fn faccessat(at: c_int, path: Path, mode: c_int, flags: c_int) -> c_int, -1, |r, e| seen(at, path, b'S', e);
    fn readlink(path: Path, to: Any, size: usize) -> isize, -1, |r, e| seen(AT_FDCWD, path, b'S', e);
    fn __readlink_chk(path: Path, to: Any, size: usize, whole: usize) -> isize, -1,
        |r, e| seen(AT_FDCWD, path, b'S', e);
    fn readlinkat(at: c_int, path: Path, to: Any, size: usize) -> isize, -1, |r, e| seen(at, path, b'S', e);
    fn realpath(path: Path, to: Any) -> Any, NONE, |r, e| seen(AT_FDCWD, path, b'S', e);
    fn __realpath_chk(path: Path, to: Any, whole: usize) -> Any, NONE, |r, e| seen(AT_FDCWD, path, b'S', e);
    fn canonicalize_file_name(path: Path) -> Any, NONE, |r, e| seen(AT_FDCWD, path, b'S', e);

    fn glob(pattern: Path, flags: c_int, error: Any, to: Any) -> c_int, -1, |r, e| globbed(pattern);
    fn glob64(pattern: Path, flags: c_int, error: Any, to: Any) -> c_int, -1, |r, e| globbed(pattern);

    fn chdir(path: Path) -> c_int, -1, |r, e| moved(e);
    fn fchdir(directory: c_int) -> c_int, -1, |r, e| moved(e);
}

/// Logs a file that came into being under this name.
///
/// # Safety
/// As for [`seen`].
unsafe fn made(path: Path, error: c_int) {
    if error == 0 {
        // SAFETY: passed on.
        unsafe { seen(AT_FDCWD, path, b'W', 0) };
    }
}

fn moved(error: c_int) {
    if error == 0 {
        state::directory_changed();
    }
}
