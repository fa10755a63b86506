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

/// What a byte may begin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    Space,
    Line,
    Word,
    Number,
    Literal,
    Open,
    Close,
    /// A sign that may begin something that is not understood.
    RareSign,
    Sign,
}

const BEGINS: [Begins; 256] = {
    let mut all = [Begins::Sign; 256];
    let mut byte = 0_u8;
    loop {
        all[byte as usize] = match byte {
            b' ' | b'\t' | b'\r' | 0x0b | 0x0c => Begins::Space,
            b'\n' => Begins::Line,
            b'0'..=b'9' => Begins::Number,
            b'"' | b'\'' => Begins::Literal,
            b'(' | b'[' | b'{' => Begins::Open,
            b')' | b']' | b'}' => Begins::Close,
            b'#' | b'/' | b'<' | b'%' | b':' | b'\\' => Begins::RareSign,
            _ if is_word(byte) => Begins::Word,
            _ => Begins::Sign,
        };
        if byte == u8::MAX {
            break all;
        }
        byte += 1;
    }
};

pub fn begins(byte: u8) -> Begins {
    BEGINS[usize::from(byte)]
}

/// The length of the word with which a text begins.
pub fn word_length(rest: &[u8]) -> usize {
    let is_in_word = |byte: &u8| matches!(begins(*byte), Begins::Word | Begins::Number);
    let end = rest.iter().position(|byte| !is_in_word(byte));
    end.unwrap_or(rest.len())
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

    /// Reads the text from there on, which is no part of a literal.
    pub fn from(text: &'t [u8], at: usize) -> Self {
        Self {
            text,
            at,
            path: b"",
        }
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
            let length = match begins(first) {
                Begins::Line => {
                    self.at += 1;
                    self.skip_markers();
                    continue;
                }
                Begins::Space => {
                    self.at += 1;
                    continue;
                }
                Begins::RareSign if first == b'#' && self.begins_line() => {
                    let line = line_at(self.text, self.at);
                    self.at += line.len();
                    return Ok(NextPiece::Directive(line));
                }
                Begins::Number => return Ok(self.piece(TokenKind::Literal, number(rest))),
                Begins::Literal => {
                    let inside = end_of_literal(&rest[1..], first).ok_or(NotUnderstood)?;
                    return Ok(self.piece(TokenKind::Literal, 1 + inside));
                }
                Begins::Word => {
                    let length = word_length(rest);
                    if is_raw(&rest[..length]) && rest.get(length) == Some(&b'"') {
                        return self.raw(length);
                    }
                    return Ok(self.piece(TokenKind::Word, length));
                }
                Begins::Open | Begins::Close => 1,
                Begins::RareSign | Begins::Sign => sign(rest)?,
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
        let (at, path) = skip_markers(self.text, self.at);
        self.at = at;
        self.path = path.unwrap_or(self.path);
    }

    fn begins_line(&self) -> bool {
        let before = self.text[..self.at].iter().rev();
        let mut spaces = before.skip_while(|c| matches!(c, b' ' | b'\t'));
        matches!(spaces.next(), None | Some(b'\n'))
    }
}

/// Skips the line markers at the beginning of a line. Returns where they end, and the file that the last one named.
pub fn skip_markers(text: &[u8], mut at: usize) -> (usize, Option<&[u8]>) {
    let mut path = None;
    while text.get(at) == Some(&b'#') {
        let line = line_at(text, at);
        let Some(marker) = Marker::read(line) else {
            break;
        };
        path = Some(marker.path);
        at = text.len().min(at + line.len() + 1);
    }
    (at, path)
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
pub fn number(rest: &[u8]) -> usize {
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
