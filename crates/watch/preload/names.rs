//! Hooks of the functions that read links and ask for environment variables.

use core::ffi::{CStr, c_char, c_int};

use crate::files::{below, itself, seen};
use crate::input;
use crate::state::{self, LONGEST};
use crate::sys::{self, AT_FDCWD, Any, EINVAL, Path, text};
use crate::{Real, hook};

const NONE: Any = core::ptr::null_mut();

hook! {
    fn readlink(path: Path, to: Any, size: usize) -> isize, -1, |r, e| link_read(AT_FDCWD, path, to, r, e);
    fn __readlink_chk(path: Path, to: Any, size: usize, whole: usize) -> isize, -1,
        |r, e| link_read(AT_FDCWD, path, to, r, e);
    fn readlinkat(at: c_int, path: Path, to: Any, size: usize) -> isize, -1, |r, e| link_read(at, path, to, r, e);
    fn __readlinkat_chk(at: c_int, path: Path, to: Any, size: usize, whole: usize) -> isize, -1,
        |r, e| link_read(at, path, to, r, e);
    fn realpath(path: Path, to: Any) -> Any, NONE, |r, e| resolved(path, r, e);
    fn __realpath_chk(path: Path, to: Any, whole: usize) -> Any, NONE, |r, e| resolved(path, r, e);
    fn canonicalize_file_name(path: Path) -> Any, NONE, |r, e| resolved(path, r, e);
}

/// Logs where a link leads; nowhere if the name is no link.
///
/// # Safety
/// As for [`seen`]; `to` has `length` bytes if there is no error.
unsafe fn link_read(directory: c_int, path: Path, to: Any, length: isize, error: c_int) {
    // SAFETY: as the caller promises.
    unsafe {
        if error == 0 {
            input::looked(directory, path);
        }
        let target = match (usize::try_from(length), error) {
            (Ok(length), 0) => core::slice::from_raw_parts(to.cast::<u8>(), length),
            (_, EINVAL) => &[],
            _ => return itself(directory, path, error),
        };
        let mut full = [0_u8; LONGEST];
        match text(path) {
            None | Some([]) => {}
            Some(name) if name[0] == b'/' || directory == AT_FDCWD => state::leads(b'Y', name, target),
            Some(name) => match below(directory, name, &mut full) {
                Some(name) => state::leads(b'Y', name, target),
                None => state::path(b'U', b"a path relative to a directory without a name"),
            },
        }
    }
}

/// Logs the result of resolving a path.
///
/// # Safety
/// As for [`seen`]; `to` is null or NUL-terminated.
unsafe fn resolved(path: Path, to: Any, error: c_int) {
    // SAFETY: as the caller promises.
    unsafe {
        match (text(path), text(to.cast())) {
            (Some(name), Some(target)) if error == 0 && !name.is_empty() => {
                input::looked(AT_FDCWD, path);
                state::leads(b'Z', name, target);
            }
            _ => seen(AT_FDCWD, path, b'S', error, -1),
        }
    }
}

/// Logs that a variable was requested, and returns it.
///
/// # Safety
/// `name` is null or NUL-terminated; `symbol` ends in NUL and names a function like `getenv`.
unsafe fn asked(real: &Real, symbol: &'static str, name: Path) -> *mut c_char {
    // SAFETY: as the caller promises; errno is this thread's.
    unsafe {
        let errno = *sys::__errno_location();
        if let Some(name) = text(name) {
            state::path(b'V', name);
        }
        let value = match real.get(symbol) {
            Some(real) => {
                let real: unsafe extern "C" fn(Path) -> *mut c_char = core::mem::transmute(real);
                real(name)
            }
            None if name.is_null() => core::ptr::null_mut(),
            None => sys::variable(CStr::from_ptr(name).to_bytes())
                .map_or(core::ptr::null_mut(), |value| value.as_ptr().cast_mut()),
        };
        *sys::__errno_location() = errno;
        value
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getenv(name: Path) -> *mut c_char {
    static REAL: Real = Real::new();
    // SAFETY: the caller's argument.
    unsafe { asked(&REAL, "getenv\0", name) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn secure_getenv(name: Path) -> *mut c_char {
    static REAL: Real = Real::new();
    // SAFETY: as above.
    unsafe { asked(&REAL, "secure_getenv\0", name) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __secure_getenv(name: Path) -> *mut c_char {
    static REAL: Real = Real::new();
    // SAFETY: as above.
    unsafe { asked(&REAL, "__secure_getenv\0", name) }
}

