//! Variables that change from call to call, and which of them the text of a program mentions.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::Path;

use warpcc_cache::regular_file;

/// Variables that change from call to call or from shell to shell. If a program may have looked at every variable, these
/// count only if the program's text mentions them.
const VOLATILE: &[&str] = &[
    "_",
    "SHLVL",
    "OLDPWD",
    "PWD",
    "PATH",
    "MAKEFLAGS",
    "MFLAGS",
    "MAKELEVEL",
    "MAKE_TERMOUT",
    "MAKE_TERMERR",
    "TMPDIR",
    "TMP",
    "TEMP",
    "TEMPDIR",
    "LD_PRELOAD",
    "TERM",
    // A folder that each run of pip names anew.
    "PIP_BUILD_TRACKER",
];

/// The longest text that is searched. ptxas of CUDA 13.2 has 47 MB.
const LONGEST: u64 = 256 << 20;
/// How much of a text is in memory at a time.
const PIECE: u64 = 1 << 20;
/// How much of a piece is searched again with the next one, because a name may lie in both: more than the longest name.
const OVERLAP: usize = 64;

/// Whether the variable changes from call to call.
pub(super) fn is_volatile(name: &OsStr) -> bool {
    VOLATILE.iter().any(|volatile| name == *volatile)
}

/// The volatile variables that the text of a program mentions. A text that cannot be searched may mention all of them.
pub(crate) fn mentioned_by(program: &Path) -> BTreeSet<String> {
    let all = || VOLATILE.iter().copied().map(str::to_owned).collect();
    search(program).unwrap_or_else(|_| all())
}

fn search(program: &Path) -> io::Result<BTreeSet<String>> {
    let mut file = regular_file::open(program)?;
    if file.metadata()?.len() > LONGEST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut found = BTreeSet::new();
    let mut text = Vec::new();
    while (&mut file).take(PIECE).read_to_end(&mut text)? > 0 {
        found.extend(mentioned(&text).map(str::to_owned));
        text.drain(..text.len().saturating_sub(OVERLAP));
    }
    Ok(found)
}

/// The volatile variables that a text mentions. `_` and the shell's level are in every text, and no text depends on them.
fn mentioned(text: &[u8]) -> impl Iterator<Item = &'static str> + '_ {
    let has = |word: &str| memchr::memmem::find(text, word.as_bytes()).is_some();
    VOLATILE.iter().copied().filter(move |name| match *name {
        "_" | "SHLVL" => false,
        // Calls of `pwd` and `os.getcwd()`
        "PWD" | "OLDPWD" => has("PWD") || has("pwd") || has("cwd"),
        name => has(name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &[u8]) -> io::Result<Vec<String>> {
        let folder = tempfile::tempdir()?;
        let program = folder.path().join("program");
        std::fs::write(&program, text)?;
        Ok(mentioned_by(&program).into_iter().collect())
    }

    #[test]
    fn a_name_is_found_wherever_it_stands_in_a_large_program() -> io::Result<()> {
        let piece = usize::try_from(PIECE).expect("a size");
        for at in [
            0,
            piece - 20,
            piece - 3,
            piece,
            2 * piece + 5,
            3 * piece - 6,
        ] {
            let mut text = vec![b'.'; 3 * piece];
            text[at..at + 6].copy_from_slice(b"TMPDIR");
            // `TMP` is a part of the name.
            assert_eq!(names(&text)?, ["TMP", "TMPDIR"], "{at}");
        }
        assert_eq!(names(b"SHLVL _ os.getcwd()")?, ["OLDPWD", "PWD"]);
        assert_eq!(names(b"")?, [""; 0]);
        Ok(())
    }

    #[test]
    fn a_program_that_cannot_be_read_may_mention_all() {
        let names = mentioned_by(Path::new("/nonexistent/program"));
        assert_eq!(names.len(), VOLATILE.len());
        assert!(is_volatile(OsStr::new("PATH")) && !is_volatile(OsStr::new("HOME")));
    }
}
