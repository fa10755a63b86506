//! A library that is preloaded into a tool which runs in another folder than the one that its result must name. It reports
//! the folder in `WARPCC_FOLDER` as the working directory. Relative paths still start from the real one.
#![no_std]
#![allow(unsafe_code)] // A function of the C library is replaced here.

use core::ffi::{c_char, c_int, c_void};

const ENOENT: c_int = 2;
const ERANGE: c_int = 34;

unsafe extern "C" {
    fn getenv(name: *const c_char) -> *const c_char;
    fn malloc(size: usize) -> *mut c_void;
    fn unsetenv(name: *const c_char) -> c_int;
    fn strlen(text: *const c_char) -> usize;
    fn __errno_location() -> *mut c_int;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

// This is never called, as in the library that watches.
core::arch::global_asm!(
    ".hidden rust_eh_personality",
    ".globl rust_eh_personality",
    "rust_eh_personality:",
    ".long 0"
);

extern "C" fn start() {
    // LLVM reads this first, and bubblewrap sets it.
    // SAFETY: runs once, before main, on the only thread.
    unsafe { unsetenv(c"PWD".as_ptr()) };
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// `getcwd(3)` with glibc's extension: without a buffer it allocates one.
#[unsafe(no_mangle)]
unsafe extern "C" fn getcwd(buffer: *mut c_char, size: usize) -> *mut c_char {
    // SAFETY: the buffer is as long as the caller says, or ours and as long as requested; the name ends in NUL.
    unsafe {
        let folder = getenv(c"WARPCC_FOLDER".as_ptr());
        if folder.is_null() {
            *__errno_location() = ENOENT;
            return core::ptr::null_mut();
        }
        let length = strlen(folder) + 1;
        let to = if buffer.is_null() {
            malloc(if size > length { size } else { length }).cast()
        } else if size < length {
            *__errno_location() = ERANGE;
            core::ptr::null_mut()
        } else {
            buffer
        };
        if !to.is_null() {
            core::ptr::copy_nonoverlapping(folder, to, length);
        }
        to
    }
}
