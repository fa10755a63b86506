//! Skips the braces of classes, functions and initialisers that contain no name that asks. That is half of a text, and nothing
//! there has to be told apart but brackets and literals.
//!
//! A class there may have the name of a function that is found to ask later. Then the text is read again, with that name.

use super::brackets::{Braces, OpenBracket, Scope};
use super::reader::{Begins, Piece, TokenKind, begins, line_at, number, skip_markers, word_length};
use super::scan::Scan;
use crate::tokens::end_of_literal;

/// How many brackets may be open in a part that is skipped.
const DEEPEST: usize = 64;

/// What is here cannot be skipped.
struct Unusual;

/// How far a text was skipped.
struct Skipping<'t> {
    at: usize,
    /// The file of the text here.
    path: &'t [u8],
    /// The file of the last piece.
    path_of_last: &'t [u8],
    /// How often the file has changed.
    changes: usize,
    /// The last piece.
    last: Piece<'t>,
    /// Whether a piece followed the last line marker.
    is_in_file: bool,
    open: Vec<u8>,
}

impl<'t> Scan<'t> {
    /// After a `{`: goes on at its `}`, if what is between them can be skipped. What is known there is as if all of it had been
    /// read piece by piece.
    pub fn skip_braces(&mut self) {
        let is_known = self.asked_at.is_none() && self.class_at.is_none();
        if !is_known || self.reader.at < self.not_skipped || !self.may_skip() {
            return;
        }
        let mut skipping = Skipping {
            at: self.reader.at,
            path: self.reader.path,
            path_of_last: self.path,
            changes: self.changes,
            last: self.last,
            is_in_file: false,
            open: Vec::new(),
        };
        let end = self.skip(&mut skipping);
        match end {
            Ok(()) => {
                self.reader.at = skipping.at;
                self.reader.path = skipping.path;
                self.path = skipping.path_of_last;
                self.changes = skipping.changes;
                self.last = skipping.last;
            }
            // What is inside of these braces was read in vain, and is not again.
            Err(Unusual) => self.not_skipped = skipping.at,
        }
    }

    /// Whether the innermost braces may be skipped.
    fn may_skip(&self) -> bool {
        let Some(OpenBracket::Braces(Braces { scope, head, .. })) = self.open.last() else {
            return false;
        };
        match scope {
            Scope::Class => (head.class).is_some_and(|class| self.names.find(class.name).is_none()),
            Scope::Body | Scope::Other => true,
            Scope::Outer | Scope::Block => false,
        }
    }

    /// Skips to the `}`.
    fn skip(&self, skipping: &mut Skipping<'t>) -> Result<(), Unusual> {
        let text = self.text;
        loop {
            let at = skipping.at;
            let first = *text.get(at).ok_or(Unusual)?;
            let kind = begins(first);
            let rest = &text[at..];
            let length = match kind {
                Begins::Space => {
                    skipping.at += 1;
                    continue;
                }
                Begins::Line => {
                    skipping.at += 1;
                    skipping.skip_markers(text);
                    continue;
                }
                Begins::RareSign if first == b'#' => {
                    skipping.at += self.harmless_directive(at)?;
                    continue;
                }
                Begins::Close if skipping.open.is_empty() => {
                    return if first == b'}' { Ok(()) } else { Err(Unusual) };
                }
                Begins::Word => self.harmless_word(rest)?,
                Begins::Number => number(rest),
                Begins::Literal => 1 + end_of_literal(&rest[1..], first).ok_or(Unusual)?,
                Begins::Open => skipping.open(first)?,
                Begins::Close => skipping.close(first)?,
                Begins::RareSign => rare_sign(rest)?,
                Begins::Sign => 1,
            };
            skipping.take(kind, &rest[..length]);
        }
    }

    /// The length of a word that does not ask.
    fn harmless_word(&self, rest: &[u8]) -> Result<usize, Unusual> {
        let length = word_length(rest);
        let word = &rest[..length];
        // A raw string may follow.
        let is_prefix = word.last() == Some(&b'R') && rest.get(length) == Some(&b'"');
        match is_prefix || self.names.find(word).is_some() {
            true => Err(Unusual),
            false => Ok(length),
        }
    }

    /// The length of a directive that does not ask.
    fn harmless_directive(&self, at: usize) -> Result<usize, Unusual> {
        let begins_line = self.text[..at].last() == Some(&b'\n');
        let line = line_at(self.text, at);
        match begins_line && self.is_harmless(line) {
            true => Ok(line.len()),
            false => Err(Unusual),
        }
    }
}

impl<'t> Skipping<'t> {
    fn skip_markers(&mut self, text: &'t [u8]) {
        let (at, path) = skip_markers(text, self.at);
        self.at = at;
        if let Some(path) = path {
            self.path = path;
            self.is_in_file = false;
        }
    }

    /// Takes a piece.
    fn take(&mut self, begins: Begins, text: &'t [u8]) {
        if !self.is_in_file {
            self.is_in_file = true;
            self.changes += usize::from(self.path_of_last != self.path);
            self.path_of_last = self.path;
        }
        let kind = match begins {
            Begins::Word => TokenKind::Word,
            Begins::Number | Begins::Literal => TokenKind::Literal,
            _ => TokenKind::Sign,
        };
        let at = self.at;
        self.last = Piece { kind, text, at };
        self.at += text.len();
    }

    fn open(&mut self, bracket: u8) -> Result<usize, Unusual> {
        self.open.push(bracket);
        match self.open.len() <= DEEPEST {
            true => Ok(1),
            false => Err(Unusual),
        }
    }

    fn close(&mut self, bracket: u8) -> Result<usize, Unusual> {
        match (self.open.pop(), bracket) {
            (Some(b'('), b')') | (Some(b'['), b']') | (Some(b'{'), b'}') => Ok(1),
            _ => Err(Unusual),
        }
    }
}

/// The length of a sign, if it begins no comment and no digraph.
fn rare_sign(rest: &[u8]) -> Result<usize, Unusual> {
    match rest {
        [b':', b':', ..] => Ok(2),
        [b'\\', ..] | [b'/', b'/' | b'*', ..] | [b'%' | b':', b'>', ..] | [b'<', b'%', ..] => {
            Err(Unusual)
        }
        // `<::` begins a qualified name.
        [b'<', b':', next @ ..] if !matches!(next, [b':', after, ..] if !matches!(after, b':' | b'>')) => {
            Err(Unusual)
        }
        _ => Ok(1),
    }
}

#[cfg(test)]
mod tests;
