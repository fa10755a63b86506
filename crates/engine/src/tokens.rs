//! Hashes the tokens of a preprocessed text, without the lines that they are on.
//!
//! A comment or a blank line in a source only moves what is below it. Without debug information cicc and cudafe++ make the
//! same output of both texts, except for line markers and messages. So this hash leaves out blank lines, the space around
//! each line, and the numbers of line markers.
//!
//! A part may be left out only if it cannot change a result. A raw string keeps its blank lines and its space. A text that is
//! not understood has no hash: its lines count. So may the lines of a text that asks for some ([`queried_lines`]).

use memchr::{memchr, memchr_iter, memchr3, memmem};

use crate::text_layout::{LayoutMaker, TextLayout};
use crate::{pieces, queried_lines};

/// The size of the pieces that are passed to the hash: a whole number of BLAKE3's chunks, each of which is slow if it comes in
/// parts.
const PIECE: usize = 1 << 15;

/// The hash of a text without its lines, computed while the text arrives in pieces.
#[derive(Default)]
pub struct Tokens {
    hasher: blake3::Hasher,
    kept: Vec<u8>,
    /// The file that the last marker named, as [`Marker::place_into`] writes it.
    place: Vec<u8>,
    next_place: Vec<u8>,
    has_raw: bool,
    has_comment: bool,
    /// Whether a part of the text can ask for its line.
    asks: bool,
    may_count: bool,
    layout: LayoutMaker,
}

impl Tokens {
    /// Takes the next lines of the text. Returns the number of bytes that it has finished. Unless this is the end, the rest
    /// must come again at the start of the next piece.
    pub fn take(&mut self, text: &[u8], is_end: bool) -> usize {
        let text = pieces::whole_lines(text, is_end);
        if self.may_count {
            return text.len();
        }
        self.asks = self.asks || queried_lines::are_in(text);
        let mut raw = RawStrings::find(text);
        self.has_raw |= raw.next.is_some();
        self.has_comment = self.has_comment || memmem::find(text, b"/*").is_some();
        // Comments are there only with -C. A comment may contain the beginning of a raw string.
        self.may_count |= self.has_raw && self.has_comment;
        let mut at = 0;
        while at < text.len() && !self.may_count {
            let mut end = memchr(b'\n', &text[at..]).map_or(text.len(), |found| at + found);
            let mut more = 0;
            if raw.begins_before(end) {
                end = match end_of_line(text, at) {
                    Some(end) => end,
                    None if is_end => {
                        self.may_count = true;
                        break;
                    }
                    // The line may end in the next piece.
                    None => return at,
                };
                raw.skip_to(end);
                more = memchr_iter(b'\n', &text[at..end]).count();
            }
            self.line(&text[at..end], more);
            at = end + 1;
        }
        text.len()
    }

    /// Takes a line, which goes on for `more` lines in a raw string.
    fn line(&mut self, line: &[u8], more: usize) {
        if let Some(marker) = Marker::read(line) {
            self.layout.enter(marker.path, marker.number);
            marker.place_into(&mut self.next_place);
            if marker.moves || self.next_place != self.place {
                let head: &[u8] = if marker.moves { b"\0\0" } else { b"\0" };
                self.kept.extend_from_slice(head);
                self.kept.extend_from_slice(marker.rest);
                self.kept.push(b'\n');
                std::mem::swap(&mut self.place, &mut self.next_place);
            }
        } else {
            let begin = line.trim_ascii_start();
            let indentation = &line[..line.len() - begin.len()];
            let line = begin.trim_ascii_end();
            match line.is_empty() {
                true => self.layout.skip(1),
                false => self.layout.take(indentation, more),
            }
            // A NUL at the beginning of a line stands for a marker in the hash.
            self.may_count |= line.last() == Some(&b'\\') || line.first() == Some(&0);
            if !line.is_empty() {
                self.kept.extend_from_slice(line);
                self.kept.push(b'\n');
            }
        }
        if self.kept.len() >= PIECE {
            let whole = self.kept.len() - self.kept.len() % PIECE;
            self.hasher.update(&self.kept[..whole]);
            self.kept.drain(..whole);
        }
    }

    /// The hash, and the layout of a text that asks for lines, once the whole text was taken; `None` if all lines count.
    pub fn finish(mut self) -> Option<([u8; 32], Option<TextLayout>)> {
        self.hasher.update(&self.kept);
        let asks = self.asks && !warpcc_cache::guards::is_off("lines-asked-for");
        let layout = asks.then(|| self.layout.finish());
        let hash = self.hasher.finalize().into();
        (!self.may_count).then_some((hash, layout))
    }
}

