//! A witness as bytes, and back.
//!
//! ```text
//! witness   = count file* count directory* count fact*
//! file      = path signature content[32]
//! directory = path signature settled(u8) count name*
//! name      = seen(u8: 0 nothing, 1 folder) path
//! fact      = kind(u8) path path
//! path      = shared(varint) length(varint) bytes     shared: bytes in common with the path before
//! signature = dev ino size(varints) mtime(zigzag) ctime-mtime(zigzag) kind(varint)
//! count     = varint
//! ```
//!
//! Paths are stored as what differs from the path before: they are sorted and mostly begin alike. Versions and checksums are the record's.

use super::{DirectoryEntry, Fact, FactEntry, FileEntry, NameEntry, NameSeen, Signature, Witness};
use crate::wire::{Reader, put_bytes, put_signed, put_varint};

/// Linux opens no longer path.
const LONGEST_PATH: usize = 4096;
/// No run sees this much; a hostile record could claim it, since stored paths share their beginnings.
pub(super) const LONGEST_TEXT: usize = 64 << 20;

const LEAST_FILE: usize = 2 + 6 + 32;
const LEAST_DIRECTORY: usize = 2 + 6 + 1 + 1;
const LEAST_NAME: usize = 3;
const LEAST_FACT: usize = 1 + 2 + 2;

/// How much may still be decoded: stored paths share their beginnings, so that few bytes can say much.
pub(crate) struct Room {
    /// Bytes of paths and names.
    pub text: usize,
    /// Files, directories and names.
    pub entries: usize,
}

impl Room {
    /// For a record of our own.
    const OWN: Room = Room {
        text: LONGEST_TEXT,
        entries: usize::MAX,
    };

    fn take_entries(&mut self, count: usize) -> Option<()> {
        self.entries = self.entries.checked_sub(count)?;
        Some(())
    }
}

impl Witness {
    /// So many bytes were read, as far as their files' lengths tell.
    pub fn bytes_read(&self) -> u64 {
        let sizes = self.files.iter().map(|file| file.signature.size);
        sizes.fold(0, u64::saturating_add)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let mut last: &[u8] = b"";
        put_varint(out, self.files.len() as u64);
        for file in &self.files {
            let path = self.text_at(file.path).to_bytes();
            put_path(out, last, path);
            last = path;
            put_signature(out, &file.signature);
            out.extend_from_slice(&file.content);
        }
        put_varint(out, self.directories.len() as u64);
        for directory in &self.directories {
            let path = self.text_at(directory.path).to_bytes();
            put_path(out, last, path);
            last = path;
            put_signature(out, &directory.signature);
            out.push(u8::from(directory.settled));
            put_varint(out, directory.names.len() as u64);
            let mut last: &[u8] = b"";
            for name in &self.names[directory.names.clone()] {
                out.push(match name.seen {
                    NameSeen::Nothing => 0,
                    NameSeen::Folder => 1,
                });
                let text = self.text_at(name.at).to_bytes();
                put_path(out, last, text);
                last = text;
            }
        }
        put_varint(out, self.facts.len() as u64);
        for entry in &self.facts {
            out.push(entry.fact as u8);
            let path = self.text_at(entry.path).to_bytes();
            put_path(out, last, path);
            last = path;
            // A path without links is mostly the path.
            put_path(out, path, self.text_at(entry.text).to_bytes());
        }
    }

