//! Finds `#pragma GCC dependency` in a text. A compiler then compares two files' times, and nothing else shows that it did.
//!
//! gcc and clang look at the times of all files that they open, and neither the pragma nor its result is in the preprocessed
//! text. So the words are looked for in every text that is read, also as an argument of `_Pragma` or of a macro. Words that
//! macros bring together are not found. The watch library notices that gcc closes a file unread, which finds most of these.

use std::borrow::Cow;

use memchr::memmem::{self, Finder};

const BEFORE: &[u8] = b"GCC";
const NAME: &[u8] = b"dependency";
/// How far behind the first word the name may be. So each first word takes no longer than a constant, whatever the text.
const FARTHEST: usize = 1 << 10;

/// Searches a text that is read in pieces.
pub(super) struct TimeComparison {
    name: Finder<'static>,
    trigraph: Finder<'static>,
    end_of_last: Vec<u8>,
    /// Whether the words were found.
    pub is_found: bool,
}

impl TimeComparison {
    pub(super) fn new() -> Self {
        Self {
            name: Finder::new(NAME),
            trigraph: Finder::new(b"??/"),
            end_of_last: Vec::new(),
            is_found: false,
        }
    }

    /// Searches the next piece of a text of several.
    pub(super) fn search(&mut self, piece: &[u8]) {
        let start = &piece[..piece.len().min(FARTHEST)];
        let border = [self.end_of_last.as_slice(), start].concat();
        self.is_found = self.is_found || self.is_in(&border) || self.is_in(piece);
        self.end_of_last = piece[piece.len().saturating_sub(FARTHEST)..].to_vec();
    }

    /// Whether a whole text has the words.
    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        let plain = self.without_trigraphs(text);
        let may_have_name = self.name.find(&plain).is_some() || has_broken_word(&plain);
        may_have_name && (has_words(&plain) || has_words(&joined(&plain)))
    }

    /// The text with each trigraph of a backslash as one. Strict standards before C++17 have them.
    fn without_trigraphs<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        let mut plain = Vec::new();
        let mut rest = text;
        while let Some(at) = self.trigraph.find(rest) {
            plain.extend_from_slice(&rest[..at]);
            plain.push(b'\\');
            rest = &rest[at + 3..];
        }
        if plain.is_empty() {
            return Cow::Borrowed(text);
        }
        plain.extend_from_slice(rest);
        Cow::Owned(plain)
    }
}

/// Whether a line ends inside a word and the word goes on in the next line: the first ends with a backslash. Blanks may follow.
fn has_broken_word(text: &[u8]) -> bool {
    memchr::memchr_iter(b'\\', text).any(|at| {
        let next = &text[at + 1..];
        // Between two parts of a word there may be lines with nothing but a backslash.
        let may_be_in_word = |byte: Option<&u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphabetic() || b"\\\r\n".contains(byte))
        };
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        may_be_in_word(before) && line_end(next).is_some_and(|end| may_be_in_word(next.get(end)))
    })
}

/// A text with each line that ends with a backslash joined to the next.
fn joined(text: &[u8]) -> Vec<u8> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let next = &rest[at + 1..];
        match line_end(next) {
            Some(end) => {
                parts.extend_from_slice(&rest[..at]);
                rest = &next[end..];
            }
            None => {
                parts.extend_from_slice(&rest[..=at]);
                rest = next;
            }
        }
    }
    parts.extend_from_slice(rest);
    parts
}

/// The length of blanks and the end of a line with which a text begins. To gcc, a carriage return alone ends a line too.
fn line_end(text: &[u8]) -> Option<usize> {
    let blanks = text.iter().take_while(|byte| b" \t\x0b\x0c".contains(byte));
    let blanks = blanks.count();
    match &text[blanks..] {
        [b'\r', b'\n', ..] => Some(blanks + 2),
        [b'\r' | b'\n', ..] => Some(blanks + 1),
        _ => None,
    }
}

