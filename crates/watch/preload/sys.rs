//! The few functions of the C library, and system calls, that the preloaded library uses.
//!
//! All of them exist without a version in every glibc, so the library works with old ones. Files are opened with `syscall`,
//! because `open` and similar functions would call our own hooks.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};

unsafe extern "C" {
    pub(crate) fn __errno_location() -> *mut c_int;
    pub(crate) fn syscall(number: c_long, ...) -> c_long;
    pub(crate) fn dirfd(stream: Any) -> c_int;
    pub(crate) fn fileno(stream: *mut c_void) -> c_int;
    pub(crate) fn ferror(stream: *mut c_void) -> c_int;
    pub(crate) fn feof_unlocked(stream: *mut c_void) -> c_int;
    pub(crate) fn __fwriting(stream: *mut c_void) -> c_int;
    pub(crate) static stdin: *mut c_void;
    static environ: *const *const c_char;
    pub(crate) fn dl_iterate_phdr(
        visit: extern "C" fn(*mut LoadedObject, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
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
pub(crate) mod numbers {
    pub(crate) const OPENAT: i64 = 257;
    pub(crate) const WRITE: i64 = 1;
    pub(crate) const RT_SIGPROCMASK: i64 = 14;
    pub(crate) const RT_SIGPENDING: i64 = 127;
    pub(crate) const RT_SIGTIMEDWAIT: i64 = 128;
    pub(crate) const CLOSE: i64 = 3;
    pub(crate) const GETCWD: i64 = 79;
    pub(crate) const READLINKAT: i64 = 267;
    pub(crate) const FACCESSAT: i64 = 269;
    pub(crate) const FSTAT: i64 = 5;
    pub(crate) const FSTATAT: i64 = 262;
    pub(crate) const FCNTL: i64 = 72;
    pub(crate) const FSTATFS: i64 = 138;
    pub(crate) const READ: i64 = 0;
    pub(crate) const LSEEK: i64 = 8;
    pub(crate) const GETPID: i64 = 39;
    pub(crate) const KILL: i64 = 62;
    pub(crate) const EXIT_GROUP: i64 = 231;
    pub(crate) const CLOCK_GETTIME: i64 = 228;
    pub(crate) const O_DIRECTORY: i32 = 0o200_000;
    pub(crate) const O_NOFOLLOW: i32 = 0o400_000;
}

#[cfg(target_arch = "aarch64")]
pub(crate) mod numbers {
    pub(crate) const OPENAT: i64 = 56;
    pub(crate) const WRITE: i64 = 64;
    pub(crate) const RT_SIGPROCMASK: i64 = 135;
    pub(crate) const RT_SIGPENDING: i64 = 136;
    pub(crate) const RT_SIGTIMEDWAIT: i64 = 137;
    pub(crate) const CLOSE: i64 = 57;
    pub(crate) const GETCWD: i64 = 17;
    pub(crate) const READLINKAT: i64 = 78;
    pub(crate) const FACCESSAT: i64 = 48;
    pub(crate) const FSTAT: i64 = 80;
    pub(crate) const FSTATAT: i64 = 79;
    pub(crate) const FCNTL: i64 = 25;
    pub(crate) const FSTATFS: i64 = 44;
    pub(crate) const READ: i64 = 63;
    pub(crate) const LSEEK: i64 = 62;
    pub(crate) const GETPID: i64 = 172;
    pub(crate) const KILL: i64 = 129;
    pub(crate) const EXIT_GROUP: i64 = 94;
    pub(crate) const CLOCK_GETTIME: i64 = 113;
    pub(crate) const O_DIRECTORY: i32 = 0o40_000;
    pub(crate) const O_NOFOLLOW: i32 = 0o100_000;
}

pub(crate) const SYS_EXIT_GROUP: c_long = numbers::EXIT_GROUP;
pub(crate) const AT_FDCWD: c_int = -100;
pub(crate) const O_ACCMODE: c_int = 3;
pub(crate) const O_WRONLY: c_int = 1;
pub(crate) const O_RDWR: c_int = 2;
pub(crate) const O_CREAT: c_int = 0o100;
pub(crate) const O_TRUNC: c_int = 0o1000;
pub(crate) const O_APPEND: c_int = 0o2000;
pub(crate) const O_CLOEXEC: c_int = 0o2_000_000;
pub(crate) const O_DIRECTORY: c_int = numbers::O_DIRECTORY;
pub(crate) const O_NOFOLLOW: c_int = numbers::O_NOFOLLOW;
pub(crate) const O_PATH: c_int = 0o10_000_000;
/// `O_TMPFILE` without the `O_DIRECTORY` it includes.
pub(crate) const O_TMPFILE: c_int = 0o20_000_000;

pub(crate) const EPERM: c_int = 1;
pub(crate) const ENOENT: c_int = 2;
pub(crate) const EINTR: c_int = 4;
pub(crate) const EIO: c_int = 5;
pub(crate) const ENXIO: c_int = 6;
pub(crate) const ENOEXEC: c_int = 8;
pub(crate) const EBADF: c_int = 9;
pub(crate) const EACCES: c_int = 13;
pub(crate) const EFAULT: c_int = 14;
pub(crate) const EEXIST: c_int = 17;
pub(crate) const EXDEV: c_int = 18;
pub(crate) const ENOTDIR: c_int = 20;
pub(crate) const EISDIR: c_int = 21;
pub(crate) const EINVAL: c_int = 22;
pub(crate) const ETXTBSY: c_int = 26;
pub(crate) const EFBIG: c_int = 27;
pub(crate) const ENOSPC: c_int = 28;
pub(crate) const EROFS: c_int = 30;
pub(crate) const ERANGE: c_int = 34;
pub(crate) const ENAMETOOLONG: c_int = 36;
pub(crate) const ENOSYS: c_int = 38;
pub(crate) const ENOTEMPTY: c_int = 39;
pub(crate) const ENOTSUP: c_int = 95;
pub(crate) const EDQUOT: c_int = 122;

/// A variable of the environment. `getenv` cannot be used: it is one of our hooks.
pub(crate) fn variable(name: &[u8]) -> Option<&'static CStr> {
    // SAFETY: the C library's list: pointers to strings that end in NUL, and a null at the end.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = CStr::from_ptr(*entry);
            if let Some(rest) = text.to_bytes_with_nul().strip_prefix(name)
                && let Some(value) = rest.strip_prefix(b"=")
            {
                return CStr::from_bytes_with_nul(value).ok();
            }
            entry = entry.add(1);
        }
        None
    }
}

