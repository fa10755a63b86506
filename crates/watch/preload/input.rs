//! Tells whether a file is standard input, by whichever descriptor or name a program came to it.
//!
//! warpcc opens the standard input of a tool for reading and with `O_APPEND`: the user's file, or a stand-in where the user's
//! input can have one reader only (`/dev/null`, or a terminal that is at its end). These flags together mean nothing, so no
//! program opens a file with both, and `dup` and programs that are started hand them on. A name below `/proc` opens the device
//! once more, without this mark. Then the name tells: the kernel's own name of the device is another one.

use core::ffi::{CStr, c_int};

use crate::circumstances;
use crate::identity::Identity;
use crate::state::{self, LONGEST};
use crate::sys::{self, O_ACCMODE, O_APPEND, Path};

/// The device number of `/dev/null`.
const NULL_DEVICE: u64 = 1 << 8 | 3;

/// Whether the descriptor is the standard input that warpcc gave to this process or an earlier one.
pub(crate) fn is_input(file: c_int) -> bool {
    file >= 0 && sys::status_flags(file) & (O_ACCMODE | O_APPEND) == O_APPEND
}

/// Logs a read that found the end of a file, if that is standard input.
pub(crate) fn read_nothing(file: c_int) {
    if is_input(file) {
        read();
    }
}

/// Logs that standard input was read, or has an answer that is not the user's.
pub(crate) fn read() {
    state::path(b'i', b"");
}

/// Logs an `open` for reading of a device that is standard input, by a name. A file counts by its content. `identity` is that of
/// the opened file.
///
/// # Safety
/// `path` is null or NUL-terminated.
pub(crate) unsafe fn opened(identity: &Identity, path: Path, file: c_int) {
    // SAFETY: as the caller promises.
    if identity.is_character_device() && may_be_input(identity) && unsafe { !is_own_name(file, path) } {
        read();
    }
}

/// Logs a look at standard input by a name.
///
/// # Safety
/// `path` is null or NUL-terminated; it leads to a file if `directory` is where it begins.
pub(crate) unsafe fn looked(directory: c_int, path: Path) {
    // SAFETY: as the caller promises.
    if unsafe { sys::text(path) }.is_none_or(<[u8]>::is_empty) {
        // The `*at` functions look at the descriptor itself.
        return circumstances::looked_at_open(directory);
    }
    // SAFETY: as the caller promises; it is not null.
    let path = unsafe { CStr::from_ptr(path) };
    if !may_be_input(&Identity::at(directory, path, 0)) {
        return;
    }
    if let Ok(file) = sys::open_place(directory, path) {
        // SAFETY: the path ends in NUL.
        let is_input = unsafe { !is_own_name(file, path.as_ptr()) };
        sys::close(file);
        if is_input {
            circumstances::looked_at_input();
        }
    }
}

/// Whether a file may be what a tool has as standard input: `/dev/null`, whichever descriptor of whichever process leads to it,
/// or the same file as descriptor 0, if that is still standard input.
fn may_be_input(identity: &Identity) -> bool {
    let is_null = identity.special == NULL_DEVICE && identity.is_character_device();
    let is_descriptor = |own: Identity| (own.device, own.inode) == (identity.device, identity.inode);
    is_null || is_input(0) && is_descriptor(Identity::of_open(0))
}

/// Whether the path is the kernel's own name of a file, and that is no terminal: one by its own name is still the input.
///
/// # Safety
/// `path` is null or NUL-terminated.
unsafe fn is_own_name(file: c_int, path: Path) -> bool {
    let mut real = [0_u8; LONGEST];
    let real = sys::name_of_open(file, &mut real);
    // SAFETY: as the caller promises.
    let is_same = unsafe { sys::text(path) } == Some(real);
    let identity = Identity::of_open(file);
    is_same && (identity.special == NULL_DEVICE || !identity.is_character_device())
}
