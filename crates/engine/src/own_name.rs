//! Finds out whether a tool used the path of its output: it wrote the path into a file, or made another file's name from it.
//! That path is in the scratch folder. With nvcc it would be the user's path, so the result would differ.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use memchr::memmem::{Finder, find};
use warpcc_cache::regular_file;

/// The size of a piece that is searched at once: it fits on the stack, and is longer than any path.
const PIECE: usize = 32 << 10;

/// Whether a file contains a name.
pub fn is_in_file(finder: &Finder<'_>, path: &Path) -> io::Result<bool> {
    let file = regular_file::open(path)?;
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

/// Adds the words of `text` that are the name, or a path below it.
pub fn collect(finder: &Finder<'_>, text: &[u8], words: &mut BTreeSet<Vec<u8>>) {
    for at in finder.find_iter(text) {
        let rest = &text[at..];
        let behind = &rest[finder.needle().len()..];
        let more = behind.iter().position(|&byte| !in_paths(byte));
        let more = &behind[..more.unwrap_or(behind.len())];
        if more.first().is_none_or(|&byte| byte == b'/') {
            words.insert(rest[..finder.needle().len() + more.len()].to_vec());
        }
    }
}

/// Whether this byte continues a path. The exact rule does not matter, as long as it is the same for inputs and
/// results.
const fn in_paths(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80 || matches!(byte, b'/' | b'.' | b'_' | b'-' | b'+')
}

/// Whether a file contains the name of an output in `outputs`, or a name that is made from one of the plan's files (`own`).
/// Precompiled headers name the path where they were made; objects name the compiler's arguments and the path of their
/// profile.
pub fn is_written_in(
    file: &Path,
    scratch: &Path,
    outputs: &Path,
    own: &dyn Fn(&Path) -> bool,
) -> bool {
    let finder = Finder::new(scratch.as_os_str().as_bytes());
    let kept = scratch.join("k");
    let is_made_up = |word: &Vec<u8>| {
        let path = Path::new(OsStr::from_bytes(word));
        // Texts contain names of the plan's files, and such a name may continue.
        let begins = |end| own(Path::new(OsStr::from_bytes(&word[..end])));
        // Debug information names the folders of the plan's files.
        let is_of_plan = || path.is_dir() || (kept.as_os_str().len()..=word.len()).any(begins);
        path.starts_with(outputs) || path.parent() == Some(&kept) && !is_of_plan()
    };
    let is_file = fs::metadata(file).is_ok_and(|found| found.is_file());
    if !is_file {
        return false;
    }
    let mut words = BTreeSet::new();
    let searched = match is_in_file(&finder, file) {
        Ok(true) => regular_file::read(file).map(|content| collect(&finder, &content, &mut words)),
        Ok(false) => Ok(()),
        Err(error) => Err(error),
    };
    match searched {
        Ok(()) => words.iter().any(is_made_up),
        // A file that cannot be searched may contain anything.
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Whether a message names a path in the scratch folder that is not an intermediate file of nvcc's. With nvcc the message
/// would name another path: the output's own, or one in `TMPDIR`.
pub fn is_shown(message: &[u8], scratch: &Path) -> bool {
    let finder = Finder::new(scratch.as_os_str().as_bytes());
    let is_intermediate = |rest: &[u8]| {
        let name = rest.strip_prefix(b"/k/").unwrap_or_default();
        let end = name.iter().position(|&byte| !in_paths(byte));
        let name = &name[..end.unwrap_or(name.len())];
        // Files that the overlap of steps adds are in folders of their own, which nvcc does not have.
        !name.is_empty() && !name.contains(&b'/') && !name.ends_with(b".whole.s")
    };
    let mut found = finder.find_iter(message);
    found.any(|at| !is_intermediate(&message[at + finder.needle().len()..]))
}

/// Whether a file outside the private folder has a name that is made from a name in it. gcc can keep the profiles of
/// all objects in one folder. The name of each profile is then the object's whole path, with `#` for each slash.
pub fn is_in_name(path: &Path, scratch: &Path) -> bool {
    let name = scratch.file_name().unwrap_or_default();
    let is_in = find(path.as_os_str().as_bytes(), name.as_bytes()).is_some();
    is_in && !name.is_empty() && !path.starts_with(scratch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_made_from_one_in_the_folder_has_the_folders_own() {
        let is_made = |path: &str| is_in_name(Path::new(path), Path::new("/t/0123abcd"));
        assert!(is_made("/p//t/0123abcd/out/a.gcda") && is_made("/p/#t#0123abcd#out#a.gcda"));
        assert!(!is_made("/t/0123abcd/out/a.gcda") && !is_made("/p/a.gcda"));
    }

    #[test]
    fn a_message_may_name_intermediate_files_only() {
        let shows = |text: &str| is_shown(text.as_bytes(), Path::new("/t/0123abcd"));
        assert!(!shows("x: error") && !shows("ld: /t/0123abcd/k/a.o: in function `f'"));
        for path in [
            "out/4/a.o",
            "k/host/a.cpp",
            "k/real/a.c",
            "k/",
            "k",
            "tmp/cc1.s",
            "k/a.whole.s",
        ] {
            assert!(
                shows(&format!("/t/0123abcd/k/a.o '/t/0123abcd/{path}'")),
                "{path}"
            );
        }
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

    fn words(name: &str, text: &str) -> Vec<String> {
        let mut words = BTreeSet::new();
        collect(&Finder::new(name), text.as_bytes(), &mut words);
        words
            .into_iter()
            .map(|word| String::from_utf8(word).expect("text"))
            .collect()
    }

    #[test]
    fn a_word_is_the_folder_or_a_path_below_it() {
        assert_eq!(words("/w/a", "x /w/a y"), ["/w/a"]);
        assert_eq!(words("/w/a", "\"/w/a/b.h\" /w/a\0"), ["/w/a", "/w/a/b.h"]);
        assert_eq!(words("/w/a", "/w/ab /w/a.o /w /w/b"), [""; 0]);
        assert_eq!(words("/w/a", "/w/a"), ["/w/a"]);
    }
}