/// The bytes of a C string, unless null.
///
/// `pointer` is null or NUL-terminated, and the text does not change meanwhile.
pub(crate) unsafe fn text<'t>(pointer: *const c_char) -> Option<&'t [u8]> {
    // SAFETY: as the caller promises.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_bytes())
}

/// All variables, as the functions take them that start programs.
pub(crate) fn variables() -> ConstAny {
    // SAFETY: as above.
    unsafe { environ.cast() }
}

/// Whether the C library has set the environment.
pub(crate) fn has_environment() -> bool {
    // SAFETY: a pointer that the C library sets once at the start and programs may replace.
    unsafe { !environ.is_null() }
}

/// A path, as a C program passes it.
pub(crate) type Path = *const c_char;
/// Something of the caller's that we pass on.
pub(crate) type Any = *mut c_void;
/// As [`Any`], where the function only reads it.
pub(crate) type ConstAny = *const c_void;

pub(crate) fn pid() -> u32 {
    // SAFETY: takes no arguments. Old glibc's getpid() caches the number, wrongly in a vfork child.
    unsafe { syscall(numbers::GETPID) as u32 }
}

/// Ends every process of this group, this one included.
pub(crate) fn end_group() -> ! {
    const OWN_GROUP: c_long = 0;
    const SIGKILL: c_long = 9;
    loop {
        // SAFETY: numbers only; after a signal that cannot be handled nothing follows.
        unsafe { syscall(numbers::KILL, OWN_GROUP, SIGKILL) };
    }
}

/// The working directory, or an empty slice if it has no name.
pub(crate) fn cwd(buffer: &mut [u8]) -> &[u8] {
    // SAFETY: the kernel writes at most the length given.
    let length = unsafe { syscall(numbers::GETCWD, buffer.as_mut_ptr(), buffer.len()) };
    // The length includes the NUL. The kernel reports a directory outside the root as "(unreachable)…".
    match usize::try_from(length) {
        Ok(length) if length > 1 && buffer[0] == b'/' => &buffer[..length - 1],
        _ => &[],
    }
}

/// Opens what is at the end of a path, only to see where it is.
pub(crate) fn open_place(directory: c_int, path: &CStr) -> Result<c_int, c_int> {
    // SAFETY: a NUL-terminated path.
    let file = unsafe {
        syscall(numbers::OPENAT, c_long::from(directory), path.as_ptr(), c_long::from(O_PATH | O_CLOEXEC), 0 as c_long)
    };
    match c_int::try_from(file) {
        Ok(file) if file >= 0 => Ok(file),
        // SAFETY: errno is this thread's.
        _ => Err(unsafe { *__errno_location() }),
    }
}

/// Writes a byte into a pipe with a name, if somebody reads it. `path` is NUL-terminated.
pub(crate) fn signal_pipe(path: *const u8) {
    const O_NONBLOCK: c_int = 0o4000;
    // SAFETY: a NUL-terminated path, an open descriptor, and one byte.
    unsafe {
        let pipe = syscall(numbers::OPENAT, AT_FDCWD, path, O_WRONLY | O_NONBLOCK | O_CLOEXEC, 0 as c_int);
        if pipe >= 0 {
            syscall(numbers::WRITE, pipe, b"!".as_ptr(), 1_usize);
            syscall(numbers::CLOSE, pipe);
        }
    }
}

pub(crate) fn close(file: c_int) {
    // SAFETY: a number only.
    unsafe { syscall(numbers::CLOSE, c_long::from(file)) };
}

