//! Architectures: a number, and which other GPUs run its code.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// The letter after the number, which says where the code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Suffix {
    /// None: the same major version and a minor version not below, or PTX for everything newer.
    None,
    /// `f`: every member of the family from this one on.
    Family,
    /// `a`: this very architecture only.
    Exact,
}

/// `sm_90a` without the `sm_`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Arch {
    /// Ten times the major version, plus the minor one: 90, 121.
    pub number: u32,
    /// The letter.
    pub suffix: Suffix,
}

/// `ptxas` 13.5 takes `.target sm_100f` for exactly these (FATBIN notes in docs/fatbin.md, seen).
const FAMILIES: [&[u32]; 3] = [&[100, 103, 107], &[110], &[120, 121]];

impl Arch {
    /// An architecture without a letter.
    pub fn plain(number: u32) -> Self {
        Self {
            number,
            suffix: Suffix::None,
        }
    }

    /// The major version: 9 of 90, 12 of 121.
    pub fn major(self) -> u32 {
        self.number / 10
    }

    /// Whether `other` belongs to the same family and is not older: what `f` code needs.
    pub fn family_reaches(self, other: u32) -> bool {
        FAMILIES
            .iter()
            .any(|family| family.contains(&self.number) && family.contains(&other))
            && other >= self.number
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.suffix {
            Suffix::None => "",
            Suffix::Family => "f",
            Suffix::Exact => "a",
        };
        write!(f, "{}{letter}", self.number)
    }
}

impl Serialize for Arch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Why a text names no architecture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an architecture: write sm_90, sm_90a, compute_90 or 9.0")]
pub struct NotAnArch(pub String);

impl FromStr for Arch {
    type Err = NotAnArch;

    /// Reads `sm_90a`, `compute_90`, `lto_90`, `90a` and `9.0`.
    fn from_str(text: &str) -> Result<Self, NotAnArch> {
        let wrong = || NotAnArch(text.to_owned());
        let rest = ["sm_", "compute_", "lto_"]
            .iter()
            .find_map(|prefix| text.strip_prefix(prefix))
            .unwrap_or(text);
        let (digits, suffix) = match rest.strip_suffix(['a', 'f']) {
            Some(digits) if rest.ends_with('a') => (digits, Suffix::Exact),
            Some(digits) => (digits, Suffix::Family),
            None => (rest, Suffix::None),
        };
        let number = match digits.split_once('.') {
            // Ten minor versions to a major one, as NVIDIA numbers them.
            Some((major, minor)) if minor.len() == 1 => format!("{major}{minor}").parse(),
            Some(_) => return Err(wrong()),
            None => digits.parse(),
        };
        let number = number.map_err(|_| wrong())?;
        // Also refuses "+90", which `parse` takes.
        if !(10..=9999).contains(&number) || !digits.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(wrong());
        }
        Ok(Self { number, suffix })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_and_write_back() {
        for (text, shown) in [
            ("sm_90a", "90a"),
            ("compute_100f", "100f"),
            ("9.0", "90"),
            ("12.1", "121"),
            ("121", "121"),
        ] {
            assert_eq!(text.parse::<Arch>().expect(text).to_string(), shown);
        }
        for text in [
            "", "sm_", "sm_x", "+90", "9", "9.00", "90b", "sm_99999", "-1",
        ] {
            assert!(text.parse::<Arch>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_family_reaches_forward_only() {
        let f100 = Arch::plain(100);
        assert!(f100.family_reaches(103) && !f100.family_reaches(110) && !f100.family_reaches(120));
        assert!(!Arch::plain(103).family_reaches(100));
    }
}
