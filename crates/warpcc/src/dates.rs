//! Finds results that contain the date or time at which they were made, from `__DATE__`, `__TIME__` or `__TIMESTAMP__`.
//!
//! If a preprocessed text contains a date, the date came from the clock, unless a file that was read or the command line
//! contains the same characters. This finds the macro in a header or an option, put together with `##`, or made into a string.
//! A file may contain today's date by chance, so two other things count as well: a file names one of the macros, or a compiler
//! asked for the local time, as it does when it expands one. A `.cpp` file is preprocessed and compiled in one step, so there
//! is no preprocessed text. For such a file, the names of the macros count, and times of this run in the resulting files.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use warpcc_cache::guards;
use warpcc_engine::pieces;

const MACROS: [&[u8]; 3] = [b"__DATE__", b"__TIME__", b"__TIMESTAMP__"];

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Time zones differ by quarters of an hour.
const QUARTER: u64 = 15 * 60;

/// The texts of a call in which dates could stand.
pub struct Texts<'a> {
    /// Preprocessed texts.
    pub preprocessed: &'a [PathBuf],
    /// Files made from sources whose preprocessed text is not seen; empty where every source's text is seen.
    pub made_unseen: &'a [PathBuf],
    /// The command line.
    pub args: &'a [OsString],
    /// The start of the run.
    pub began: SystemTime,
    /// A compiler was seen to expand one of the macros.
    pub expanded: bool,
}

/// The dates found so far in a run.
pub struct Dates {
    /// Dates in the preprocessed texts that no file inspected so far contains.
    unexplained: BTreeSet<Vec<u8>>,
    /// Whether there is any date, or a source without a preprocessed text.
    suspicious: bool,
    /// Whether a file or the command line names one of the macros, or a compiler was seen to expand one.
    named: bool,
}

impl Dates {
    /// Searches the files that a call made, and its arguments.
    pub fn in_texts(texts: &Texts<'_>) -> Self {
        let mut unexplained = BTreeSet::new();
        let mut unreadable = false;
        for path in texts.preprocessed {
            let read = each_date_of(path, |date| _ = unexplained.insert(date.to_vec()));
            unreadable |= read.is_err();
        }
        let now = since_1970(texts.began)..=since_1970(SystemTime::now());
        for path in texts.made_unseen {
            let read = each_date_of(path, |date| {
                if may_be_of(date, &now) {
                    unexplained.insert(date.to_vec());
                }
            });
            unreadable |= read.is_err();
        }
        let mut dates = Self {
            suspicious: unreadable || !unexplained.is_empty() || !texts.made_unseen.is_empty(),
            unexplained,
            named: unreadable,
        };
        // This does not depend on the files: none contains a macro's name that is put together with `##`.
        dates.named |= dates.suspicious && texts.expanded;
        for arg in texts.args {
            dates.inspect(arg.as_encoded_bytes());
        }
        dates
    }

    /// Whether the files that the run read must be inspected.
    pub fn need_files(&self) -> bool {
        self.suspicious
    }

    /// Looks at a file that the run read.
    pub fn inspect(&mut self, text: &[u8]) {
        if !self.suspicious {
            return;
        }
        self.named = self.named || names_macro(text);
        self.unexplained
            .retain(|date| memchr::memmem::find(text, date).is_none());
    }

    /// Whether the result is valid at this moment only.
    pub fn are_of_today(&self) -> bool {
        self.suspicious && (self.named || !self.unexplained.is_empty()) && !guards::is_off("dates")
    }
}

fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn names_macro(text: &[u8]) -> bool {
    MACROS
        .iter()
        .any(|name| memchr::memmem::find(text, name).is_some())
}

/// Calls `each` with every date in a file. The file is read in pieces: no date is on two lines. A missing file has no dates.
fn each_date_of(path: &Path, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let read = pieces::read_lines(path, |lines| {
        dates_in(lines).for_each(&mut each);
        true
    });
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        read => read,
    }
}

/// Dates and times that `__DATE__`, `__TIME__` or `__TIMESTAMP__` may have left in a text, in quotes or not:
/// `Nov 21 2026`, `00:27:11`.
fn dates_in(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    separators_in(text).filter_map(move |at| {
        let (before, length, is_it): (_, _, fn(&[u8]) -> bool) = match text[at] {
            b':' => (2, 8, is_time),
            _ => (3, 11, is_date),
        };
        let found = text.get(at.checked_sub(before)?..)?.get(..length)?;
        is_it(found).then_some(found)
    })
}

/// Where a date or a time may stand: at a colon, or a space, with another one three characters on and a digit or a
/// question mark before and after that. Preprocessed texts have millions of characters and few such places: the compiler
/// vectorises the first look at a block.
fn separators_in(text: &[u8]) -> impl Iterator<Item = usize> {
    const BLOCK: usize = 128;
    const AHEAD: usize = 4;
    // In ASCII, digits and the question mark are among the sixteen characters from 0x30 on.
    let is_digit = |character: u8| character & 0xF0 == 0x30;
    let may_be = move |at: &[u8]| {
        (at[0] == at[3]) & ((at[0] == b':') | (at[0] == b' ')) & is_digit(at[2]) & is_digit(at[4])
    };
    let starts = (0..text.len().saturating_sub(AHEAD)).step_by(BLOCK);
    starts.flat_map(move |start| {
        let block = &text[start..text.len().min(start + BLOCK + AHEAD)];
        let places = move || block.windows(AHEAD + 1).map(may_be);
        let any = places().fold(false, |any, here| any | here);
        let inside = places().enumerate().take(if any { BLOCK } else { 0 });
        inside.filter_map(move |(at, here)| here.then_some(start + at))
    })
}

