//! Whether a tool made something of the private name that it was told for its output: a text in a file, or another file's name.
//! With nvcc it is the user's name.

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use memchr::memmem::{Finder, find};

/// As much of a file as is searched at once: on the stack, and longer than any path.
const PIECE: usize = 32 << 10;

/// Whether a file has a name in it.
pub fn is_in_file(finder: &Finder<'_>, path: &Path) -> io::Result<bool> {
    let file = File::open(path)?;
    let mut piece = [0; PIECE];
    let overlap = finder.needle().len();
    let (mut at, mut kept) = (0, 0);
    loop {
        match file.read_at(&mut piece[kept..], at) {
            Ok(0) => return Ok(false),
            Ok(read) => {
                at += read as u64;
                let filled = kept + read;
                if finder.find(&piece[..filled]).is_some() {
                    return Ok(true);
                }
                // The name may begin in this piece and end in the next.
                kept = filled.min(overlap);
                piece.copy_within(filled - kept..filled, 0);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Whether the name of a file elsewhere is made from one in the private folder: gcc looks for the profile of an object in one
/// folder for all, under the object's whole name, with `#` for each slash.
pub fn is_in_name(path: &Path, scratch: &Path) -> bool {
    let name = scratch.file_name().unwrap_or_default();
    let is_in = find(path.as_os_str().as_bytes(), name.as_bytes()).is_some();
    is_in && !name.is_empty() && !path.starts_with(scratch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_name_made_from_one_in_the_folder_has_the_folders_own() {
        let is_made = |path: &str| is_in_name(Path::new(path), Path::new("/t/0123abcd"));
        assert!(is_made("/p//t/0123abcd/out/a.gcda") && is_made("/p/#t#0123abcd#out#a.gcda"));
        assert!(!is_made("/t/0123abcd/out/a.gcda") && !is_made("/p/a.gcda"));
    }

    #[test]
    fn a_name_is_found_at_every_place_of_a_file() {
        let file = tempfile::NamedTempFile::new().expect("file");
        let finder = Finder::new("/w/a");
        for place in (PIECE - 5..PIECE + 2).chain(2 * PIECE - 9..2 * PIECE + 2) {
            let mut text = vec![b' '; 3 * PIECE];
            text[place..place + 4].copy_from_slice(b"/w/a");
            fs::write(file.path(), &text).expect("write");
            assert!(is_in_file(&finder, file.path()).expect("read"), "{place}");
        }
    }
}
