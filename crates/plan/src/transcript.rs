//! Dry-run text → [`Transcript`]: every line is an assignment, a command, a removal or the dependency filter. Any other line
//! is [`Unsupported`].
//!
//! `nvcc --dryrun` writes to stderr: first `#$ NAME=value` lines, which are the environment of its commands, then `#$
//! command` lines. nvcc's own warnings are between them, without the prefix. They are kept, because a build shows them too.

use crate::Unsupported;
use crate::words::{self, Word};

/// One line of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanLine {
    /// A command with its words and the text as nvcc printed it.
    Command {
        /// Program and arguments after quote removal.
        words: Vec<Word>,
        /// The line as printed, for reports.
        raw: String,
    },
    /// `rm FILE`: nvcc removes a stale intermediate file.
    Remove(String),
    /// `-- Filter Dependencies -- > FILE`: nvcc reads the preprocessed files itself.
    FilterDependencies {
        /// The target of the dependency rule.
        target: String,
    },
}

/// A whole dry run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transcript {
    /// The variables that nvcc exports to its commands, in order.
    pub environment: Vec<(String, String)>,
    /// The plan.
    pub entries: Vec<PlanLine>,
    /// Lines without the `#$ ` prefix: nvcc's own warnings, which are shown unchanged.
    pub messages: Vec<String>,
    /// Whether nvcc planned for several threads: it prints the commands in the order in which its
    /// threads took them, which differs from run to run.
    pub threaded: bool,
}

impl Transcript {
    /// Reads what `nvcc --dryrun` wrote to stderr.
    ///
    /// # Errors
    /// [`Unsupported`] names the line that is not understood.
    pub fn parse(text: &str) -> Result<Self, Unsupported> {
        let mut transcript = Self::default();
        for line in text.lines() {
            let Some(body) = line.strip_prefix("#$ ") else {
                if line.starts_with("#$") {
                    return Err(Unsupported::new("unknown dry-run line", line));
                }
                transcript.messages.push(line.to_owned());
                continue;
            };
            if let Some((name, value)) = assignment(body) {
                if !transcript.entries.is_empty() {
                    return Err(Unsupported::new("unknown dry-run line", line));
                }
                transcript
                    .environment
                    .push((name.to_owned(), value.to_owned()));
                continue;
            }
            if let Some(rest) = body.strip_prefix("-- ") {
                let target = rest
                    .strip_prefix("Filter Dependencies -- > ")
                    .map(str::trim)
                    .filter(|t| !t.is_empty())
                    .ok_or_else(|| Unsupported::new("unknown dry-run line", line))?;
                transcript.entries.push(PlanLine::FilterDependencies {
                    target: target.trim_matches('"').to_owned(),
                });
                continue;
            }
            let split = words::split(body, |name| transcript.variable(name))?;
            transcript.threaded |= split.redirected;
            let mut words = split.words;
            match words.first() {
                None => return Err(Unsupported::new("unknown dry-run line", line)),
                Some(Word::Text(program)) if program == "rm" => {
                    let (Some(Word::Text(file)), 2) = (words.pop(), words.len() + 1) else {
                        return Err(Unsupported::new("unknown dry-run line", line));
                    };
                    transcript.entries.push(PlanLine::Remove(file));
                }
                Some(_) => transcript.entries.push(PlanLine::Command {
                    words,
                    raw: body.trim_end().to_owned(),
                }),
            }
        }
        if transcript.entries.is_empty() {
            return Err(Unsupported::new("the dry run has no commands", ""));
        }
        Ok(transcript)
    }

    /// The value that the dry run assigned to `name`; the last one if there are several.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.environment
            .iter()
            .rev()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.clone())
    }
}

fn assignment(body: &str) -> Option<(&str, &str)> {
    let (name, value) = body.split_once('=')?;
    let mut chars = name.chars();
    let first = chars.next()?;
    let valid = (first == '_' || first.is_ascii_alphabetic())
        && chars.all(|c| c == '_' || c.is_ascii_alphanumeric());
    valid.then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_accounted_for() {
        let t = Transcript::parse(
            "#$ _SPACE_= \n#$ CICC_PATH=/t/nvvm/bin\n#$ rm /k/p_dlink.reg.c\nnvcc warning : old\n#$ \"$CICC_PATH/cicc\" -o \"/k/a.ptx\"\n#$ -- Filter Dependencies -- > x.d\n",
        )
        .expect("parses");
        assert_eq!(t.environment.len(), 2);
        assert_eq!(t.messages, ["nvcc warning : old"]);
        assert_eq!(t.entries[0], PlanLine::Remove("/k/p_dlink.reg.c".into()));
        let PlanLine::Command { words, .. } = &t.entries[1] else {
            panic!("a command")
        };
        assert_eq!(words[0], Word::Text("/t/nvvm/bin/cicc".into()));
        assert_eq!(
            t.entries[2],
            PlanLine::FilterDependencies {
                target: "x.d".into()
            }
        );
    }

    #[test]
    fn the_unknown_is_refused() {
        for text in [
            "#$ -- Something Else --",
            "#$ ",
            "#$",
            "",
            "#$ rm a b\n",
            "#$ gcc a\n#$ X=1\n",
            "hello\n",
        ] {
            assert!(Transcript::parse(text).is_err(), "{text}");
        }
    }
}
