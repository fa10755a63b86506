//! Splits a preprocessed text into words, literals and signs, as far as brackets and names need it.

use crate::tokens::{Marker, end_of_literal, end_of_raw, is_word};

/// What a piece is. As wide as a register: copies of one byte with its padding took a third of the whole time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum TokenKind {
    /// A name or a keyword.
    Word,
    /// A string, a character or a number.
    Literal,
    /// An operator or a bracket.
    Sign,
}

/// One piece of a text.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'t> {
    pub kind: TokenKind,
    pub text: &'t [u8],
    /// Where it begins.
    pub at: usize,
}

impl Piece<'_> {
    /// What is before the first piece of a text.
    pub const NONE: Self = Self {
        kind: TokenKind::Sign,
        text: b"",
        at: 0,
    };

    pub fn is(&self, text: &[u8]) -> bool {
        self.kind != TokenKind::Literal && self.text == text
    }
}

/// What [`Reader::next`] found.
pub enum NextPiece<'t> {
    Piece(Piece<'t>),
    /// A line that begins with `#` and is no line marker: a pragma, mostly.
    Directive(&'t [u8]),
    End,
}

/// A text whose pieces cannot be told apart: with comments, digraphs, or a literal that does not end.
#[derive(Debug, PartialEq, Eq)]
pub struct NotUnderstood;

/// Reads a text piece by piece.
#[derive(Clone, Copy)]
pub struct Reader<'t> {
    text: &'t [u8],
    pub at: usize,
    /// The file that the last line marker named, with its quotes.
    pub path: &'t [u8],
}

impl<'t> Reader<'t> {
    pub fn new(text: &'t [u8]) -> Self {
        let mut reader = Self {
            text,
            at: 0,
            path: b"",
        };
        reader.skip_markers();
        reader
    }

    /// The next piece. Line markers set `path` and are skipped.
    ///
    /// # Errors
    /// The text cannot be split from here on.
    pub fn next(&mut self) -> Result<NextPiece<'t>, NotUnderstood> {
        loop {
            let rest = &self.text[self.at..];
            let Some(&first) = rest.first() else {
                return Ok(NextPiece::End);
            };
            let length = match first {
                b'\n' => {
                    self.at += 1;
                    self.skip_markers();
                    continue;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => {
                    self.at += 1;
                    continue;
                }
                b'#' if self.begins_line() => {
                    let line = line_at(self.text, self.at);
                    self.at += line.len();
                    return Ok(NextPiece::Directive(line));
                }
                b'0'..=b'9' => return Ok(self.piece(TokenKind::Literal, number(rest))),
                b'"' | b'\'' => {
                    let inside = end_of_literal(&rest[1..], first).ok_or(NotUnderstood)?;
                    return Ok(self.piece(TokenKind::Literal, 1 + inside));
                }
                _ if is_word(first) => {
                    let length = rest.iter().take_while(|c| is_word(**c)).count();
                    if is_raw(&rest[..length]) && rest.get(length) == Some(&b'"') {
                        return self.raw(length);
                    }
                    return Ok(self.piece(TokenKind::Word, length));
                }
                _ => sign(rest)?,
            };
            return Ok(self.piece(TokenKind::Sign, length));
        }
    }

    fn piece(&mut self, kind: TokenKind, length: usize) -> NextPiece<'t> {
        let at = self.at;
        let text = &self.text[at..][..length];
        self.at += length;
        NextPiece::Piece(Piece { kind, text, at })
    }

    /// A raw string, whose prefix is that long.
    fn raw(&mut self, prefix: usize) -> Result<NextPiece<'t>, NotUnderstood> {
        let inside = &self.text[self.at + prefix + 1..];
        let length = prefix + 1 + end_of_raw(inside).ok_or(NotUnderstood)?;
        // A reader that goes by lines would take this line for a marker.
        let whole = &self.text[self.at..][..length];
        if memchr::memmem::find(whole, b"\n# ").is_some() {
            return Err(NotUnderstood);
        }
        Ok(self.piece(TokenKind::Literal, length))
    }

    fn skip_markers(&mut self) {
        while let Some(marker) = Marker::read(line_at(self.text, self.at)) {
            self.path = marker.path;
            let length = line_at(self.text, self.at).len();
            self.at = self.text.len().min(self.at + length + 1);
        }
    }

    fn begins_line(&self) -> bool {
        let before = self.text[..self.at].iter().rev();
        let mut spaces = before.skip_while(|c| matches!(c, b' ' | b'\t'));
        matches!(spaces.next(), None | Some(b'\n'))
    }
}

/// The line that begins there, without its end.
pub fn line_at(text: &[u8], at: usize) -> &[u8] {
    let rest = &text[at..];
    &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())]
}

fn is_raw(word: &[u8]) -> bool {
    matches!(word, b"R" | b"u8R" | b"uR" | b"UR" | b"LR")
}

/// The length of a number, with its digit separators.
fn number(rest: &[u8]) -> usize {
    let mut length = 1;
    while let Some(&next) = rest.get(length) {
        let after = rest.get(length + 1).is_some_and(|c| is_word(*c));
        if !(is_word(next) || next == b'.' || next == b'\'' && after) {
            break;
        }
        length += 1;
    }
    length
}

/// The length of an operator. Those of several signs are one piece where `=`, `:` or `>` would be misread without it.
fn sign(rest: &[u8]) -> Result<usize, NotUnderstood> {
    Ok(match rest {
        // Comments, digraphs, and a line that goes on.
        [b'/', b'/' | b'*', ..] | [b'<', b'%', ..] | [b'%', b'>', ..] | [b'\\', ..] => {
            return Err(NotUnderstood);
        }
        // `<::` begins a qualified name.
        [b'<', b':', next @ ..] if !matches!(next, [b':', after, ..] if !matches!(after, b':' | b'>')) =>
        {
            return Err(NotUnderstood);
        }
        [b':', b'>', ..] => return Err(NotUnderstood),
        [b'<', b'=', b'>', ..] => 3,
        [b':', b':', ..] | [b'-', b'>', ..] => 2,
        [
            b'=' | b'!' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^',
            b'=',
            ..,
        ] => 2,
        _ => 1,
    })
}
