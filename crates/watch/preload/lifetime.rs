//! The beginning and the end of a log: this process starts, forks, becomes another program, or ends.

use core::ffi::{CStr, c_char, c_int, c_void};

use crate::state::{self, State, path, with};
use crate::{libraries, streams, symbols, sys};

/// Logs that the process is about to become another program, or to end without its destructors.
///
/// In a vfork child nothing is done: the buffer belongs to the parent and outlives the child.
pub(crate) fn leaving() {
    let mut own = false;
    with(|state| own = state.is_owner());
    if own {
        streams::ending();
        libraries::log();
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
    // This is called without our lock, like the next.
    if symbols::main_program_has_environ() {
        path(b'J', b"");
    }
    libraries::log_first();
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
    // This is the only thread.
    state::unlock();
    with(State::begin_again);
    // SAFETY: as above.
    unsafe { *sys::__errno_location() = errno };
}
