//! Variables that change from call to call, and which of them the text of a program mentions.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::Path;

use warpcc_cache::regular_file;
use warpcc_watch::Observed;

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

/// Facts about the process that shells and interpreters ask for whenever they start. A fact counts only if one of these words
/// is in a program's text. A program that is no script has the name of the function in it.
const ASKED_AT_START: [(u8, &[&str]); 4] = [
    (
        Observed::USER,
        &["uid", "UID", "gid", "GID", "groups", "GROUPS"],
    ),
    (
        Observed::MACHINE,
        &["hostname", "HOSTNAME", "uname", "node", "@P}"],
    ),
    (Observed::TERMINALS, &["isatty", "ttyname", "-t "]),
    (
        Observed::INPUT,
        &["isatty", "ttyname", "-t ", "stdin", "/fd/"],
    ),
];
/// Of these, what interpreters ask their streams. Their own texts mention it, too, so only scripts are searched for it.
const OF_SCRIPTS: [u8; 2] = [Observed::TERMINALS, Observed::INPUT];

/// Whether a fact is about the streams of a program.
pub(crate) fn is_of_streams(fact: u8) -> bool {
    OF_SCRIPTS.contains(&fact)
}

/// What a program's text mentions.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Mentioned {
    /// Volatile variables.
    pub variables: BTreeSet<String>,
    /// Facts about the process.
    pub facts: BTreeSet<u8>,
}

impl Mentioned {
    /// Adds what another text mentions.
    pub(crate) fn extend(&mut self, other: Self) {
        self.variables.extend(other.variables);
        self.facts.extend(other.facts);
    }

    /// Whether a fact that was asked for counts.
    pub(crate) fn counts(&self, fact: u8) -> bool {
        let mut at_start = ASKED_AT_START.iter();
        !at_start.any(|(number, _)| *number == fact) || self.facts.contains(&fact)
    }
}

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

/// What the text of a program mentions. A text that cannot be searched may mention everything.
pub(crate) fn mentioned_by(program: &Path) -> Mentioned {
    search(program).unwrap_or_else(|_| Mentioned {
        variables: VOLATILE.iter().copied().map(str::to_owned).collect(),
        facts: ASKED_AT_START.iter().map(|(number, _)| *number).collect(),
    })
}

fn search(program: &Path) -> io::Result<Mentioned> {
    let mut file = regular_file::open(program)?;
    if file.metadata()?.len() > LONGEST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut found = Mentioned::default();
    let mut text = Vec::new();
    let mut is_script = true;
    while (&mut file).take(PIECE).read_to_end(&mut text)? > 0 {
        let variables = mentioned(&text).map(str::to_owned);
        found.variables.extend(variables);
        let has = |word: &&str| memchr::memmem::find(&text, word.as_bytes()).is_some();
        is_script &= !text.contains(&0);
        for (number, words) in ASKED_AT_START {
            if !found.facts.contains(&number) && words.iter().any(has) {
                found.facts.insert(number);
            }
        }
        text.drain(..text.len().saturating_sub(OVERLAP));
    }
    if !is_script {
        found.facts.retain(|fact| !OF_SCRIPTS.contains(fact));
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
        Ok(mentioned_by(&program).variables.into_iter().collect())
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
        let all = mentioned_by(Path::new("/nonexistent/program"));
        assert_eq!(all.variables.len(), VOLATILE.len());
        assert!(ASKED_AT_START.iter().all(|(fact, _)| all.counts(*fact)));
        assert!(!Mentioned::default().counts(Observed::USER));
        assert!(Mentioned::default().counts(Observed::PROCESSORS));
        assert!(is_volatile(OsStr::new("PATH")) && !is_volatile(OsStr::new("HOME")));
    }
}
