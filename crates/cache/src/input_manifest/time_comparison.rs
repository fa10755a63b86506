//! Finds `#pragma GCC dependency` in a text. A compiler then compares two files' times, and nothing else shows that it did.
//!
//! gcc and clang look at the times of all files that they open, and neither the pragma nor its result is in the preprocessed
//! text. So the words are looked for in every text that is read, also as an argument of `_Pragma` or of a macro. A name that
//! `##` makes is not found. The watch library notices that gcc closes a file unread, which finds most of these.

use memchr::memmem::Finder;

const BEFORE: &[u8] = b"GCC";
const NAME: &[u8] = b"dependency";
/// How far before the name the other word may be. So it takes no longer than a constant for each name, whatever the text.
const FARTHEST: usize = 1 << 10;

/// Searches a text that is read in pieces.
pub(super) struct TimeComparison {
    name: Finder<'static>,
    end_of_last: Vec<u8>,
    /// Whether the words were found.
    pub is_found: bool,
}

impl TimeComparison {
    pub(super) fn new() -> Self {
        Self {
            name: Finder::new(NAME),
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
        self.is_in_lines(text) || has_broken_word(text) && self.is_in_lines(&joined(text))
    }

    fn is_in_lines(&self, text: &[u8]) -> bool {
        let mut names = self.name.find_iter(text);
        names.any(|at| follows_gcc(&text[at.saturating_sub(FARTHEST)..at]))
    }
}

/// Whether a line ends inside a word and the word goes on in the next line: the first ends with a backslash. Blanks may follow.
fn has_broken_word(text: &[u8]) -> bool {
    memchr::memchr_iter(b'\\', text).any(|at| {
        let next = &text[at + 1..];
        // Between two parts of a word there may be lines with nothing but a backslash.
        let may_be_in_word = |byte: Option<&u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphabetic() || b"\\\n".contains(byte))
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

/// The length of blanks and the end of a line with which a text begins.
fn line_end(text: &[u8]) -> Option<usize> {
    let blanks = text
        .iter()
        .take_while(|byte| b" \t\r\x0b\x0c".contains(byte));
    let blanks = blanks.count();
    (text.get(blanks) == Some(&b'\n')).then_some(blanks + 1)
}

/// Whether the last word of a text is `GCC`: blanks, quotes, ends of lines and comments are no words.
fn follows_gcc(mut text: &[u8]) -> bool {
    loop {
        let is_in_word = |at: &u8| at.is_ascii_alphanumeric() || *at == b'_';
        let end = text.iter().rposition(is_in_word).map_or(0, |at| at + 1);
        let comment_end = memchr::memmem::rfind(&text[end..], b"*/");
        let Some(comment) = comment_end else {
            return text[..end].ends_with(BEFORE);
        };
        text = match memchr::memmem::rfind(&text[..end + comment], b"/*") {
            Some(start) => &text[..start],
            None => return false,
        };
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
            "GCC depen\ndency",
            "GCC depen\\x\ndency",
            "depen\\\ndency GCC\\\n",
        ] {
            assert!(!is_in(text), "{text}");
        }
    }

    #[test]
    fn a_hostile_text_takes_no_longer_than_any_other() {
        // Looking for the start of each comment in all of the text before it would take hours.
        assert!(!is_in(&"*/ dependency ".repeat(1 << 17)));
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
