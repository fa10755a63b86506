//! Headers that an earlier run hashed: only their signatures are compared, and their contents are not read again.
//!
//! A file that includes Thrust opens 1,500 headers, nearly all of a toolkit and of the C++ library. The hashes of all files
//! in one place, a tree of headers or a folder, are in one note.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::CStr;
use std::time::SystemTime;

use super::Signature;
use super::hash::{ContentHashes, HashFault, Hashed, Inspect, hash_each};
use super::signature::Base;
use super::trust::Trust;
use crate::guards;
use crate::wire::Reader;

/// A place with fewer files gets no note: reading one costs about as much as hashing that many headers.
const WORTH_A_NOTE: usize = 8;
/// If a note has more files, only those of the last run stay in it.
const MOST_FILES: usize = 1 << 14;

/// Hashes every path whose content is not known from an earlier run; the results are in the order of the paths.
pub(super) fn hash_all(
    base: &Base,
    paths: &[&CStr],
    inspect: Option<Inspect<'_>>,
    contents: Option<&dyn ContentHashes>,
) -> Vec<Result<Hashed, HashFault>> {
    let (None, Some(contents)) = (&inspect, contents) else {
        return hash_each(base, paths, inspect, contents);
    };
    let mut known = KnownContents::look_up(contents, paths);
    let found: Vec<_> = paths.iter().map(|path| known.find(base, path)).collect();
    let unknown = paths
        .iter()
        .zip(&found)
        .filter(|(_, found)| found.is_none());
    let unknown: Vec<&CStr> = unknown.map(|(path, _)| *path).collect();
    let began = SystemTime::now();
    let hashed = hash_each(base, &unknown, None, Some(contents));
    for (path, hashed) in unknown.iter().zip(&hashed) {
        if let Ok(hashed) = hashed {
            known.add(path, hashed, began);
        }
    }
    known.keep();
    let mut hashed = hashed.into_iter();
    let each = found.into_iter().map(|found| match found {
        Some(found) => Ok(found),
        None => hashed.next().unwrap_or(Err(HashFault::Changed)),
    });
    each.collect()
}

/// The known contents of the files that a run read.
struct KnownContents<'a> {
    contents: &'a dyn ContentHashes,
    places: BTreeMap<&'a [u8], PlaceContents>,
    trust: Trust,
}

/// The files of one place.
#[derive(Default)]
struct PlaceContents {
    noted: HashMap<Signature, [u8; 32]>,
    used: BTreeSet<(u64, u64)>,
    new: Vec<(Signature, [u8; 32])>,
}

impl PlaceContents {
    /// The stored BLAKE3 of a file, for a test that leaves out the comparison of times.
    fn content_at_any_time(&self, now: &Signature) -> Option<[u8; 32]> {
        let is_it =
            |noted: &Signature| (noted.dev, noted.ino, noted.size) == (now.dev, now.ino, now.size);
        let mut noted = self.noted.iter();
        noted
            .find(|(noted, _)| is_it(noted))
            .map(|(_, content)| *content)
    }
}

