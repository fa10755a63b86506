//! The few C library functions and system calls the preloaded library itself uses.
//!
//! All of them exist unversioned in every glibc (and in musl), which is what keeps the floor low. Files
//! are reached with `syscall`, since `open` and its kind would be our own hooks.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};

unsafe extern "C" {
    pub(crate) fn __errno_location() -> *mut c_int;
    pub(crate) fn syscall(number: c_long, ...) -> c_long;
    pub(crate) fn getenv(name: *const c_char) -> *mut c_char;
    pub(crate) fn dl_iterate_phdr(
        visit: extern "C" fn(*mut LoadedObject, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// The start of `struct dl_phdr_info`.
#[repr(C)]
pub(crate) struct LoadedObject {
    pub(crate) address: usize,
    pub(crate) name: *const c_char,
    pub(crate) headers: *const ProgramHeader,
    pub(crate) header_count: u16,
}

/// `Elf64_Phdr`.
#[repr(C)]
pub(crate) struct ProgramHeader {
    pub(crate) kind: u32,
    flags: u32,
    offset: u64,
    pub(crate) address: u64,
    physical: u64,
    file_size: u64,
    pub(crate) memory_size: u64,
    align: u64,
}

pub(crate) const PT_LOAD: u32 = 1;

#[cfg(target_arch = "x86_64")]
mod numbers {
    pub(crate) const OPENAT: i64 = 257;
    pub(crate) const WRITE: i64 = 1;
    pub(crate) const CLOSE: i64 = 3;
    pub(crate) const GETCWD: i64 = 79;
    pub(crate) const READLINKAT: i64 = 267;
    pub(crate) const FACCESSAT: i64 = 269;
    pub(crate) const GETPID: i64 = 39;
    pub(crate) const EXIT_GROUP: i64 = 231;
    pub(crate) const O_DIRECTORY: i32 = 0o200_000;
    /// The first version of this architecture: what functions retired since are filed under.
    pub(crate) const BASE_VERSION: &core::ffi::CStr = c"GLIBC_2.2.5";
}

#[cfg(target_arch = "aarch64")]
mod numbers {
    pub(crate) const OPENAT: i64 = 56;
    pub(crate) const WRITE: i64 = 64;
    pub(crate) const CLOSE: i64 = 57;
    pub(crate) const GETCWD: i64 = 17;
    pub(crate) const READLINKAT: i64 = 78;
    pub(crate) const FACCESSAT: i64 = 48;
    pub(crate) const GETPID: i64 = 172;
    pub(crate) const EXIT_GROUP: i64 = 94;
    pub(crate) const O_DIRECTORY: i32 = 0o40_000;
    /// The first version of this architecture: what functions retired since are filed under.
    pub(crate) const BASE_VERSION: &core::ffi::CStr = c"GLIBC_2.17";
}

pub(crate) const SYS_EXIT_GROUP: c_long = numbers::EXIT_GROUP;
pub(crate) const AT_FDCWD: c_int = -100;
pub(crate) const O_ACCMODE: c_int = 3;
pub(crate) const O_WRONLY: c_int = 1;
pub(crate) const O_RDWR: c_int = 2;
pub(crate) const O_CREAT: c_int = 0o100;
pub(crate) const O_TRUNC: c_int = 0o1000;
const O_APPEND: c_int = 0o2000;
const O_CLOEXEC: c_int = 0o2_000_000;
pub(crate) const O_DIRECTORY: c_int = numbers::O_DIRECTORY;
pub(crate) const O_PATH: c_int = 0o10_000_000;
/// `O_TMPFILE` without the `O_DIRECTORY` it includes.
pub(crate) const O_TMPFILE: c_int = 0o20_000_000;

pub(crate) const EPERM: c_int = 1;
pub(crate) const ENOENT: c_int = 2;
pub(crate) const EINTR: c_int = 4;
pub(crate) const EBADF: c_int = 9;
pub(crate) const EACCES: c_int = 13;
pub(crate) const EFAULT: c_int = 14;
pub(crate) const EEXIST: c_int = 17;
pub(crate) const ENOTDIR: c_int = 20;
pub(crate) const EISDIR: c_int = 21;
pub(crate) const EINVAL: c_int = 22;
pub(crate) const ETXTBSY: c_int = 26;
pub(crate) const EROFS: c_int = 30;
pub(crate) const ERANGE: c_int = 34;
pub(crate) const ENAMETOOLONG: c_int = 36;
pub(crate) const ENOSYS: c_int = 38;

/// The next definition of a symbol after ours, or null.
///
/// # Safety
/// `name` is NUL-terminated.
pub(crate) unsafe fn next(name: *const c_char) -> *mut c_void {
    const RTLD_NEXT: *mut c_void = -1_isize as *mut c_void;
    // SAFETY: plain lookups; dlvsym has the signature written here.
    unsafe {
        let found = dlsym(RTLD_NEXT, name);
        if !found.is_null() {
            return found;
        }
        // glibc 2.33 retired __xstat and its kind: old binaries still bind to them, dlsym no longer
        // finds them without their version. dlvsym is itself looked up because musl has none.
        let versioned = dlsym(RTLD_NEXT, c"dlvsym".as_ptr());
        if versioned.is_null() {
            return versioned;
        }
        let versioned: unsafe extern "C" fn(
            *mut c_void,
            *const c_char,
            *const c_char,
        ) -> *mut c_void = core::mem::transmute(versioned);
        versioned(RTLD_NEXT, name, numbers::BASE_VERSION.as_ptr())
    }
}

pub(crate) fn pid() -> u32 {
    // SAFETY: takes no arguments. Not getpid(): old glibc caches it, wrongly in a vfork child.
    unsafe { syscall(numbers::GETPID) as u32 }
}

/// The working directory, or an empty slice if it has no name.
pub(crate) fn cwd(buffer: &mut [u8]) -> &[u8] {
    // SAFETY: the kernel writes at most the length given.
    let length = unsafe { syscall(numbers::GETCWD, buffer.as_mut_ptr(), buffer.len()) };
    // The length counts the NUL; a directory outside the root is reported as "(unreachable)…".
    match usize::try_from(length) {
        Ok(length) if length > 1 && buffer[0] == b'/' => &buffer[..length - 1],
        _ => &[],
    }
}

/// Where a link points, or an empty slice.
pub(crate) fn readlink<'b>(path: &CStr, buffer: &'b mut [u8]) -> &'b [u8] {
    // SAFETY: the kernel writes at most the length given.
    let length = unsafe {
        syscall(
            numbers::READLINKAT,
            AT_FDCWD,
            path.as_ptr(),
            buffer.as_mut_ptr(),
            buffer.len(),
        )
    };
    match usize::try_from(length) {
        Ok(length) if length < buffer.len() => &buffer[..length],
        _ => &[],
    }
}

/// 0 if the file may be executed, otherwise the errno.
pub(crate) fn executable(path: &CStr) -> c_int {
    const X_OK: c_int = 1;
    // SAFETY: a NUL-terminated path.
    unsafe {
        if syscall(numbers::FACCESSAT, AT_FDCWD, path.as_ptr(), X_OK) == 0 {
            0
        } else {
            *__errno_location()
        }
    }
}

/// Appends to the file in one write; false if not all of it went.
pub(crate) fn append(path: *const u8, bytes: &[u8]) -> bool {
    // SAFETY: `path` is NUL-terminated (state copies it so), `bytes` is a slice.
    unsafe {
        let flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC;
        let file = syscall(numbers::OPENAT, AT_FDCWD, path, flags, 0o666 as c_int);
        if file < 0 {
            return false;
        }
        let written = loop {
            let written = syscall(numbers::WRITE, file, bytes.as_ptr(), bytes.len());
            if written >= 0 || *__errno_location() != EINTR {
                break written;
            }
        };
        syscall(numbers::CLOSE, file);
        usize::try_from(written) == Ok(bytes.len())
    }
}
