//! Hooks of the functions that talk to servers, whose answers are in no file.

use core::ffi::{c_int, c_uint};

use crate::hold::{self, Change};
use crate::hook;
use crate::state;
use crate::sys::{AT_FDCWD, ConstAny};

const LOCAL: u16 = 1;

hook! {
    fn connect(socket: c_int, to: ConstAny, length: c_uint) -> c_int, -1, |r, e| spoken(to, length);
    fn sendto(socket: c_int, text: ConstAny, size: usize, flags: c_int, to: ConstAny, length: c_uint) -> isize, -1,
        |r, e| spoken(to, length);
    fn bind(socket: c_int, to: ConstAny, length: c_uint) -> c_int, -1, before { hold_bind(to, length) }, |r, e| ();
}

/// Ends the process if it would make a socket with a name in a folder that is not the call's own.
///
/// # Safety
/// As for [`spoken`].
unsafe fn hold_bind(to: ConstAny, length: c_uint) {
    const FAMILY: usize = 2;
    let mut name = [0_u8; 109];
    let size = (length as usize).min(FAMILY + name.len() - 1);
    // SAFETY: as the caller promises.
    unsafe {
        if to.is_null() || size <= FAMILY || to.cast::<u16>().read_unaligned() != LOCAL {
            return;
        }
        let text = core::slice::from_raw_parts(to.cast::<u8>().add(FAMILY), size - FAMILY);
        name[..text.len()].copy_from_slice(text);
        // The name is empty for a socket that has no file.
        if name[0] != 0 {
            hold::before(Change::Make, AT_FDCWD, name.as_ptr().cast());
        }
    }
}

/// Logs that a program talks to this address, whether or not a server answers.
///
/// # Safety
/// `to` is null or as long as `length` says.
unsafe fn spoken(to: ConstAny, length: c_uint) {
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
