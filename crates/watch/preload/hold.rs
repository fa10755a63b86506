//! Ends a command before it changes a file that is not its own. warpcc then runs it again when its turn has come.
//!
//! nvcc runs its commands one after another, and stops at the first that fails. warpcc starts commands early. A command that
//! only writes its own outputs may be ended without a trace, but one that writes another file may not: nvcc would not have
//! started it, or not yet. So such a command ends at its first attempt, and nothing has been changed.

use core::ffi::{CStr, c_int};

use crate::files::{is_own_stream, named};
use crate::identity::Identity;
use crate::own_files;
use crate::state::{self, LONGEST};
use crate::sys::{self, AT_FDCWD, EACCES, ENOENT, ENOTDIR, O_ACCMODE, O_CREAT, O_PATH, O_TMPFILE, O_TRUNC, Path};

/// What a call would do to a name.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Change {
    /// It makes the file, or writes to the one that is there.
    Write,
    /// It does something only if nothing has the name.
    Make,
    /// It does something to the file, if there is one.
    Modify,
    /// It does something to the name itself, not to what is behind a link, if something has the name.
    Take,
}

/// Ends the process group if `path` is not below the folder of the call's own files, and the call would change something.
///
/// # Safety
/// `path` is null or NUL-terminated.
pub(crate) unsafe fn before(change: Change, directory: c_int, path: Path) {
    if !own_files::holds() {
        return;
    }
    // SAFETY: as the caller promises.
    if unsafe { sys::text(path) }.is_none_or(<[u8]>::is_empty) {
        // It is about the open file.
        return before_descriptor(directory);
    }
    let mut full = [0_u8; LONGEST];
    // SAFETY: as the caller promises.
    let Some(name) = (unsafe { named(directory, path, &mut full) }) else {
        return;
    };
    let mut whole = [0_u8; LONGEST];
    let name = match name.first() {
        Some(b'/') => name,
        _ => sys::absolute(name, &mut whole),
    };
    // SAFETY: a name was found, so the path is not null.
    let path = unsafe { CStr::from_ptr(path) };
    let (target, itself) = (Identity::at(directory, path, 0), Identity::at(directory, path, NOFOLLOW));
    let follows = itself.is_link() && matches!(change, Change::Write | Change::Modify);
    let place = if follows {
        Place::of(directory, path)
    } else {
        Place::of_parent(directory, path)
    };
    let is_there = itself.mode != 0;
    let is_harmless = match (place, change) {
        (Place::Own | Place::Nowhere, _) => true,
        // The terminal and `/dev/null`, or the program's own messages.
        (_, Change::Write) => target.is_character_device() || is_own_stream(&target),
        (_, Change::Make) => is_there,
        (_, Change::Modify | Change::Take) => !is_there,
    };
    if !is_harmless {
        state::end_held(name);
    }
}

/// The same for a change of an open file, which may have been opened for reading.
pub(crate) fn before_descriptor(file: c_int) {
    if file < 0 || !own_files::holds() {
        return;
    }
    let mut real = [0_u8; LONGEST];
    let name = sys::name_of_open(file, &mut real);
    // A file without a name is nobody else's.
    let is_named = name.first() == Some(&b'/') && !name.ends_with(b" (deleted)");
    if is_named && !own_files::is_own(name) && !Identity::of_open(file).is_character_device() {
        state::end_held(name);
    }
}

/// Ends the process group before it becomes or starts `path`, if that program would not know this rule: the library is not in
/// its environment.
///
/// # Safety
/// `path` is null or NUL-terminated. `environment` is a list of such strings that ends in null, or is null.
pub(crate) unsafe fn before_program(path: Path, environment: *const Path) {
    // SAFETY: as the caller promises.
    unsafe {
        if own_files::holds() && !own_files::is_handed_on(environment) {
            state::end_held(sys::text(path).unwrap_or_default());
        }
    }
}

/// Where a file is, or would be.
enum Place {
    /// Below the folder of the call's own files.
    Own,
    /// Elsewhere, or not known.
    Other,
    /// There is no such place, or it is a pipe without a name.
    Nowhere,
}

impl Place {
    /// The place of what is at the end of the path.
    fn of(directory: c_int, path: &CStr) -> Place {
        let file = match sys::open_place(directory, path) {
            Ok(file) => file,
            // A link that leads to nothing may be made there.
            Err(_) => return Place::Other,
        };
        let mut real = [0_u8; LONGEST];
        let name = sys::name_of_open(file, &mut real);
        sys::close(file);
        match name.first() {
            Some(b'/') if own_files::is_own(name) => Place::Own,
            Some(b'/') | None => Place::Other,
            Some(_) => Place::Nowhere,
        }
    }

    /// The place of a name, which need not exist.
    fn of_parent(directory: c_int, path: &CStr) -> Place {
        let mut text = path.to_bytes();
        while let [shorter @ .., b'/'] = text {
            text = shorter;
        }
        let slash = text.iter().rposition(|byte| *byte == b'/');
        let last = slash.map_or(text, |at| &text[at + 1..]);
        let folder: &[u8] = match slash {
            _ if matches!(last, b"" | b"." | b"..") => return Place::of(directory, path),
            None => b".",
            Some(0) => b"/",
            Some(at) => &text[..at],
        };
        let mut folder_text = [0_u8; LONGEST];
        if folder.len() >= LONGEST {
            return Place::Other;
        }
        folder_text[..folder.len()].copy_from_slice(folder);
        let Ok(folder) = CStr::from_bytes_until_nul(&folder_text) else {
            return Place::Other;
        };
        let file = match sys::open_place(directory, folder) {
            Ok(file) => file,
            // The call itself fails, too.
            Err(ENOENT | ENOTDIR | EACCES) => return Place::Nowhere,
            Err(_) => return Place::Other,
        };
        let mut real = [0_u8; LONGEST];
        let is_own = own_files::is_own_folder(sys::name_of_open(file, &mut real));
        sys::close(file);
        if is_own { Place::Own } else { Place::Other }
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
        let mode = sys::text(mode).unwrap_or_default();
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

/// Whether something has this name, even if it is a link that leads nowhere.
///
/// # Safety
/// As for [`before`].
pub(crate) unsafe fn is_itself_there(directory: c_int, path: Path) -> bool {
    // SAFETY: as the caller promises.
    !path.is_null() && Identity::at(directory, unsafe { CStr::from_ptr(path) }, NOFOLLOW).mode != 0
}
