//! Splits one dry-run command as `/bin/sh -c` would, because nvcc runs it through the shell.
//!
//! Only what means the same in every POSIX shell is accepted: quotes, backslashes, and the one expansion that nvcc writes
//! (`$CICC_PATH`). Anything else that a shell would interpret is refused: with a wrong guess, warpcc would build something
//! else than nvcc.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

use crate::Unsupported;

/// A word after quote removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// Plain text.
    Text(String),
    /// `` `command args` `` as the whole word: nvcc writes it for `ar` only.
    Substitution(String),
}

/// One command line in pieces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    /// The words, without redirections.
    pub words: Vec<Word>,
    /// Whether nvcc redirects both streams to files of its own, as it does under `--threads`.
    pub redirected: bool,
}

/// Splits `line`. `variable` returns the value of a name that the dry run assigned.
///
/// # Errors
/// A quote is not closed, or only a shell could resolve the line.
pub fn split(
    line: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<CommandLine, Unsupported> {
    let mut splitter = Splitter {
        chars: line.chars().peekable(),
        variable: &variable,
        line: CommandLine::default(),
        word: None,
        redirects: false,
    };
    match splitter.run() {
        Ok(()) => Ok(splitter.line),
        Err(what) => Err(Unsupported::new(
            "shell syntax in the dry run",
            format!("{what} in: {line}"),
        )),
    }
}

/// The part of a line that was read so far.
struct Splitter<'l> {
    chars: Peekable<Chars<'l>>,
    variable: &'l dyn Fn(&str) -> Option<String>,
    line: CommandLine,
    /// The current word; `None` between two words.
    word: Option<String>,
    /// The next word is the file that a redirection names.
    redirects: bool,
}

/// Why a line is refused.
type Refused = Cow<'static, str>;

impl Splitter<'_> {
    fn run(&mut self) -> Result<(), Refused> {
        let mut quoted = false; // Whether any part of the current word was quoted.
        while let Some(c) = self.chars.next() {
            quoted = self.word.is_some() && quoted || matches!(c, '\'' | '"' | '\\');
            match c {
                ' ' | '\t' => self.end_word()?,
                '\'' => self.single_quoted()?,
                '"' => self.double_quoted()?,
                '\\' => match self.chars.next() {
                    Some(c) if c != '\n' => self.word().push(c),
                    _ => return Err("a stray backslash".into()),
                },
                '>' => self.redirection(quoted)?,
                // Braces are text for dash and a list for bash. `[` starts a pattern only if a `]` follows, but refusing it
                // needlessly costs only one run of plain nvcc.
                '$' | '`' | '|' | '&' | ';' | '<' | '(' | ')' | '*' | '?' | '[' | '{' | '\n' => {
                    return Err(format!("an unquoted {c}").into());
                }
                '~' | '#' if self.word.is_none() => {
                    return Err(format!("a leading {c}").into());
                }
                c => self.word().push(c),
            }
        }
        self.end_word()?;
        match self.redirects {
            true => Err("a redirection without a target".into()),
            false => Ok(()),
        }
    }

    fn word(&mut self) -> &mut String {
        self.word.get_or_insert_default()
    }

    fn end_word(&mut self) -> Result<(), Refused> {
        match self.word.take() {
            Some(word) => Ok(push(&mut self.line, &mut self.redirects, word)?),
            None => Ok(()),
        }
    }

    /// `2>file`: the digit was just read as a word of its own.
    fn redirection(&mut self, quoted: bool) -> Result<(), Refused> {
        let is_stream = match self.word.take().as_deref() {
            None => true,
            Some(word) => word == "2" && !quoted,
        };
        if !is_stream || self.redirects {
            return Err("a redirection".into());
        }
        self.redirects = true;
        self.line.redirected = true;
        Ok(())
    }

    fn single_quoted(&mut self) -> Result<(), Refused> {
        let word = self.word.get_or_insert_default();
        loop {
            match self.chars.next() {
                Some('\'') => return Ok(()),
                Some(c) => word.push(c),
                None => return Err("an unclosed quote".into()),
            }
        }
    }

    fn double_quoted(&mut self) -> Result<(), Refused> {
        self.word();
        loop {
            match self.chars.next() {
                Some('"') => return Ok(()),
                Some('\\') => match self.chars.next() {
                    Some(c @ ('"' | '\\' | '$' | '`')) => self.word().push(c),
                    Some('\n') | None => return Err("a stray backslash".into()),
                    Some(c) => self.word().extend(['\\', c]),
                },
                Some('$') => self.expansion()?,
                Some('`') if self.word().is_empty() => return self.substitution(),
                Some('`') => return Err("a substitution inside a word".into()),
                Some(c) => self.word().push(c),
                None => return Err("an unclosed quote".into()),
            }
        }
    }

    /// A variable inside double quotes.
    fn expansion(&mut self) -> Result<(), Refused> {
        let mut name = String::new();
        let is_named = |c: &char| *c == '_' || c.is_ascii_alphanumeric();
        while let Some(c) = self.chars.next_if(is_named) {
            name.push(c);
        }
        match (self.variable)(&name) {
            Some(value) if !name.is_empty() => self.word().push_str(&value),
            _ => return Err("an expansion".into()),
        }
        Ok(())
    }

    /// A command in backquotes that is a whole word in double quotes, up to the end of both.
    fn substitution(&mut self) -> Result<(), Refused> {
        let mut command = String::new();
        loop {
            match self.chars.next() {
                Some('`') => break,
                Some(c @ ('\\' | '$' | '"' | '\'')) => {
                    return Err(format!("{c} in a substitution").into());
                }
                Some(c) => command.push(c),
                None => return Err("an unclosed backquote".into()),
            }
        }
        let is_all =
            self.chars.next() == Some('"') && matches!(self.chars.peek(), None | Some(' '));
        if !is_all {
            return Err("a substitution inside a word".into());
        }
        self.line.words.push(Word::Substitution(command));
        self.word = None;
        Ok(())
    }
}