/// Whether the name is the next word behind the first: blanks, quotes, ends of lines and comments are no words.
fn has_words(text: &[u8]) -> bool {
    let mut firsts = memmem::find_iter(text, BEFORE).map(|at| at + BEFORE.len());
    firsts.any(|end| is_next_word(&text[end..text.len().min(end + FARTHEST)]))
}

/// Whether the name is the first word of a text.
fn is_next_word(mut text: &[u8]) -> bool {
    loop {
        // The first word may be a part of a longer one, which is then not the last word before the name.
        let is_no_word = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte != b'_';
        let behind = match text {
            [b'/', b'*', comment @ ..] => memmem::find(comment, b"*/").map(|at| &comment[at + 2..]),
            [b'/', b'/', comment @ ..] => {
                memchr::memchr2(b'\n', b'\r', comment).map(|at| &comment[at..])
            }
            [byte, rest @ ..] if is_no_word(byte) => Some(rest),
            _ => return text.starts_with(NAME),
        };
        match behind {
            Some(behind) => text = behind,
            None => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in(text: &str) -> bool {
        TimeComparison::new().is_in(text.as_bytes())
    }

    #[test]
    fn the_words_in_every_form() {
        for text in [
            "#pragma GCC dependency \"a.y\"",
            "# pragma\tGCC\t\tdependency <a.y> build it again",
            "#pragma GCC \\\n dependency \"a.y\"",
            "#pragma /* a */ GCC /* b GCC\n c */ /**/ dependency \"a.y\"",
            "_Pragma(\"GCC dependency \\\"a.y\\\"\")",
            "IN_PRAGMA(GCC, dependency \"a.y\")",
            "a dependency; _Pragma(TEXT(GCC dependency \"a.y\"))",
            "#pragma GCC depen\\\ndency \"a.y\"",
            "#pragma G\\\nC\\ \t\r\nC depen\\\n\\\n\\\ndency \"a.y\"",
            "#pragma GCC depen??/\ndency \"a.y\"",
            "#pragma GCC depen\\\rdency \"a.y\"",
            "#pragma GCC /* a /* b */ dependency \"a.y\"",
            "#pragma GCC /\\\n* a *\\\n/ dependency \"a.y\"",
            "MAKE(GCC // a\n// */ b\\\n c\r\ndependency \"a.y\")",
            "%:pragma GCC dependency \"a.y\"",
            "g++ -E -D \"MAKE_AGAIN=_Pragma(\\\"GCC dependency \\\\\\\"a.y\\\\\\\"\\\")\" a.cu",
        ] {
            assert!(is_in(text), "{text}");
        }
    }

    #[test]
    fn other_uses_of_the_words() {
        for text in [
            "",
            "dependency",
            "#pragma GCC system_header\n// a dependency of another",
            "#pragma GCC diagnostic push\nint dependency;",
            "GCC has a dependency",
            "*/ dependency",
            "GCC_ dependency",
            "GCC // dependency",
            "GCC /* dependency */ version",
            "GCC depen\ndency",
            "GCC depen\\x\ndency",
            "depen\\\ndency GCC\\\n",
        ] {
            assert!(!is_in(text), "{text}");
        }
    }

    #[test]
    fn a_hostile_text_takes_no_longer_than_any_other() {
        // Looking for the end of each comment in all of the text behind it would take hours.
        for part in [
            "*/ dependency ",
            "GCC /* dependency ",
            "GCC//dependency",
            "??/\ndependency",
        ] {
            assert!(!is_in(&part.repeat(1 << 17)), "{part}");
        }
    }

    #[test]
    fn the_words_on_both_sides_of_a_border() {
        let text = b"#pragma GCC dependency \"a.y\"".as_slice();
        for at in 0..=text.len() {
            let mut search = TimeComparison::new();
            let (one, other) = text.split_at(at);
            for piece in [one, other, b"end"] {
                search.search(piece);
            }
            assert!(search.is_found, "{at}");
        }
    }
}
