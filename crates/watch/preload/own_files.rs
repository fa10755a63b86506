//! Which files this program may change, if it was started early: those of the call, and no others.
//!
//! [`hold`](crate::hold) says what happens when it is about to change another.

use core::ffi::CStr;

use crate::state::{LONGEST, with};
use crate::sys::{self, Path, text};

/// The variable with the folder of the call's own files.
const HOLD: &[u8] = b"WARPCC_WATCH_HOLD";

/// What `WARPCC_WATCH_HOLD` says.
pub(crate) struct OwnFiles {
    /// The folders of the call's own files, in lines, without a slash at the end. It is empty where other files may be changed.
    folders: [u8; LONGEST],
    length: usize,
    /// This library's path in `LD_PRELOAD`, if there is a folder of the call's own files.
    library: [u8; LONGEST],
    library_length: usize,
}

impl OwnFiles {
    pub(crate) const NONE: OwnFiles = OwnFiles {
        folders: [0; LONGEST],
        length: 0,
        library: [0; LONGEST],
        library_length: 0,
    };

    /// Reads which files this program may change: `<program>:...:<folders>` means that it may change those below the folders,
    /// which are in lines, unless it is one of the programs.
    pub(crate) fn read(&mut self, executable: &[u8]) {
        let Some(value) = sys::variable(HOLD) else {
            return;
        };
        let itself = executable.rsplit(|byte| *byte == b'/').next();
        let mut rest = value.to_bytes();
        while rest.first().is_some_and(|byte| *byte != b'/') {
            let Some(end) = rest.iter().position(|byte| *byte == b':') else {
                return;
            };
            if itself == Some(&rest[..end]) {
                return;
            }
            rest = &rest[end + 1..];
        }
        if rest.len() <= self.folders.len() {
            self.folders[..rest.len()].copy_from_slice(rest);
            self.length = rest.len();
        }
        // The user's libraries come first.
        let libraries = sys::variable(b"LD_PRELOAD").map_or(&b""[..], CStr::to_bytes);
        let library = libraries.rsplit(|byte| *byte == b':').next().unwrap_or_default();
        if library.len() <= self.library.len() {
            self.library[..library.len()].copy_from_slice(library);
            self.library_length = library.len();
        }
    }

    /// What follows the name of a folder of the call's own files; empty for the folder itself.
    fn rest<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        let folders = self.folders[..self.length].split(|byte| *byte == b'\n');
        let mut rests = folders.filter_map(|folder| path.strip_prefix(folder));
        rests.find(|rest| matches!(rest.first(), None | Some(b'/')))
    }
}

/// Whether this program may change only the call's own files.
pub(crate) fn holds() -> bool {
    let mut holds = false;
    with(|state| holds = state.own.length > 0);
    holds
}

/// Whether a real path is below the folder of the call's own files.
pub(crate) fn is_own(path: &[u8]) -> bool {
    let mut is_own = false;
    with(|state| is_own = state.own.rest(path).is_some_and(|rest| rest.first() == Some(&b'/')));
    is_own
}

/// Whether a real path is that folder, or below it.
pub(crate) fn is_own_folder(path: &[u8]) -> bool {
    let mut is_own = false;
    with(|state| is_own = state.own.rest(path).is_some());
    is_own
}

/// Whether a program with these variables loads this library, and knows what it may change.
///
/// # Safety
/// `environment` is a list of NUL-terminated strings that ends in null, or is null.
pub(crate) unsafe fn is_handed_on(environment: *const Path) -> bool {
    let mut found = [false; 3];
    let mut entry = environment;
    // SAFETY: as the caller promises.
    while let Some(variable) = (!entry.is_null()).then(|| unsafe { text(*entry) }).flatten() {
        if let Some(value) = variable.strip_prefix(b"LD_PRELOAD=") {
            with(|state| {
                let library = &state.own.library[..state.own.library_length];
                found[0] |= value.windows(library.len().max(1)).any(|part| part == library);
            });
        }
        found[1] |= variable.starts_with(b"WARPCC_WATCH_LOG=/");
        found[2] |= variable.starts_with(HOLD) && variable.get(HOLD.len()) == Some(&b'=');
        // SAFETY: this was not the end.
        entry = unsafe { entry.add(1) };
    }
    found == [true; 3]
}
