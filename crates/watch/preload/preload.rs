//! A library that is preloaded into a compiler and logs the files that the process looks for.
//!
//! # The log
//!
//! The log is a sequence of records, each `kind: u8, owner: u32 LE, length: u16 LE, payload, b'\n'`. `owner` is the
//! process in whose memory the record was made. A `vfork` child uses its parent's memory, so the parent logs what the
//! child does.
//!
//! | kind | payload | meaning |
//! |---|---|---|
//! | `X` | device, inode: u64 LE, executable NUL cwd | a program started |
//! | `F` | cwd | a `fork` child started |
//! | `C` | cwd | the working directory changed |
//! | `L` | identity, path | a shared library is mapped |
//! | `R` `W` | identity, path | opened for reading, for writing |
//! | `I` | identity, path | looked at with `stat`, and a regular file |
//! | `D` `S` | path | listed; looked at and there |
//! | `H` | | the working directory was asked for |
//! | `M` | path | looked for and not there |
//! | `O` | path | and not even a link is there |
//! | `h` | path | the process ended itself, because it would have changed this file, which is not the call's own |
//! | `p` | path | a symbolic link was made |
//! | `K` | path | removed, or renamed to something else |
//! | `Y` `Z` | length: u16 LE, path, target | a link was read; a path was resolved |
//! | `k` | length: u16 LE, path, text | a file of procfs or sysfs was opened for reading, and had this text; then there is no `R` |
//! | `V` | name | an environment variable was asked for |
//! | `d` | | an argument of the program has clang's `-working-directory` in it |
//! | `J` | | the program has the list of all variables, `environ` |
//! | `j` | path | a library that was preloaded by the user, or loaded after the start, has this list |
//! | `P` | pid, path | this pid is about to become the program at path |
//! | `N` | pid, path | this pid was spawned as the program at path |
//! | `A` | path | a child that the C library starts itself becomes the program at path |
//! | `Q` | pid | the `P` of this pid failed |
//! | `E` | count: u32 LE | the process ends (or, before `P`, may end), having made count records |
//! | `x` | path | it may be executed, `access` said |
//! | `a` | errors: 4 bytes, path | it may be read or written, `access` said: the errors of being there, being read, written and executed |
//! | `y` | errors: 4 bytes, path | looked at or opened, and refused: this user has no permission, or the file system is read-only |
//! | `l` | number: u8 | this limit of the process was asked for; 255 is its `umask`, and from 200 on are other facts about it |
//! | `t` | | a moment as a date and a time was asked for |
//! | `u` | path | gcc's compiler proper closed a file, and nothing was read from it; only the first of a process |
//! | `i` | | standard input was read to its end, or opened by a name |
//! | `r` | | a write found no room |
//! | `q` | text | as `U`, if the program is not a known one |
//! | `U` | text | something happened that a record cannot say: do not trust the log |
//!
//! An identity is the result of `fstat` when the file was opened, or of `stat` when it was looked at: device, inode, size
//! (u64 LE), mtime, ctime (i64 LE, in nanoseconds), mode (u32 LE), device number of a special file (u64 LE).
//!
//! An image lost records if it has fewer than its `E` counts, or if it has neither an `E` nor a `P` that an `X` follows. If
//! a `P` or `N` has no `X` of the same file, that program could not be watched (static, set-uid). If an `X` was not
//! announced, the program that started it could not be watched.
//!
//! # How
//!
//! Records are collected in a static buffer, which is appended to the log in one `write`. The log is opened and closed for
//! each: no descriptor stays open that the program could close, reuse or inherit. Nothing allocates; the only lock is a
//! bounded spin lock; `errno` stays as the real function left it.
//!
//! # Supported C libraries
//!
//! No symbol versions are recorded, so the library loads with any glibc from 2.17 (2.4 in theory), older or newer than the
//! build machine's. Real functions are found at their first call, by `symbols`.
#![no_std]
#![allow(unsafe_code)] // The C library's functions are replaced here: every line is an FFI boundary.