fn is_time(text: &[u8]) -> bool {
    let digits = [0, 1, 3, 4, 6, 7]
        .iter()
        .all(|&at| text[at].is_ascii_digit());
    // Two of three question marks stand where gcc knows no time.
    let unknown = text == b"??:??:??";
    unknown || (digits && text[2] == b':' && text[5] == b':')
}

/// `Nov 21 2026`, `Nov  1 2026`.
fn is_date(text: &[u8]) -> bool {
    let month = MONTHS.iter().any(|month| text.starts_with(*month));
    let day = (text[4] == b' ' || text[4].is_ascii_digit()) && text[5].is_ascii_digit();
    let known = month && day && text[7..].iter().all(u8::is_ascii_digit);
    text == b"??? ?? ????" || (known && text[3] == b' ' && text[6] == b' ')
}

/// Whether a time or date can be one of these moments, in whatever time zone.
fn may_be_of(date: &[u8], moments: &RangeInclusive<Duration>) -> bool {
    let (first, last) = (moments.start().as_secs(), moments.end().as_secs());
    if date.len() == 11 {
        const DAY: u64 = 24 * 60 * 60;
        let mut days = first / DAY - 1..=last / DAY + 1;
        return days.any(|day| date_of(day) == date);
    }
    let Some(quarter) = (|| {
        let number = |at: usize| std::str::from_utf8(&date[at..at + 2]).ok()?.parse().ok();
        let (minutes, seconds): (u64, u64) = (number(3)?, number(6)?);
        Some((minutes * 60 + seconds) % QUARTER)
    })() else {
        return true;
    };
    last - first >= QUARTER || (first..=last).any(|moment| moment % QUARTER == quarter)
}

/// A day as `__DATE__` has it, by its number since 1970. By Howard Hinnant's `civil_from_days`.
fn date_of(day: u64) -> Vec<u8> {
    let day = day + 719_468;
    let era = day / 146_097;
    let of_era = day % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 2
    } else {
        shifted - 10
    };
    let year = year_of_era + era * 400 + u64::from(month < 2);
    let name = MONTHS[usize::try_from(month).unwrap_or_default()];
    format!("{} {of_month:2} {year}", String::from_utf8_lossy(name)).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_are_dates() {
        for text in [
            "x \"Nov 21 2026\" y",
            "f(\"00:27:11\")",
            "\"\\\"00:27:11\\\"\"",
            "Nov  1 2026",
            "\"??:??:??\"",
        ] {
            assert_eq!(dates_in(text.as_bytes()).count(), 1, "{text}");
        }
        assert_eq!(dates_in(b"\"Sat Nov  1 00:27:11 2026\"").count(), 1);
        for text in [
            "\"Nov\"",
            "\"Now 21 2026\"",
            "\"12:34\"",
            "\"",
            ":",
            " ",
            "\"00-27-11\"",
            "# 1 \"/usr/x.h\" 1",
            "std::move(a), May be 2 of",
        ] {
            assert_eq!(dates_in(text.as_bytes()).count(), 0, "{text}");
        }
    }

    #[test]
    fn dates_are_found_wherever_they_stand() {
        for date in ["00:27:11", "Nov 21 2026", "Nov  1 2026", "??? ?? ????"] {
            for before in 0..300 {
                for after in [0, 1, 2, 3, 4, 130] {
                    let text = format!("{}{date}{}", "x".repeat(before), "x".repeat(after));
                    let found: Vec<_> = dates_in(text.as_bytes()).collect();
                    assert_eq!(found, [date.as_bytes()], "{before} {after}");
                }
            }
        }
    }

    #[test]
    fn dates_across_pieces_of_a_file_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("k.ii");
        for before in (1 << 16) - 12..(1 << 16) + 18 {
            std::fs::write(&path, format!("{}Nov 21 2026 x", "x".repeat(before))).expect("write");
            let mut found = BTreeSet::new();
            each_date_of(&path, |date| _ = found.insert(date.to_vec())).expect("read");
            assert_eq!(found, BTreeSet::from([b"Nov 21 2026".to_vec()]), "{before}");
        }
        let none = each_date_of(&folder.path().join("none"), |_| unreachable!("no file"));
        assert!(none.is_ok());
        assert!(each_date_of(folder.path(), |_| ()).is_err(), "a folder");
    }

    #[test]
    fn a_day_as_the_preprocessor_writes_it() {
        for (day, text) in [
            (0, "Jan  1 1970"),
            (58, "Feb 28 1970"),
            (11_016, "Feb 29 2000"),
            (11_017, "Mar  1 2000"),
            (20_780, "Nov 23 2026"),
            (20_819, "Jan  1 2027"),
        ] {
            assert_eq!(String::from_utf8_lossy(&date_of(day)), text);
        }
    }

    #[test]
    fn times_of_a_run_are_told_from_others() {
        let run = Duration::from_secs(20_780 * 86_400 + 3605)
            ..=Duration::from_secs(20_780 * 86_400 + 3609);
        // 01:00:05 in Greenwich, and the same moment in Kathmandu.
        assert!(may_be_of(b"01:00:05", &run) && may_be_of(b"06:45:09", &run));
        assert!(!may_be_of(b"01:00:04", &run) && !may_be_of(b"01:01:05", &run));
        assert!(may_be_of(b"Nov 23 2026", &run) && may_be_of(b"Nov 24 2026", &run));
        assert!(!may_be_of(b"Nov 25 2026", &run) && !may_be_of(b"Nov 23 2025", &run));
    }
}
