//! Hooks of the functions that talk to servers, whose answers are in no file.

use core::ffi::{c_int, c_uint};

use crate::hook;
use crate::state;
use crate::sys::ConstAny;

hook! {
    fn connect(socket: c_int, to: ConstAny, length: c_uint) -> c_int, -1, |r, e| spoken(to, length);
    fn sendto(socket: c_int, text: ConstAny, size: usize, flags: c_int, to: ConstAny, length: c_uint) -> isize, -1,
        |r, e| spoken(to, length);
}

/// Logs that a program talks to this address, whether or not a server answers.
///
/// # Safety
/// `to` is null or as long as `length` says.
unsafe fn spoken(to: ConstAny, length: c_uint) {
    const LOCAL: u16 = 1;
    const INTERNET: u16 = 2;
    const INTERNET_6: u16 = 10;
    if to.is_null() || length < 2 {
        return;
    }
    // SAFETY: as the caller promises; every address begins with its family.
    let family = unsafe { to.cast::<u16>().read_unaligned() };
    if matches!(family, LOCAL | INTERNET | INTERNET_6) {
        state::path(b'U', b"it talked to a server");
    }
}
