//! The library preloaded into a compiler: it writes down which files the process looked for.
//!
//! # The log
//!
//! A sequence of records, each `kind: u8, owner: u32 LE, length: u16 LE, payload, b'\n'`. `owner` is the
//! process whose memory the record was made in: what a `vfork` child does is logged by its parent.
//!
//! | kind | payload | meaning |
//! |---|---|---|
//! | `X` | device, inode: u64 LE, executable NUL cwd | a program started |
//! | `F` | cwd | a `fork` child started |
//! | `C` | cwd | the working directory changed |
//! | `L` | identity, path | a shared library is mapped |
//! | `R` `W` | identity, path | opened for reading, for writing |
//! | `w` | path | about to be made by an `open` for writing, whose outcome follows |
//! | `I` | identity, path | looked at with `stat`, and a regular file |
//! | `D` `S` | path | listed; looked at and there |
//! | `H` | | the working directory was asked for |
//! | `M` | path | looked for and not there |
//! | `O` | path | and not even a link is there |
//! | `K` | path | removed, or renamed to something else |
//! | `Y` `Z` | length: u16 LE, path, target | a link was read; a path was resolved |
//! | `V` | name | an environment variable was asked for |
//! | `J` | | the program has the list of all variables, `environ` |
//! | `P` | pid, path | this pid is about to become the program at path |
//! | `N` | pid, path | this pid was spawned as the program at path |
//! | `A` | path | a child that the C library starts itself becomes the program at path |
//! | `Q` | pid | the `P` of this pid failed |
//! | `E` | count: u32 LE | the process ends (or, before `P`, may end), having made count records |
//! | `x` | path | it may be executed, `access` said |
//! | `l` | number: u8 | this limit of the process was asked for; 255 is its `umask` |
//! | `t` | | a moment as a date and a time was asked for |
//! | `i` | | standard input was read, which we left empty |
//! | `r` | | a write found no room |
//! | `q` | text | as `U`, if the program is not a known one |
//! | `U` | text | something happened that a record cannot say: do not trust the log |
//!
//! An identity is what `fstat` said when the file was opened, or `stat` when it was looked at: device, inode, size (u64 LE), mtime, ctime (i64 LE, in
//! nanoseconds), mode (u32 LE), device number of a special file (u64 LE).
//!
//! An image that has neither `E` nor a `P` answered by an `X`, or fewer records than `E` counts, lost
//! records. A `P` or `N` without an `X` of the same file is a program that could not be watched (static, set-uid), and
//! so is the program that started an `X` that was not announced.
//!
//! # How
//!
//! Records gather in a static buffer which goes to the log in one appending `write`, with the file
//! opened and closed around it: no descriptor stays open that the program could close, reuse or inherit.
//! Nothing allocates; the only lock is a bounded spin lock; `errno` is as the real function left it.
//!
//! # Floor
//!
//! No symbol versions are recorded: the library loads on any glibc from 2.17 (2.4 in theory), older or
//! newer than the build machine's. Real functions are found when first called, by `symbols`.
#![no_std]
#![allow(unsafe_code)] // The C library's functions are replaced here: every line is an FFI boundary.

use core::ffi::{c_long, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

mod asked;
mod exec;
mod files;
mod names;
mod sockets;
mod state;
mod streams;
mod symbols;
mod sys;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        // SAFETY: ends the process; nothing here panics, this only satisfies the language.
        unsafe { sys::syscall(sys::SYS_EXIT_GROUP, 127 as c_long) };
    }
}

// `core` was built to unwind and its frames name the routine that std defines. None ever runs: panics
// end the process. By assembly, since only a local symbol is certain not to replace another library's.
core::arch::global_asm!(
    ".hidden rust_eh_personality",
    ".globl rust_eh_personality",
    "rust_eh_personality:",
    ".long 0"
);

/// The real function behind a hook, found when first needed.
pub(crate) struct Real(AtomicPtr<c_void>);

impl Real {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }

    /// `None` where this C library has no such function. `name` ends in NUL.
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

/// Defines exported functions that call the real one and then look at what it returned.
///
/// `fn name(args) -> type, failure, |result, error| { log }` where `error` is 0 or the errno. With `before { log }` after
/// the failure, that is logged before the real one is called.
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

extern "C" fn start() {
    // SAFETY: runs once, before main, on the only thread.
    unsafe {
        let errno = *sys::__errno_location();
        state::started();
        exec::resolve_early();
        streams::resolve_early();
        *sys::__errno_location() = errno;
    }
}

extern "C" fn finish() {
    state::finished();
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

#[used]
#[unsafe(link_section = ".fini_array")]
static FINISH: extern "C" fn() = finish;
