//! The key of a task: its named parts, hashed, or listed so that a person can see which part differs.
//!
//! A task is described once, by writing its parts into a [`KeySink`]. Hashing and explaining are two sinks for the same
//! code.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use warpcc_path_map::WorkDir;

use crate::digest::to_hex;

/// The SHA-256 over all parts of a task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key(pub [u8; 32]);

impl Key {
    /// The key in lower-case hexadecimal.
    pub fn hex(&self) -> String {
        to_hex(&self.0)
    }

    /// The key of a result that contains a mapped folder's real name: it is valid in these folders only.
    #[must_use]
    pub fn path_specific(&self, at: WorkDir<'_>) -> Key {
        let mut sink = Hashing::new("warpcc bound 1");
        sink.part("key", &self.0);
        sink.part("directory", at.directory.as_os_str().as_encoded_bytes());
        for (marker, folder) in at.path_map.key_parts() {
            sink.part(marker, folder);
        }
        sink.finish()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// Receives the parts of a key, in order.
pub trait KeySink {
    /// One part. Names may repeat; order and number matter.
    fn part(&mut self, name: &str, value: &[u8]);
}

/// Turns parts into a [`Key`].
///
/// Every name and value is hashed with its length, so that two different lists never hash the same bytes.
#[derive(Clone)]
pub struct Hashing(Sha256);

impl Hashing {
    /// Starts a key. Keys of different domains are never equal.
    pub fn new(domain: &str) -> Hashing {
        let mut hashing = Hashing(Sha256::new());
        hashing.field(domain.as_bytes());
        hashing
    }

    /// The key of all parts so far.
    pub fn finish(self) -> Key {
        Key(self.0.finalize().into())
    }

    fn field(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }
}

impl KeySink for Hashing {
    fn part(&mut self, name: &str, value: &[u8]) {
        self.field(name.as_bytes());
        self.field(value);
    }
}

/// Turns parts into a [`KeyParts`].
#[derive(Clone, Default)]
pub struct Explaining(Vec<(String, Vec<u8>)>);

impl Explaining {
    /// Starts an empty list.
    pub fn new() -> Explaining {
        Explaining::default()
    }

    /// All parts so far.
    pub fn finish(self) -> KeyParts {
        KeyParts(self.0)
    }
}

impl KeySink for Explaining {
    fn part(&mut self, name: &str, value: &[u8]) {
        self.0.push((name.to_owned(), value.to_owned()));
    }
}

/// The parts of a key, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyParts(pub Vec<(String, Vec<u8>)>);

/// A part that differs between two lists: changed, removed (`new` is `None`) or added (`old` is `None`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyChange {
    /// The part's name, or [`KeyChange::ORDER`].
    pub name: String,
    /// Its value in the old list.
    pub old: Option<Vec<u8>>,
    /// Its value in the new list.
    pub new: Option<Vec<u8>>,
}

impl KeyChange {
    /// The name of a change in the order of differently named parts. Its values are the names, one per line.
    pub const ORDER: &'static str = "(order of parts)";
}

impl KeyParts {
    /// The key that [`Hashing`] computes for the same parts.
    pub fn key(&self, domain: &str) -> Key {
        let mut hashing = Hashing::new(domain);
        for (name, value) in &self.0 {
            hashing.part(name, value);
        }
        hashing.finish()
    }

    /// The differences. The list is empty if and only if the parts are equal.
    ///
    /// Parts of one name are compared as a multiset, and the rest is paired in order. So one argument in front of twenty is
    /// one addition, not twenty changes.
    pub fn changes(old: &KeyParts, new: &KeyParts) -> Vec<KeyChange> {
        if old == new {
            return Vec::new();
        }
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in old.0.iter().chain(&new.0) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let mut changes = Vec::new();
        for name in names {
            let old_values = old.values(name);
            let new_values = new.values(name);
            if old_values != new_values {
                changes.extend(changes_of_one_name(name, &old_values, &new_values));
            }
        }
        if changes.is_empty() {
            changes.push(KeyChange {
                name: KeyChange::ORDER.to_owned(),
                old: Some(old.names()),
                new: Some(new.names()),
            });
        }
        changes
    }