/// The status flags of an open file; none where there is no such file.
pub(crate) fn status_flags(file: c_int) -> c_int {
    const F_GETFL: c_long = 3;
    // SAFETY: numbers only.
    let flags = unsafe { syscall(numbers::FCNTL, c_long::from(file), F_GETFL) };
    c_int::try_from(flags).map_or(0, |flags| flags.max(0))
}

/// The position in an open file; negative where it has none.
pub(crate) fn position(file: c_int) -> c_long {
    const HERE: c_long = 1;
    // SAFETY: numbers only.
    unsafe { syscall(numbers::LSEEK, c_long::from(file), 0 as c_long, HERE) }
}

/// The number of the file system of an open file; 0 if the kernel gives none.
pub(crate) fn file_system(file: c_int) -> i64 {
    // `struct statfs` begins with it, and has 120 bytes.
    let mut answer = [0_i64; 32];
    // SAFETY: the kernel fills in the structure, for which there is room.
    let result = unsafe { syscall(numbers::FSTATFS, c_long::from(file), answer.as_mut_ptr()) };
    if result == 0 { answer[0] } else { 0 }
}

/// Opens a file to read it, without waiting for anything.
pub(crate) fn open_to_read(path: &CStr) -> Option<c_int> {
    const O_NONBLOCK: c_int = 0o4000;
    let flags = c_long::from(O_NONBLOCK | O_CLOEXEC);
    // SAFETY: a NUL-terminated path.
    let file = unsafe { syscall(numbers::OPENAT, c_long::from(AT_FDCWD), path.as_ptr(), flags, 0 as c_long) };
    c_int::try_from(file).ok().filter(|file| *file >= 0)
}

/// Reads a file to its end; `None` if that fails, or if the buffer is too short.
pub(crate) fn read_whole(file: c_int, buffer: &mut [u8]) -> Option<usize> {
    let mut length = 0;
    while length < buffer.len() {
        let rest = &mut buffer[length..];
        // SAFETY: the kernel writes at most the length given.
        let read = unsafe { syscall(numbers::READ, c_long::from(file), rest.as_mut_ptr(), rest.len()) };
        match usize::try_from(read) {
            Ok(0) => return Some(length),
            Ok(read) => length += read,
            Err(_) => return None,
        }
    }
    None
}

/// The kernel's name of an open file, without links; an empty slice where it has none.
pub(crate) fn name_of_open(file: c_int, buffer: &mut [u8]) -> &[u8] {
    let mut link = [0_u8; 32];
    match CStr::from_bytes_until_nul(link_of_open(file, &mut link)) {
        Ok(link) => readlink(AT_FDCWD, link, buffer),
        Err(_) => &[],
    }
}

/// The name of the link to an open file, which ends in NUL.
pub(crate) fn link_of_open(file: c_int, link: &mut [u8; 32]) -> &[u8] {
    const FOLDER: &[u8] = b"/proc/self/fd/";
    link[..FOLDER.len()].copy_from_slice(FOLDER);
    let mut digits = [0_u8; 10];
    let mut first = digits.len();
    let mut rest = file.unsigned_abs();
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    link[FOLDER.len()..FOLDER.len() + digits.len() - first].copy_from_slice(&digits[first..]);
    link
}

/// The name behind the working directory, in `whole`; empty if it is too long for it.
pub(crate) fn absolute<'w>(name: &[u8], whole: &'w mut [u8]) -> &'w [u8] {
    let start = cwd(whole).len();
    let end = start + 1 + name.len();
    if end > whole.len() {
        return &[];
    }
    whole[start] = b'/';
    whole[start + 1..end].copy_from_slice(name);
    &whole[..end]
}

/// The target of a link, or an empty slice.
pub(crate) fn readlink<'b>(directory: c_int, path: &CStr, buffer: &'b mut [u8]) -> &'b [u8] {
    // SAFETY: the kernel writes at most the length given.
    let length = unsafe {
        syscall(
            numbers::READLINKAT,
            c_long::from(directory),
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
    may(path, X_OK)
}

/// The errors of being there, being read, written and executed.
pub(crate) fn uses(path: &CStr) -> [u8; 4] {
    [0, 4, 2, 1].map(|mode| u8::try_from(may(path, mode)).unwrap_or(u8::MAX))
}

/// 0 if the file may be used so, otherwise the errno.
fn may(path: &CStr, mode: c_int) -> c_int {
    // SAFETY: a NUL-terminated path.
    unsafe {
        if syscall(numbers::FACCESSAT, AT_FDCWD, path.as_ptr(), mode) == 0 {
            0
        } else {
            *__errno_location()
        }
    }
}

/// The present moment in seconds.
pub(crate) fn now() -> i64 {
    const REALTIME: c_long = 0;
    let mut moment = [0_i64; 2];
    // SAFETY: the kernel writes the two numbers of a `timespec`.
    unsafe { syscall(numbers::CLOCK_GETTIME, REALTIME, moment.as_mut_ptr()) };
    moment[0]
}
