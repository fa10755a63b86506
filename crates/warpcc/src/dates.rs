//! Finds results that hold the date or time of their making: `__DATE__`, `__TIME__`, `__TIMESTAMP__`, wherever the macro
//! stood.
//!
//! A preprocessed text that holds a date as a string got it from the clock, unless one of the files that were read has
//! the very same string. So a macro in a header, in an option or put together with `##` is found alike.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use warpcc_cache::guards;
use warpcc_engine::dates::are_named_in;

/// What is known so far of the dates in a run.
pub struct Dates {
    /// Dates in the preprocessed texts that no file has had yet.
    unexplained: BTreeSet<Vec<u8>>,
    /// There was a date at all, or there is no preprocessed text to look at.
    suspicious: bool,
    /// Somebody names one of the macros.
    named: bool,
}

impl Dates {
    /// Looks through the preprocessed texts of a call and its arguments.
    pub fn in_texts(texts: &[PathBuf], args: &[OsString]) -> Self {
        let mut unexplained = BTreeSet::new();
        for text in texts.iter().filter_map(|text| fs::read(text).ok()) {
            unexplained.extend(dates_in(&text).map(<[u8]>::to_vec));
        }
        Self {
            // A `.cpp` file is preprocessed and compiled in one.
            suspicious: !unexplained.is_empty() || texts.is_empty(),
            unexplained,
            named: args.iter().any(|arg| are_named_in(arg.as_encoded_bytes())),
        }
    }

    /// Looks at a file that the run read.
    pub fn inspect(&mut self, text: &[u8]) {
        if !self.suspicious {
            return;
        }
        self.named = self.named || are_named_in(text);
        self.unexplained
            .retain(|date| memchr::memmem::find(text, date).is_none());
    }

    /// Whether the result is one of this moment only.
    pub fn are_of_today(&self) -> bool {
        self.suspicious && (self.named || !self.unexplained.is_empty()) && !guards::is_off("dates")
    }
}

/// The strings in a text that `__DATE__`, `__TIME__` or `__TIMESTAMP__` may have left:
/// `"Nov 21 2026"`, `"00:27:11"`, `"Sat Nov 21 00:27:11 2026"`.
fn dates_in(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let time = |t: &[u8]| {
        t.len() == 8
            && t.iter().enumerate().all(|(i, c)| {
                if i == 2 || i == 5 {
                    *c == b':'
                } else {
                    c.is_ascii_digit()
                }
            })
    };
    let month = |t: &[u8]| {
        t.len() == 3
            && [
                &b"Jan"[..],
                b"Feb",
                b"Mar",
                b"Apr",
                b"May",
                b"Jun",
                b"Jul",
                b"Aug",
                b"Sep",
                b"Oct",
                b"Nov",
                b"Dec",
                b"???",
            ]
            .contains(&t)
    };
    let date = move |t: &[u8]| {
        let year = |t: &[u8]| t.iter().all(|c| c.is_ascii_digit() || *c == b'?');
        month(&t[..3]) && t[3] == b' ' && year(&t[7..])
    };
    let stamp = move |t: &[u8]| month(&t[4..7]) && time(&t[11..19]);
    memchr::memchr_iter(b'"', text).filter_map(move |quote| {
        let rest = &text[quote + 1..];
        let literal = |len: usize| (rest.get(len) == Some(&b'"')).then(|| &rest[..len]);
        literal(8)
            .filter(|t| time(t))
            .or_else(|| literal(11).filter(|t| date(t)))
            .or_else(|| literal(24).filter(|t| stamp(t)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_that_are_dates() {
        for text in [
            "x \"Nov 21 2026\" y",
            "f(\"00:27:11\")",
            "\"Sat Nov  1 00:27:11 2026\"",
        ] {
            assert_eq!(dates_in(text.as_bytes()).count(), 1, "{text}");
        }
        for text in [
            "\"Nov\"",
            "\"Now 21 2026\"",
            "\"12:34\"",
            "\"",
            "\"00-27-11\"",
            "# 1 \"/usr/x.h\" 1",
        ] {
            assert_eq!(dates_in(text.as_bytes()).count(), 0, "{text}");
        }
    }
}
