//! Ends a command before it changes a file that is not its own. warpcc then runs it again when its turn has come.
//!
//! nvcc runs its commands one after another, and stops at the first that fails. warpcc starts commands early. A command that
//! only writes its own outputs may be ended without a trace, but one that writes another file may not: nvcc would not have
//! started it, or not yet. So such a command ends at its first attempt, and nothing has been changed.

use core::ffi::{CStr, c_int};

use crate::files::{is_own_stream, named};
use crate::state::{self, LONGEST};
use crate::sys::{self, AT_FDCWD, Identity, O_ACCMODE, O_CREAT, O_PATH, O_TMPFILE, O_TRUNC, Path};

/// What a call would do to a name.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Change {
    /// It makes the file, or writes to the one that is there.
    Write,
    /// It does something only if nothing has the name.
    Make,
    /// It does something only if something has the name.
    Modify,
}

/// Ends the process group if `path` is not below the folder of the call's own files, and the call would change something.
///
/// # Safety
/// `path` is null or NUL-terminated.
pub(crate) unsafe fn before(change: Change, directory: c_int, path: Path) {
    if !state::holds() {
        return;
    }
    let mut full = [0_u8; LONGEST];
    // SAFETY: as the caller promises.
    let Some(name) = (unsafe { named(directory, path, &mut full) }) else {
        return;
    };
    let mut whole = [0_u8; LONGEST];
    let name = match name.first() {
        Some(b'/') => name,
        _ => absolute(name, &mut whole),
    };
    if state::is_own(name) {
        return;
    }
    // SAFETY: a name was found, so the path is not null.
    let path = unsafe { CStr::from_ptr(path) };
    let (target, itself) = (Identity::at(directory, path, 0), Identity::at(directory, path, NOFOLLOW));
    let is_there = itself.mode != 0;
    let is_harmless = match change {
        // The terminal and `/dev/null`, or the program's own messages.
        Change::Write => target.is_character_device() || is_own_stream(&target),
        Change::Make => is_there,
        Change::Modify => !is_there,
    };
    if !is_harmless {
        state::end_held(name);
    }
}

/// The same for an `open` with these flags.
///
/// # Safety
/// As for [`before`].
pub(crate) unsafe fn before_open(directory: c_int, path: Path, flags: c_int) {
    // A file of `O_TMPFILE` has no name.
    if flags & (O_PATH | O_TMPFILE) != 0 || flags & (O_ACCMODE | O_CREAT | O_TRUNC) == 0 {
        return;
    }
    // SAFETY: passed on.
    unsafe {
        if flags & O_CREAT == 0 && !is_there(directory, path) {
            return;
        }
        before(Change::Write, directory, path);
    }
}

/// The same for an `fopen` with this mode.
///
/// # Safety
/// As for [`before`], for both arguments.
pub(crate) unsafe fn before_stream(path: Path, mode: Path) {
    // SAFETY: as the caller promises.
    unsafe {
        let mode = state::text(mode).unwrap_or_default();
        let flags = match mode.first() {
            Some(b'r') if mode.contains(&b'+') => O_ACCMODE,
            Some(b'r') | None => return,
            _ => O_CREAT,
        };
        before_open(AT_FDCWD, path, flags);
    }
}

const NOFOLLOW: c_int = 0x100;

/// Whether the path leads to something.
///
/// # Safety
/// As for [`before`].
pub(crate) unsafe fn is_there(directory: c_int, path: Path) -> bool {
    // SAFETY: as the caller promises.
    !path.is_null() && Identity::at(directory, unsafe { CStr::from_ptr(path) }, 0).mode != 0
}

/// The name behind the working directory, in `whole`. What is too long for it is cut off, and is nobody's own file.
fn absolute<'w>(name: &[u8], whole: &'w mut [u8; LONGEST]) -> &'w [u8] {
    let start = sys::cwd(&mut whole[..]).len();
    let end = start + 1 + name.len();
    if end > whole.len() {
        return &whole[..0];
    }
    whole[start] = b'/';
    whole[start + 1..end].copy_from_slice(name);
    &whole[..end]
}
