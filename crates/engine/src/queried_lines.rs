//! Finds the files of a preprocessed text whose line numbers can become part of a result.
//!
//! `__builtin_LINE` in a default argument gives the line of the call. So a text that contains it anywhere, such as one with
//! CCCL's or C++'s `source_location`, could depend on any of its lines. Usually it does not: the function with that
//! default argument is declared in a header, and the source that people edit never calls it.
//!
//! This module follows the names. A function with such a default argument queries a line, and so does a function whose default
//! argument calls that function. The lines of a file count if it contains one of these names where that could be a call.
//! The lines of other files do not count, if no call is possible without one of the names. C++ has many calls without a name:
//! of constructors, operators, initialisers of members, closures. So every place of a name is checked, and at a place that is
//! not known to be harmless, the lines of the whole text count.
//!
//! An expression elsewhere, such as in a function's body, queries the line of its own file, and that file contains the name.

mod brackets;
mod head;
mod places;
mod reader;
mod scan;
mod skip;
#[cfg(test)]
mod tests;
mod values;

use std::collections::HashSet;

use memchr::memmem;

use crate::tokens::{Marker, is_word};

use reader::line_at;
use scan::Scan;

/// Ways to ask for the line or the column, besides `__LINE__`, which the preprocessor has replaced.
pub const ASKS: [&[u8]; 3] = [
    b"__builtin_LINE",
    b"__builtin_COLUMN",
    b"__builtin_source_location",
];

/// How they all begin.
const BUILTIN: &[u8] = b"__builtin_";

/// A function that probably asks.
const GUESS: &[u8] = b"current";

/// How often a text is read again because a name that asks was there before its declaration.
const MOST_SCANS: usize = 4;

/// How many names are followed: each one is looked for in the whole text.
const MOST_NAMES: usize = 100;

/// Whether the text contains a word of [`ASKS`], perhaps as a part of another.
pub fn are_in(text: &[u8]) -> bool {
    let mut builtins = memmem::find_iter(text, BUILTIN);
    builtins.any(|at| ASKS.iter().any(|word| text[at..].starts_with(word)))
}

/// The main file of a text, as its line markers name it; `None` if the text does not begin with one.
pub fn main_file(text: &[u8]) -> Option<&[u8]> {
    Marker::read(line_at(text, 0)).map(|marker| marker.path)
}

/// The files, as line markers name them, in which a name is that asks: their lines count. `None` if all lines may count.
pub fn files(text: &[u8]) -> Option<HashSet<&[u8]>> {
    files_from(text, &Scan::new)
}

fn files_from<'t>(
    text: &'t [u8],
    begin: &dyn Fn(&'t [u8], Names<'t>) -> Scan<'t>,
) -> Option<HashSet<&'t [u8]>> {
    let mut names = Names::new();
    for _ in 0..MOST_SCANS {
        let mut scan = begin(text, names);
        scan.run()?;
        scan.names.find_constructors();
        if scan.names.is_guess_right && scan.names.has_guess_escaped {
            return None;
        }
        if !scan.names.are_incomplete {
            return Some(scan.files);
        }
        names = scan.names;
        names.are_incomplete = false;
        names.classes.clear();
    }
    None
}

/// What a name that asks is the name of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sort {
    Builtin,
    Function,
    /// A class with a constructor that asks.
    Class,
}

/// The names that ask, as far as they are known.
struct Names<'t> {
    all: Vec<(&'t [u8], Sort)>,
    /// A bit for the length and the last letter of each name: most words have none of them.
    shapes: u64,
    /// The names of classes so far.
    classes: Vec<&'t [u8]>,
    /// Whether [`GUESS`] was found to ask.
    is_guess_right: bool,
    /// Whether [`GUESS`] was named where other code may then call it without the name.
    has_guess_escaped: bool,
    /// Whether one was found that an earlier part of the text may contain.
    are_incomplete: bool,
}

impl<'t> Names<'t> {
    fn new() -> Self {
        let mut names = Self {
            all: Vec::new(),
            shapes: 0,
            classes: Vec::new(),
            is_guess_right: false,
            has_guess_escaped: false,
            are_incomplete: false,
        };
        ASKS.iter()
            .for_each(|word| names.insert(word, Sort::Builtin));
        // Every `source_location` has it. Without this guess the text would be read again.
        names.insert(GUESS, Sort::Function);
        names
    }

    fn insert(&mut self, word: &'t [u8], sort: Sort) {
        self.shapes |= shape(word);
        self.all.push((word, sort));
    }

    fn find(&self, word: &[u8]) -> Option<Sort> {
        if self.shapes & shape(word) == 0 {
            return None;
        }
        let mut all = self.all.iter();
        all.find(|(name, _)| *name == word).map(|(_, sort)| *sort)
    }

    /// Adds the function or the constructor of that name. Whether it is new; `None` if it can be called without its name.
    fn add(&mut self, word: &'t [u8]) -> Option<bool> {
        self.is_guess_right |= word == GUESS;
        if self.find(word).is_some() {
            return Some(false);
        }
        if is_called_unnamed(word) || self.all.len() == MOST_NAMES {
            return None;
        }
        let sort = match self.classes.contains(&word) {
            true => Sort::Class,
            false => Sort::Function,
        };
        self.insert(word, sort);
        Some(true)
    }

    /// Whether the function of that name is not yet known to ask.
    fn is_a_guess(&self, word: &[u8]) -> bool {
        word == GUESS && !self.is_guess_right
    }

    /// At the end of the text: a function with the name of a class may be its constructor.
    fn find_constructors(&mut self) {
        for (name, sort) in &mut self.all {
            let is_found = *name != GUESS || self.is_guess_right;
            if *sort == Sort::Function && is_found && self.classes.contains(name) {
                *sort = Sort::Class;
                self.are_incomplete = true;
            }
        }
    }
}

fn shape(word: &[u8]) -> u64 {
    let last = word.last().copied().unwrap_or(0);
    1 << ((word.len() + 7 * usize::from(last)) % 64)
}

fn is_in_marker(text: &[u8], at: usize) -> bool {
    let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |found| found + 1);
    Marker::read(line_at(text, start)).is_some()
}

/// The places of a whole word.
fn whole_words<'a>(text: &'a [u8], word: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    memmem::find_iter(text, word).filter(move |at| {
        let before = text[..*at].last();
        let after = text.get(at + word.len());
        !before.is_some_and(|c| is_word(*c)) && !after.is_some_and(|c| is_word(*c))
    })
}

/// Whether the language calls a function of that name by itself: for a loop over a range, a structured binding or a
/// coroutine. The names are those of the C++23 standard (stmt.ranged, dcl.struct.bind, dcl.fct.def.coroutine, expr.await,
/// expr.yield, stmt.return.coroutine). No observation replaces this list: a standard that adds a call needs a row here.
fn is_called_unnamed(word: &[u8]) -> bool {
    matches!(
        word,
        b"address"
            | b"begin"
            | b"end"
            | b"from_address"
            | b"from_promise"
            | b"get"
            | b"await_ready"
            | b"await_resume"
            | b"await_suspend"
            | b"await_transform"
            | b"final_suspend"
            | b"get_return_object"
            | b"get_return_object_on_allocation_failure"
            | b"initial_suspend"
            | b"promise_type"
            | b"return_value"
            | b"return_void"
            | b"unhandled_exception"
            | b"yield_value"
    )
}