    /// `None` when the bytes are no witness.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Witness> {
        let mut room = Room::OWN;
        Witness::decode_within(bytes, &mut room)
    }

    /// The same for bytes that somebody else wrote: what it takes is taken from `room`.
    pub(crate) fn decode_within(bytes: &[u8], room: &mut Room) -> Option<Witness> {
        let mut reader = Reader::new(bytes);
        let mut witness = Witness::default();
        // Most paths share two thirds with their neighbour.
        witness.text.reserve(bytes.len().min(1 << 20));
        let mut last = 0..0;
        let files = reader.count(LEAST_FILE)?;
        room.take_entries(files)?;
        witness.files.reserve_exact(files);
        for _ in 0..files {
            let path = witness.take_path(&mut reader, &mut last, room)?;
            let signature = take_signature(&mut reader)?;
            let content = reader.array()?;
            witness.files.push(FileEntry {
                path,
                signature,
                content,
            });
        }
        let directories = reader.count(LEAST_DIRECTORY)?;
        room.take_entries(directories)?;
        witness.directories.reserve_exact(directories);
        for _ in 0..directories {
            let path = witness.take_path(&mut reader, &mut last, room)?;
            let signature = take_signature(&mut reader)?;
            let settled = take_flag(&mut reader)?;
            let count = reader.count(LEAST_NAME)?;
            room.take_entries(count)?;
            let first = witness.names.len();
            let mut last = 0..0;
            for _ in 0..count {
                let seen = match reader.byte()? {
                    0 => NameSeen::Nothing,
                    1 => NameSeen::Folder,
                    _ => return None,
                };
                let at = witness.take_path(&mut reader, &mut last, room)?;
                witness.names.push(NameEntry { at, seen });
            }
            witness.directories.push(DirectoryEntry {
                path,
                signature,
                settled,
                names: first..witness.names.len(),
            });
        }
        let facts = reader.count(LEAST_FACT)?;
        room.take_entries(facts)?;
        witness.facts.reserve_exact(facts);
        for _ in 0..facts {
            let fact = Fact::from_byte(reader.byte()?)?;
            let path = witness.take_path(&mut reader, &mut last, room)?;
            let text = witness.take_path(&mut reader, &mut last.clone(), room)?;
            witness.facts.push(FactEntry { path, fact, text });
        }
        reader.rest().is_empty().then_some(witness)
    }

    /// Reads a path that may share its beginning with the one at `last`; leaves its own place there.
    fn take_path(
        &mut self,
        reader: &mut Reader<'_>,
        last: &mut std::ops::Range<usize>,
        room: &mut Room,
    ) -> Option<usize> {
        let shared = reader.length()?;
        let suffix = reader.bytes()?;
        let length = shared.checked_add(suffix.len())?;
        let at = self.text.len();
        if shared > last.len() || length > LONGEST_PATH || at + length >= LONGEST_TEXT {
            return None;
        }
        if suffix.contains(&0) {
            return None;
        }
        room.text = room.text.checked_sub(length + 1)?;
        self.text
            .extend_from_within(last.start..last.start + shared);
        self.text.extend_from_slice(suffix);
        self.text.push(0);
        *last = at..at + length;
        Some(at)
    }
}

fn put_path(out: &mut Vec<u8>, last: &[u8], path: &[u8]) {
    let shared = last.iter().zip(path).take_while(|(a, b)| a == b).count();
    put_varint(out, shared as u64);
    put_bytes(out, &path[shared..]);
}

fn put_signature(out: &mut Vec<u8>, signature: &Signature) {
    put_varint(out, signature.dev);
    put_varint(out, signature.ino);
    put_varint(out, signature.size);
    put_signed(out, signature.mtime_ns);
    put_signed(out, signature.ctime_ns.wrapping_sub(signature.mtime_ns));
    put_varint(out, u64::from(signature.kind));
}

fn take_signature(reader: &mut Reader<'_>) -> Option<Signature> {
    let (dev, ino, size) = (reader.varint()?, reader.varint()?, reader.varint()?);
    let mtime_ns = reader.signed()?;
    Some(Signature {
        dev,
        ino,
        size,
        mtime_ns,
        ctime_ns: mtime_ns.wrapping_add(reader.signed()?),
        kind: u32::try_from(reader.varint()?).ok()?,
    })
}

fn take_flag(reader: &mut Reader<'_>) -> Option<bool> {
    match reader.byte()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}