fn push(line: &mut CommandLine, redirect: &mut bool, word: String) -> Result<(), &'static str> {
    // The file of a redirection belongs to nvcc. warpcc captures the streams itself.
    if !std::mem::take(redirect) {
        line.words.push(Word::Text(word));
    } else if word.is_empty() {
        return Err("a redirection without a target");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        split(line, |n| (n == "CICC_PATH").then(|| "/cicc dir".to_owned()))
            .expect("splits")
            .words
            .into_iter()
            .map(|w| match w {
                Word::Text(t) => t,
                Word::Substitution(c) => format!("`{c}`"),
            })
            .collect()
    }

    #[test]
    fn quotes_as_nvcc_writes_them() {
        assert_eq!(
            texts(r#"gcc -D "A=\"q s\"" -D "C=it's" "-DK=a b" '-fPIC' -DF="\"/k/a.c\"""#),
            [
                "gcc",
                "-D",
                "A=\"q s\"",
                "-D",
                "C=it's",
                "-DK=a b",
                "-fPIC",
                "-DF=\"/k/a.c\""
            ]
        );
        assert_eq!(texts(r#""$CICC_PATH/cicc" """#), ["/cicc dir/cicc", ""]);
        assert_eq!(
            texts("\"`gcc -print-prog-name=ar`\" cr \"x.a\""),
            ["`gcc -print-prog-name=ar`", "cr", "x.a"]
        );
    }

    #[test]
    fn redirections_of_threads_mode_are_dropped() {
        let line = split("ptxas a.ptx  > /tmp/x_stdout 2>/tmp/x_stderr", |_| None).expect("splits");
        assert!(line.redirected);
        assert_eq!(line.words.len(), 2);
    }

    #[test]
    fn shell_syntax_is_refused() {
        for line in [
            "gcc -DJ=$Q",
            r#"gcc "-DB=$HOME""#,
            r#"gcc "a`b""#,
            "a | b",
            "a; b",
            "a && b",
            "a *.o",
            "a 'open",
            "a \"open",
            "a ~/x",
            "a > ",
            "a > b > ",
            "x>y",
            r#"a "2">b"#,
            "a >''",
            "-DLIST={a,b}",
            "gcc \"`a $b`\"",
            "$(x)",
        ] {
            assert!(split(line, |_| None).is_err(), "{line}");
        }
    }
}
