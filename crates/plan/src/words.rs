//! Splits one dry-run command the way `/bin/sh -c` would, as nvcc runs it through the shell.
//!
//! Only what means the same to every POSIX shell is accepted: quotes, backslashes, and the one
//! expansion nvcc itself writes (`$CICC_PATH`). Everything else a shell would act on is refused,
//! because a guess here would build something other than what nvcc builds.

use crate::Unsupported;

/// A word after quote removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// Plain text.
    Text(String),
    /// `` `command args` `` that makes up the whole word: nvcc writes it for `ar` only.
    Substitution(String),
}

/// One command line in pieces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// The words, redirections removed.
    pub words: Vec<Word>,
    /// Whether nvcc sends both streams to files of its own, which it does under `--threads`.
    pub redirected: bool,
}

/// Splits `line`; `variable` gives the value of the names that the dry run itself assigned.
///
/// # Errors
/// A quote that is not closed, or anything that only a shell could resolve.
pub fn split(line: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Line, Unsupported> {
    let refuse =
        |what: &str| Unsupported::new("shell syntax in the dry run", format!("{what} in: {line}"));
    let mut out = Line::default();
    let mut chars = line.chars().peekable();
    let mut word: Option<String> = None;
    let mut redirect = false;
    let mut quoted = false; // Anything of the word at hand.
    while let Some(c) = chars.next() {
        quoted = word.is_some() && quoted || matches!(c, '\'' | '"' | '\\');
        match c {
            ' ' | '\t' => {
                if let Some(done) = word.take() {
                    push(&mut out, &mut redirect, done).map_err(refuse)?;
                }
            }
            '\'' => {
                let w = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('\'') => break,
                        Some(c) => w.push(c),
                        None => return Err(refuse("an open quote")),
                    }
                }
            }
            '"' => {
                let w = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some('\\') => match chars.next() {
                            Some(c @ ('"' | '\\' | '$' | '`')) => w.push(c),
                            Some('\n') | None => return Err(refuse("a stray backslash")),
                            Some(c) => {
                                w.push('\\');
                                w.push(c);
                            }
                        },
                        Some('$') => {
                            let mut name = String::new();
                            while let Some(&c) = chars.peek() {
                                if c == '_' || c.is_ascii_alphanumeric() {
                                    name.push(c);
                                    chars.next();
                                } else {
                                    break;
                                }
                            }
                            match variable(&name) {
                                Some(value) if !name.is_empty() => w.push_str(&value),
                                _ => return Err(refuse("an expansion")),
                            }
                        }
                        Some('`') if w.is_empty() => {
                            let mut command = String::new();
                            loop {
                                match chars.next() {
                                    Some('`') => break,
                                    Some(c @ ('\\' | '$' | '"' | '\'')) => {
                                        return Err(refuse(&format!("{c} in a substitution")));
                                    }
                                    Some(c) => command.push(c),
                                    None => return Err(refuse("an open backquote")),
                                }
                            }
                            if chars.next() != Some('"')
                                || !matches!(chars.peek(), None | Some(' '))
                            {
                                return Err(refuse("a substitution inside a word"));
                            }
                            out.words.push(Word::Substitution(command));
                            word = None;
                            break;
                        }
                        Some('`') => return Err(refuse("a substitution inside a word")),
                        Some(c) => w.push(c),
                        None => return Err(refuse("an open quote")),
                    }
                }
            }
            '\\' => match chars.next() {
                Some(c) if c != '\n' => word.get_or_insert_default().push(c),
                _ => return Err(refuse("a stray backslash")),
            },
            // `2>file`: the digit was read as a word of its own just before.
            '>' => {
                match word.take().as_deref() {
                    None => {}
                    Some("2") if !quoted => {}
                    Some(_) => return Err(refuse("a redirection")),
                }
                if redirect {
                    return Err(refuse("a redirection"));
                }
                redirect = true;
                out.redirected = true;
            }
            '$' | '`' | '|' | '&' | ';' | '<' | '(' | ')' | '*' | '?' | '[' | '{' | '\n' => {
                // Braces are text to dash and a list to bash.
                // `[` only globs when a `]` follows, but a false refusal costs one plain nvcc run.
                return Err(refuse(&format!("an unquoted {c}")));
            }
            '~' | '#' if word.is_none() => return Err(refuse(&format!("a leading {c}"))),
            c => word.get_or_insert_default().push(c),
        }
    }
    if let Some(done) = word.take() {
        push(&mut out, &mut redirect, done).map_err(refuse)?;
    }
    if redirect {
        return Err(refuse("a redirection to nowhere"));
    }
    Ok(out)
}

fn push(line: &mut Line, redirect: &mut bool, word: String) -> Result<(), &'static str> {
    // The file that a redirection names is nvcc's own; our executor captures streams.
    if !std::mem::take(redirect) {
        line.words.push(Word::Text(word));
    } else if word.is_empty() {
        return Err("a redirection to nowhere");
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
    fn what_only_a_shell_can_resolve_is_refused() {
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
