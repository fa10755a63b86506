//! Splits an options file and the flags variables into words, as nvcc does.
//!
//! nvcc has rules of its own, seen on 13.0 and 13.5. A single quote is a character like any other. A double quote holds
//! white space together; it is taken away in a file, and stays in a variable. A backslash is an error in a variable,
//! and is taken away twice in a file. If the words of a text are in doubt, plain nvcc runs: a wrong word would give a
//! wrong key, or a wrong output.

use crate::Unsupported;

/// Where flags are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In a file that `--options-file` names.
    File,
    /// In `NVCC_PREPEND_FLAGS` or `NVCC_APPEND_FLAGS`.
    Variable,
}

/// Why nvcc has to read a text.
const IN_DOUBT: &str = "a quote or a backslash in flags";

/// The words of a text.
///
/// # Errors
/// An open quote; a `#`, whose meaning differs between toolkits; a character whose meaning is in doubt.
pub fn split(text: &str, place: Place) -> Result<Vec<String>, Unsupported> {
    let in_doubt = || Unsupported::new(IN_DOUBT, text);
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\n' | '\r' if place == Place::File => words.extend(word.take()),
            '"' if place == Place::File => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some(c) if c == '\\' || c.is_ascii_control() => return Err(in_doubt()),
                        Some(c) => word.push(c),
                        None => return Err(Unsupported::new("an unclosed quote in flags", text)),
                    }
                }
            }
            '"' | '\\' => return Err(in_doubt()),
            c if c.is_ascii_control() => return Err(in_doubt()),
            '#' if word.is_none() => return Err(Unsupported::new("a comment in flags", text)),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.take());
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_nvccs() {
        let words = |text: &str, place| split(text, place).ok();
        for (text, expected) in [
            ("-DQ=\"a b\" -c\r\n\t-O3\n", &["-DQ=a b", "-c", "-O3"][..]),
            ("-DQ='a b'", &["-DQ='a", "b'"]),
            ("\"-Ia b\"c", &["-Ia bc"]),
            ("-DQ=\u{a0}\u{2028}1", &["-DQ=\u{a0}\u{2028}1"]),
            ("-DQ=a#b", &["-DQ=a#b"]),
        ] {
            let found = words(text, Place::File).expect(text);
            assert_eq!(found, expected, "{text}");
        }
        let variable = words("-DQ='a'\t -O3", Place::Variable);
        assert_eq!(variable.expect("words"), ["-DQ='a'", "-O3"]);
    }

    #[test]
    fn what_is_in_doubt_is_nvccs() {
        for text in [
            "a\\ b",
            "\"a\\\"b\"",
            "a\u{b}b",
            "a\0b",
            "\"a\nb\"",
            "\"a",
            "# a",
            "a\\\nb",
        ] {
            for place in [Place::File, Place::Variable] {
                assert!(split(text, place).is_err(), "{text}");
            }
        }
        for text in ["-DQ=\"a\"", "a\nb", "a\rb"] {
            assert!(split(text, Place::Variable).is_err(), "{text}");
        }
    }
}