/// A line marker of gcc: `# 12 "path" 1 3 4`.
pub struct Marker<'a> {
    number: &'a [u8],
    /// All but the line number.
    rest: &'a [u8],
    /// The file, with its quotes.
    pub path: &'a [u8],
    flags: &'a [u8],
    /// Whether a file begins here, or continues after an include.
    moves: bool,
}

impl<'a> Marker<'a> {
    pub fn read(line: &'a [u8]) -> Option<Self> {
        let after = line.strip_prefix(b"# ")?;
        let digits = after.iter().take_while(|c| c.is_ascii_digit()).count();
        let rest = after[digits..].strip_prefix(b" ").filter(|_| digits > 0)?;
        let inside = rest.strip_prefix(b"\"")?;
        let length = 1 + end_of_literal(inside, b'"')?;
        let flags = &rest[length..];
        let is_flag = |word: &[u8]| matches!(word, [] | [b'1'..=b'4']);
        let mut words = flags.split(|c| *c == b' ');
        words.clone().all(is_flag).then_some(())?;
        Some(Self {
            number: &after[..digits],
            rest,
            path: &rest[..length],
            flags,
            moves: words.any(|word| matches!(word, b"1" | b"2")),
        })
    }

    /// Writes which file the marker names, and the kind of that file.
    fn place_into(&self, place: &mut Vec<u8>) {
        let words = self.flags.split(|c| *c == b' ');
        let lasting = words.filter(|word| matches!(*word, [b'3' | b'4']));
        place.clear();
        place.extend_from_slice(self.path);
        lasting.for_each(|word| place.extend_from_slice(word));
    }
}

/// The places where raw strings may begin: each `R"` that is not the end of a longer identifier.
struct RawStrings<'a> {
    found: memmem::FindIter<'a, 'static>,
    text: &'a [u8],
    next: Option<usize>,
}

impl<'a> RawStrings<'a> {
    fn find(text: &'a [u8]) -> Self {
        let mut all = Self {
            found: memmem::find_iter(text, b"R\""),
            text,
            next: None,
        };
        all.advance();
        all
    }

    fn advance(&mut self) {
        let text = self.text;
        self.next = self.found.by_ref().find(|at| {
            let head = &text[at.saturating_sub(3)..*at];
            let word = head.iter().rev().take_while(|c| is_word(**c)).count();
            matches!(&head[head.len() - word..], b"" | b"u8" | b"u" | b"U" | b"L")
        });
    }

    fn begins_before(&self, end: usize) -> bool {
        self.next.is_some_and(|at| at < end)
    }

    fn skip_to(&mut self, end: usize) {
        while self.begins_before(end) {
            self.advance();
        }
    }
}

pub const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// The end of the line that begins at `at`, with its raw strings as a whole; `None` if a literal does not end, or if there
/// is a comment.
fn end_of_line(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let rest = &text[at..];
        match rest {
            [] | [b'\n', ..] => return Some(at),
            [b'/', b'/' | b'*', ..] => return None,
            [quote @ (b'"' | b'\''), inside @ ..] => at += 1 + end_of_literal(inside, *quote)?,
            // A number, with its digit separators.
            [b'0'..=b'9', ..] => {
                let part = |c: u8| is_word(c) || c == b'.';
                let mut length = 1;
                while let Some(&next) = rest.get(length) {
                    let separates =
                        next == b'\'' && rest.get(length + 1).is_some_and(|c| is_word(*c));
                    if !part(next) && !separates {
                        break;
                    }
                    length += 1;
                }
                at += length;
            }
            [first, ..] if is_word(*first) => {
                let length = rest.iter().take_while(|c| is_word(**c)).count();
                let word = &rest[..length];
                at += length;
                if matches!(word, b"R" | b"u8R" | b"uR" | b"UR" | b"LR")
                    && text.get(at) == Some(&b'"')
                {
                    at += 1 + end_of_raw(&text[at + 1..])?;
                }
            }
            _ => at += 1,
        }
    }
}

/// How much of `inside` belongs to a literal that began with `quote`, including the closing quote.
pub fn end_of_literal(inside: &[u8], quote: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr3(quote, b'\\', b'\n', inside.get(at..)?)?;
        match inside[at] {
            b'\n' => return None,
            b'\\' => at += 2,
            _ => return Some(at + 1),
        }
    }
}

/// How much of `inside` belongs to a raw string, after its first quote.
pub fn end_of_raw(inside: &[u8]) -> Option<usize> {
    let open = inside.iter().take(17).position(|c| *c == b'(')?;
    let mut close = vec![b')'];
    close.extend_from_slice(&inside[..open]);
    close.push(b'"');
    memmem::find(&inside[open..], &close).map(|at| open + at + close.len())
}

#[cfg(test)]
mod tests;