use core::ffi::{c_char, c_int, c_long, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

mod announce;
mod asked;
mod circumstances;
mod exec;
mod files;
mod folders;
mod hold;
mod identity;
mod input;
mod kernel_files;
mod libraries;
mod lifetime;
mod log_file;
mod made;
mod names;
mod own_files;
mod sockets;
mod state;
mod streams;
mod symbols;
mod sys;
mod unread;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        // SAFETY: ends the process; nothing here panics, this only satisfies the language.
        unsafe { sys::syscall(sys::SYS_EXIT_GROUP, 127 as c_long) };
    }
}

// `core` was built to unwind, and its frames name the routine that std defines. None ever runs, because panics end the
// process. It is defined in assembly: only a local symbol is certain not to replace another library's.
core::arch::global_asm!(
    ".hidden rust_eh_personality",
    ".globl rust_eh_personality",
    "rust_eh_personality:",
    ".long 0"
);

/// The real function behind a hook, found at the first call.
pub(crate) struct Real(AtomicPtr<c_void>);

impl Real {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }

    /// The function's address; `None` if this C library does not have it. `name` ends in NUL.
    pub(crate) fn get(&self, name: &'static str) -> Option<*mut c_void> {
        let known = self.0.load(Ordering::Relaxed);
        if !known.is_null() {
            return Some(known);
        }
        let found = symbols::next(name);
        self.0.store(found, Ordering::Relaxed);
        (!found.is_null()).then_some(found)
    }
}

/// Defines exported functions that call the real one and then log its result.
///
/// The form is `fn name(args) -> type, failure, |result, error| { log }`, where `error` is 0 or the errno. A `before { log
/// }` after the failure value logs before the real function is called.
#[macro_export]
macro_rules! hook {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $ret:ty, $bad:expr,
        $(before $before:block,)? |$res:ident, $err:ident| $log:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $type),*) -> $ret {
            static REAL: $crate::Real = $crate::Real::new();
            // SAFETY: the arguments are the caller's, passed on unchanged to the function it meant.
            unsafe {
                let Some(real) = REAL.get(concat!(stringify!($name), "\0")) else {
                    *$crate::sys::__errno_location() = $crate::sys::ENOSYS;
                    return $bad;
                };
                let real: unsafe extern "C" fn($($type),*) -> $ret = core::mem::transmute(real);
                $(
                    let errno = *$crate::sys::__errno_location();
                    $before
                    *$crate::sys::__errno_location() = errno;
                )?
                let $res = real($($arg),*);
                let saved = *$crate::sys::__errno_location();
                let $err = if $res == $bad { saved } else { 0 };
                let _ = $err;
                $log;
                *$crate::sys::__errno_location() = saved;
                $res
            }
        }
    )*};
}

/// glibc calls it with the arguments of `main`; musl calls it without any.
unsafe extern "C" fn start(count: c_int, arguments: *const *const c_char) {
    // SAFETY: runs once, before main, on the only thread; with glibc the arguments are `count` strings.
    unsafe {
        let errno = *sys::__errno_location();
        lifetime::started();
        if symbols::next("gnu_get_libc_version\0").is_null() {
            state::path(b'U', b"it has another C library");
        } else if sys::variable(b"LD_AUDIT").is_some() {
            // It has symbols of its own, and may change what the loader finds.
            state::path(b'U', b"a library audits it");
        } else if lifetime::names_folder(count, arguments) {
            state::path(b'd', b"");
        }
        exec::resolve_early();
        streams::resolve_early();
        unread::resolve_early();
        *sys::__errno_location() = errno;
    }
}

extern "C" fn finish() {
    lifetime::finished();
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: unsafe extern "C" fn(c_int, *const *const c_char) = start;

#[used]
#[unsafe(link_section = ".fini_array")]
static FINISH: extern "C" fn() = finish;
