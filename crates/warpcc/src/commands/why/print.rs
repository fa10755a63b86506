//! Prints why a command was, or was not, answered from the cache, in sentences.

use std::io::{self, Write};
use std::path::PathBuf;

use crate::commands::advice::advice_not_stored;

/// The comparison of a command with what the cache remembers of it.
#[derive(Debug, Clone)]
pub enum Why {
    /// The call would hit.
    Hit,
    /// The cache has no similar run, or has removed it.
    NeverSeen,
    /// The cache has a similar run.
    Differs {
        /// Differences in the command and its tools.
        parts: Vec<PartDifference>,
        /// Differences in the files that the command reads.
        files: Vec<FileDifference>,
    },
    /// The command is bypassed, for this reason.
    Fallback(String),
    /// Nothing differs, and its result is not stored, for this reason.
    NotStored(String),
    /// It compiles a file that is not there.
    NoSource(PathBuf),
    /// The command starts this program, which is no nvcc.
    OtherProgram(PathBuf),
}

/// A part of the key that differs.
#[derive(Debug, Clone)]
pub struct PartDifference {
    /// The part's name: `option`, `host compiler`, `environment CPATH`.
    pub name: String,
    /// The remembered value; `None` where there was none.
    pub old: Option<String>,
    /// The value now; `None` where the part is gone.
    pub new: Option<String>,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDifference {
    /// How it differs.
    pub kind: FileChange,
    /// The file.
    pub path: PathBuf,
}

/// How a file differs from what the cache remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// The compiled file has other contents.
    SourceChanged,
    /// An included file has other contents.
    HeaderChanged,
    /// It is gone.
    Missing,
    /// It was looked for and not there; now it is.
    Appeared,
    /// It is new, and found before this one.
    Shadows(PathBuf),
    /// It is no file but an environment variable, with another value.
    Variable,
}

/// Writes the answer, the summary first.
pub fn write(why: &Why, out: &mut dyn Write) -> io::Result<()> {
    match why {
        Why::Hit => writeln!(out, "It is in the cache: this command hits."),
        Why::NeverSeen => {
            writeln!(
                out,
                "Nothing like this command is in the cache: it was not compiled yet,"
            )?;
            writeln!(out, "or its entry was evicted (see warpcc cache size).")
        }
        Why::Fallback(reason) => {
            writeln!(
                out,
                "warpcc does not cache this command; nvcc runs it: {}.",
                one_line(reason)
            )
        }
        Why::NotStored(reason) => {
            writeln!(
                out,
                "Nothing differs, but the result of this command is not stored: {}.",
                one_line(reason)
            )?;
            match advice_not_stored(reason) {
                Some(advice) => writeln!(out, "What to do: {advice}."),
                None => Ok(()),
            }
        }
        Why::NoSource(file) => {
            let file = one_line(&file.to_string_lossy());
            writeln!(out, "{file} does not exist: there is nothing to compile.")
        }
        Why::OtherProgram(program) => {
            writeln!(
                out,
                "{} is not nvcc: warpcc runs it unchanged, and stores nothing.",
                one_line(&program.to_string_lossy())
            )
        }
        Why::Differs { parts, files } if parts.is_empty() && files.is_empty() => {
            writeln!(
                out,
                "Everything is as the cache remembers it, but the result is gone or"
            )?;
            writeln!(out, "damaged (see warpcc cache verify).")
        }
        Why::Differs { parts, files } => {
            match parts.len() + files.len() {
                1 => writeln!(out, "1 thing differs from what the cache remembers:")?,
                many => writeln!(out, "{many} things differ from what the cache remembers:")?,
            }
            for part in parts {
                writeln!(out, "  {}", part_sentence(part))?;
            }
            for file in files {
                writeln!(out, "  {}", file_sentence(file))?;
            }
            Ok(())
        }
    }
}

fn part_sentence(part: &PartDifference) -> String {
    let name = one_line(&part.name);
    let (old, new) = (
        part.old.as_deref().map(one_line),
        part.new.as_deref().map(one_line),
    );
    match (old, new) {
        (Some(old), Some(new)) => format!("{name} {new} was {old}"),
        (None, Some(new)) => format!("{name} {new} is new"),
        (Some(old), None) => format!("{name} {old} is gone"),
        (None, None) => format!("{name} differs"),
    }
}

fn file_sentence(file: &FileDifference) -> String {
    let path = one_line(&file.path.to_string_lossy());
    match &file.kind {
        FileChange::SourceChanged => format!("source {path} changed"),
        FileChange::HeaderChanged => format!("header {path} changed"),
        FileChange::Missing => format!("file {path} is gone"),
        FileChange::Variable if path == warpcc_cache::ANY_VARIABLE => {
            "an environment variable changed, and a program ran that may read them all".to_owned()
        }
        FileChange::Variable if path == warpcc_cache::WORKING_DIRECTORY => {
            "the working directory changed, and a program asked for it".to_owned()
        }
        FileChange::Variable => format!("environment variable {path} changed"),
        FileChange::Appeared => format!("file {path} was missing before, and exists now"),
        FileChange::Shadows(hidden) => {
            format!(
                "new file {path} shadows {}",
                one_line(&hidden.to_string_lossy())
            )
        }
    }
}

/// Names and values come from outside: a line break in one would look like the next item.
pub(super) fn one_line(text: &str) -> String {
    text.replace('\n', "\\n").replace('\r', "\\r")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::output::text_of;

    #[test]
    fn why_reads_well() {
        let part = |name: &str, old: Option<&str>, new: Option<&str>| PartDifference {
            name: name.into(),
            old: old.map(Into::into),
            new: new.map(Into::into),
        };
        let file = |kind, path: &str| FileDifference {
            kind,
            path: path.into(),
        };
        let differs = Why::Differs {
            parts: vec![
                part("option", Some("-O2"), Some("-O3")),
                part("option", None, Some("-lineinfo")),
                part("environment", Some("CPATH=/a\n/b"), None),
            ],
            files: vec![
                file(FileChange::HeaderChanged, "include/a.h"),
                file(FileChange::Appeared, "include/cub/config.h"),
                file(
                    FileChange::Shadows("/usr/include/b.h".into()),
                    "include/b.h",
                ),
            ],
        };
        insta::assert_snapshot!("why", text_of(|out| write(&differs, out)));
        let one = Why::Differs {
            parts: vec![],
            files: vec![file(FileChange::SourceChanged, "x.cu")],
        };
        assert_eq!(
            text_of(|out| write(&one, out)),
            "1 thing differs from what the cache remembers:\n  source x.cu changed\n"
        );
        let damaged = Why::Differs {
            parts: vec![],
            files: vec![],
        };
        for other in [
            Why::Hit,
            Why::NeverSeen,
            Why::Fallback("a reason".into()),
            Why::NotStored("a date macro".into()),
            Why::NoSource("x.cu".into()),
            Why::OtherProgram("/usr/bin/gcc".into()),
            damaged,
        ] {
            assert!(text_of(|out| write(&other, out)).ends_with('\n'));
        }
    }
}