    fn values(&self, name: &str) -> Vec<&[u8]> {
        let parts = self.0.iter().filter(|(n, _)| n == name);
        parts.map(|(_, value)| value.as_slice()).collect()
    }

    fn names(&self) -> Vec<u8> {
        let names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        names.join("\n").into_bytes()
    }
}

fn changes_of_one_name(name: &str, old: &[&[u8]], new: &[&[u8]]) -> Vec<KeyChange> {
    let change = |old: Option<&[u8]>, new: Option<&[u8]>| KeyChange {
        name: name.to_owned(),
        old: old.map(<[u8]>::to_vec),
        new: new.map(<[u8]>::to_vec),
    };
    let mut only_new = new.to_vec();
    let mut only_old = Vec::new();
    for value in old {
        match only_new.iter().position(|other| other == value) {
            Some(at) => {
                only_new.remove(at);
            }
            None => only_old.push(*value),
        }
    }
    if only_old.is_empty() && only_new.is_empty() {
        // The values are the same in another order: show the places that differ.
        let pairs = old.iter().zip(new).filter(|(a, b)| a != b);
        return pairs.map(|(a, b)| change(Some(a), Some(b))).collect();
    }
    let count = only_old.len().max(only_new.len());
    (0..count)
        .map(|i| change(only_old.get(i).copied(), only_new.get(i).copied()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(parts: &[(&str, &str)]) -> KeyParts {
        let mut explaining = Explaining::new();
        for (name, value) in parts {
            explaining.part(name, value.as_bytes());
        }
        explaining.finish()
    }

    #[test]
    fn the_border_between_name_and_value_counts() {
        let one = listing(&[("a", "bc")]).key("d");
        assert_ne!(one, listing(&[("ab", "c")]).key("d"));
        assert_ne!(one, listing(&[("a", "b"), ("c", "")]).key("d"));
        assert_ne!(one, listing(&[("a", "bc")]).key("e"));
    }

    /// Existing caches have entries under this key.
    #[test]
    fn the_key_of_a_folder_stays_what_it_was() {
        let path_map = warpcc_path_map::PathMap::new([("2", "/w/clone/build"), ("1", "/w/clone")]);
        let at = WorkDir {
            directory: std::path::Path::new("/w/clone/build"),
            path_map: &path_map,
        };
        assert_eq!(
            Key([7; 32]).path_specific(at).hex(),
            "65d9091d075efff923a164e22e80ac96b87f8b8be0a9d2c2aeb38813061d4059"
        );
    }

    #[test]
    fn one_more_argument_is_one_change() {
        let old = listing(&[("tool", "t"), ("arg", "-a"), ("arg", "-b")]);
        let new = listing(&[("tool", "t"), ("arg", "-c"), ("arg", "-a"), ("arg", "-b")]);
        let changes = KeyParts::changes(&old, &new);
        assert_eq!(
            changes,
            [KeyChange {
                name: "arg".into(),
                old: None,
                new: Some(b"-c".to_vec())
            }]
        );
    }

    #[test]
    fn a_changed_value_is_paired_with_the_old_one() {
        let old = listing(&[("arg", "-O2"), ("arg", "-g")]);
        let new = listing(&[("arg", "-O3"), ("arg", "-g")]);
        let changes = KeyParts::changes(&old, &new);
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].old.as_deref(), Some(&b"-O2"[..]));
        assert_eq!(changes[0].new.as_deref(), Some(&b"-O3"[..]));
    }

    #[test]
    fn order_alone_is_a_change() {
        let old = listing(&[("a", "1"), ("b", "2")]);
        let new = listing(&[("b", "2"), ("a", "1")]);
        assert_eq!(KeyParts::changes(&old, &new)[0].name, KeyChange::ORDER);
        let old = listing(&[("a", "1"), ("a", "2")]);
        let new = listing(&[("a", "2"), ("a", "1")]);
        assert_eq!(KeyParts::changes(&old, &new).len(), 2);
    }
}