impl<'a> KnownContents<'a> {
    /// Reads the notes about the places of these files.
    fn look_up(contents: &'a dyn ContentHashes, paths: &[&'a CStr]) -> Self {
        let mut counts: BTreeMap<&[u8], usize> = BTreeMap::new();
        for place in paths.iter().filter_map(|path| place_of(path)) {
            *counts.entry(place).or_default() += 1;
        }
        let large = counts.into_iter().filter(|(_, n)| *n >= WORTH_A_NOTE);
        let note = |place| PlaceContents {
            noted: decode(&contents.recall_place(place)),
            ..PlaceContents::default()
        };
        Self {
            contents,
            places: large.map(|(place, _)| (place, note(place))).collect(),
            trust: Trust::default(),
        }
    }

    /// The hash of a file, if it is unchanged since it was hashed. Examines the file without opening it.
    fn find(&mut self, base: &Base, path: &CStr) -> Option<Hashed> {
        let place = self.places.get_mut(place_of(path)?)?;
        if place.noted.is_empty() {
            return None;
        }
        let (looked, is_link) = base.look_at(path).ok()?;
        let signature = looked.signature;
        if !signature.is_file() {
            return None;
        }
        let remembered = self.trust.of_status(&looked, base, path)?;
        let content = match guards::is_off("times-of-noted-headers") {
            false => *place.noted.get(&remembered)?,
            true => place.content_at_any_time(&remembered)?,
        };
        place.used.insert((remembered.dev, remembered.ino));
        Some(Hashed {
            signature,
            content,
            remembered: Some(remembered),
            is_plain: !is_link,
            compares_times: false,
        })
    }

    /// Adds a file that was hashed after `began`, if it was old then. A file that changes twice in a tick of the file clock,
    /// the second time after it was read, would have the same signature. A text that tells a compiler to compare times is
    /// never added: it is read, and found, each time.
    fn add(&mut self, path: &CStr, hashed: &Hashed, began: SystemTime) {
        let place = place_of(path).and_then(|place| self.places.get_mut(place));
        if let Some((place, named)) = place.zip(hashed.remembered)
            && named.was_settled_at(began)
            && !hashed.compares_times
        {
            place.new.push((named, hashed.content));
        }
    }

    /// Stores what is new, for later runs.
    fn keep(self) {
        for (name, mut place) in self.places {
            if place.new.len() < WORTH_A_NOTE {
                continue;
            }
            // A file has only one signature at a time.
            let new: BTreeSet<_> = place.new.iter().map(|(s, _)| (s.dev, s.ino)).collect();
            let many = place.noted.len() + place.new.len() > MOST_FILES;
            place.noted.retain(|signature, _| {
                let file = (signature.dev, signature.ino);
                !new.contains(&file) && (!many || place.used.contains(&file))
            });
            let all = place.noted.into_iter().chain(place.new);
            self.contents.remember_place(name, &encode(all));
        }
    }
}

/// The tree of headers that a file is in, or its folder. `None` for a relative path.
fn place_of(path: &CStr) -> Option<&[u8]> {
    let path = path.to_bytes();
    let folder = &path[..memchr::memrchr(b'/', path)?];
    let tree = memchr::memmem::find_iter(path, b"/include/").next();
    let is_whole = path.first() == Some(&b'/');
    is_whole.then(|| tree.map_or(folder, |at| &path[..at + b"/include".len()]))
}

fn encode(files: impl Iterator<Item = (Signature, [u8; 32])>) -> Vec<u8> {
    let mut out = Vec::new();
    for (signature, content) in files {
        let Signature {
            dev,
            ino,
            size,
            mtime_ns,
            ctime_ns,
            kind,
        } = signature;
        for number in [dev, ino, size] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for time in [mtime_ns, ctime_ns] {
            out.extend_from_slice(&time.to_le_bytes());
        }
        out.extend_from_slice(&kind.to_le_bytes());
        out.extend_from_slice(&content);
    }
    out
}

/// Decodes a note; empty if the note does not end where an entry does.
fn decode(note: &[u8]) -> HashMap<Signature, [u8; 32]> {
    let mut reader = Reader::new(note);
    let mut files = HashMap::new();
    while !reader.rest().is_empty() {
        let Some((signature, content)) = decode_file(&mut reader) else {
            return HashMap::new();
        };
        files.insert(signature, content);
    }
    files
}

fn decode_file(reader: &mut Reader<'_>) -> Option<(Signature, [u8; 32])> {
    let signature = Signature {
        dev: reader.u64()?,
        ino: reader.u64()?,
        size: reader.u64()?,
        mtime_ns: i64::from_le_bytes(reader.array()?),
        ctime_ns: i64::from_le_bytes(reader.array()?),
        kind: reader.u32()?,
    };
    Some((signature, reader.array()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_tree_are_in_one_place() {
        let place = |path: &'static CStr| place_of(path).map(String::from_utf8_lossy);
        assert_eq!(place(c"/usr/include/a.h").as_deref(), Some("/usr/include"));
        assert_eq!(
            place(c"/t/include/c++/12/include/x").as_deref(),
            Some("/t/include")
        );
        assert_eq!(
            place(c"/src/includes/a.h").as_deref(),
            Some("/src/includes")
        );
        assert_eq!(place(c"/a.h").as_deref(), Some(""));
        assert_eq!(place(c"include/a.h"), None);
        assert_eq!(place(c"a.h"), None);
    }

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let file = |ino| {
            let signature = Signature {
                dev: 1,
                ino,
                size: 3,
                mtime_ns: -4,
                ctime_ns: 5,
                kind: 6,
            };
            (signature, [7; 32])
        };
        let note = encode([file(1), file(2)].into_iter());
        assert_eq!(decode(&note), HashMap::from([file(1), file(2)]));
        assert_eq!(decode(&note[1..]), HashMap::new());
        assert_eq!(decode(b""), HashMap::new());
    }
}
