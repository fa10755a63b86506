//! Encodes an input manifest as bytes, and decodes it.
//!
//! ```text
//! manifest   = length(varint) count file* resolved* count directory* count fact*
//! file      = path signature content[32]
//! resolved  = 0(u8), or 1(u8) where it is the path, or 2(u8) path    one a file
//! directory = path signature settled(u8) count name*
//! name      = seen(u8: 0 nothing, 1 folder) path
//! fact      = kind(u8) path path
//! path      = shared(varint) length(varint) bytes     shared: bytes in common with the path before
//! signature = dev^before ino size(varints) mtime(zigzag) ctime-mtime(zigzag) kind(varint)
//! count     = varint
//! ```
//!
//! A path is stored as its difference from the path before: paths are sorted and mostly begin alike. The same is done for
//! devices. The length is that of all decoded texts with a NUL behind each, so that memory is allocated once. Versions and
//! checksums belong to the record.

use super::{
    DirectoryEntry, Fact, FactEntry, FileEntry, InputManifest, NameEntry, NameSeen, Signature, Span,
};
use crate::wire::{Reader, put_bytes, put_signed, put_varint};

/// The longest path that Linux opens.
const LONGEST_PATH: usize = 4096;
/// No run has this much text. A hostile record could claim more, because stored paths share their beginnings.
pub(super) const LONGEST_TEXT: usize = 64 << 20;

const LEAST_FILE: usize = 2 + 6 + 32 + 1;
const LEAST_DIRECTORY: usize = 2 + 6 + 1 + 1;
const LEAST_NAME: usize = 3;
const LEAST_FACT: usize = 1 + 2 + 2;

/// The limits for what may still be decoded: stored paths share their beginnings, so few bytes can decode to many.
pub(crate) struct Room {
    /// Bytes of paths and names.
    pub text: usize,
    /// Files, directories and names.
    pub entries: usize,
}

impl Room {
    /// The limits for a record of this machine.
    const OWN: Room = Room {
        text: LONGEST_TEXT,
        entries: usize::MAX,
    };

    fn take_entries(&mut self, count: usize) -> Option<()> {
        self.entries = self.entries.checked_sub(count)?;
        Some(())
    }
}

impl InputManifest {
    /// The number of bytes that were read, by the lengths of the files.
    pub fn bytes_read(&self) -> u64 {
        let sizes = self.files.iter().map(|file| file.signature.size);
        sizes.fold(0, u64::saturating_add)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let mut last: &[u8] = b"";
        let mut device = 0;
        put_varint(
            out,
            self.texts().map(|text| u64::from(text.length) + 1).sum(),
        );
        put_varint(out, self.files.len() as u64);
        for file in &self.files {
            let path = self.bytes_at(file.path);
            put_path(out, last, path);
            last = path;
            put_signature(out, &file.signature, &mut device);
            out.extend_from_slice(&file.content);
        }
        for file in &self.files {
            match file.resolved {
                None => out.push(0),
                Some(resolved) if resolved == file.path => out.push(1),
                Some(resolved) => {
                    out.push(2);
                    put_path(out, self.bytes_at(file.path), self.bytes_at(resolved));
                }
            }
        }
        put_varint(out, self.directories.len() as u64);
        for directory in &self.directories {
            let path = self.bytes_at(directory.path);
            put_path(out, last, path);
            last = path;
            put_signature(out, &directory.signature, &mut device);
            out.push(u8::from(directory.settled));
            put_varint(out, directory.names.len() as u64);
            let mut last: &[u8] = b"";
            for name in &self.names[directory.names.clone()] {
                out.push(match name.seen {
                    NameSeen::Nothing => 0,
                    NameSeen::Folder => 1,
                });
                let text = self.bytes_at(name.at);
                put_path(out, last, text);
                last = text;
            }
        }
        put_varint(out, self.facts.len() as u64);
        for entry in &self.facts {
            out.push(entry.fact as u8);
            let path = self.bytes_at(entry.path);
            put_path(out, last, path);
            last = path;
            put_path(out, path, self.bytes_at(entry.text));
        }
    }

    /// Decodes a manifest; `None` if the bytes are not one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<InputManifest> {
        let mut room = Room::OWN;
        InputManifest::decode_within(bytes, &mut room)
    }

    /// The same for bytes from another machine: what they use is subtracted from `room`.
    pub(crate) fn decode_within(bytes: &[u8], room: &mut Room) -> Option<InputManifest> {
        let mut reader = Reader::new(bytes);
        let mut manifest = InputManifest::default();
        let length = reader.length()?.min(room.text).min(LONGEST_TEXT);
        // A hostile record could claim any length, so only a limited amount is reserved in advance.
        manifest.text.reserve(length.min(4 << 20));
        let mut last = Span::default();
        let mut device = 0;
        let files = reader.count(LEAST_FILE)?;
        room.take_entries(files)?;
        manifest.files.reserve_exact(files);
        for _ in 0..files {
            let path = manifest.take_path(&mut reader, &mut last, room)?;
            let signature = take_signature(&mut reader, &mut device)?;
            let content = reader.array()?;
            manifest.files.push(FileEntry {
                path,
                signature,
                content,
                resolved: None,
            });
        }
        let mut elsewhere = 0;
        for index in 0..files {
            let path = manifest.files[index].path;
            manifest.files[index].resolved = match reader.byte()? {
                0 => None,
                1 => Some(path),
                2 => {
                    elsewhere += 1;
                    Some(manifest.take_path(&mut reader, &mut path.clone(), room)?)
                }
                _ => return None,
            };
        }
        let directories = reader.count(LEAST_DIRECTORY)?;
        room.take_entries(directories)?;
        manifest.directories.reserve_exact(directories);
        for _ in 0..directories {
            let path = manifest.take_path(&mut reader, &mut last, room)?;
            let signature = take_signature(&mut reader, &mut device)?;
            let settled = take_flag(&mut reader)?;
            let count = reader.count(LEAST_NAME)?;
            room.take_entries(count)?;
            let first = manifest.names.len();
            manifest.names.reserve(count);
            let mut last = Span::default();
            for _ in 0..count {
                let seen = match reader.byte()? {
                    0 => NameSeen::Nothing,
                    1 => NameSeen::Folder,
                    _ => return None,
                };
                let at = manifest.take_path(&mut reader, &mut last, room)?;
                manifest.names.push(NameEntry { at, seen });
            }
            manifest.directories.push(DirectoryEntry {
                path,
                signature,
                settled,
                names: first..manifest.names.len(),
            });
        }
        let facts = reader.count(LEAST_FACT)?;
        room.take_entries(facts)?;
        manifest.facts.reserve_exact(facts);
        for _ in 0..facts {
            let fact = Fact::from_byte(reader.byte()?)?;
            let path = manifest.take_path(&mut reader, &mut last, room)?;
            let text = manifest.take_path(&mut reader, &mut path.clone(), room)?;
            manifest.facts.push(FactEntry { path, fact, text });
        }
        // There must be one NUL behind each text and none inside, so that the kernel gets all of it.
        let ends = memchr::memchr_iter(0, &manifest.text).count();
        let texts = files + elsewhere + directories + manifest.names.len() + 2 * facts;
        (reader.rest().is_empty() && ends == texts).then_some(manifest)
    }

    /// The paths and names, each as often as it is stored.
    fn texts(&self) -> impl Iterator<Item = Span> {
        let resolved = |file: &FileEntry| file.resolved.filter(|span| *span != file.path);
        let files = self.files.iter().map(|file| file.path);
        let resolved = self.files.iter().filter_map(resolved);
        let directories = self.directories.iter().map(|directory| directory.path);
        let names = self.names.iter().map(|name| name.at);
        let facts = self.facts.iter().flat_map(|fact| [fact.path, fact.text]);
        files
            .chain(resolved)
            .chain(directories)
            .chain(names)
            .chain(facts)
    }

    /// Reads a path that may share its beginning with the one at `last`, and stores its own place there.
    fn take_path(
        &mut self,
        reader: &mut Reader<'_>,
        last: &mut Span,
        room: &mut Room,
    ) -> Option<Span> {
        let shared = reader.length()?;
        let suffix = reader.bytes()?;
        let length = shared.checked_add(suffix.len())?;
        let at = self.text.len();
        let before = last.at as usize;
        if shared > last.length as usize || length > LONGEST_PATH || at + length >= LONGEST_TEXT {
            return None;
        }
        room.text = room.text.checked_sub(length + 1)?;
        self.text.extend_from_within(before..before + shared);
        self.text.extend_from_slice(suffix);
        self.text.push(0);
        *last = Span {
            at: u32::try_from(at).ok()?,
            length: u32::try_from(length).ok()?,
        };
        Some(*last)
    }
}

fn put_path(out: &mut Vec<u8>, last: &[u8], path: &[u8]) {
    let shared = last.iter().zip(path).take_while(|(a, b)| a == b).count();
    put_varint(out, shared as u64);
    put_bytes(out, &path[shared..]);
}

fn put_signature(out: &mut Vec<u8>, signature: &Signature, device: &mut u64) {
    put_varint(out, signature.dev ^ *device);
    *device = signature.dev;
    put_varint(out, signature.ino);
    put_varint(out, signature.size);
    put_signed(out, signature.mtime_ns);
    put_signed(out, signature.ctime_ns.wrapping_sub(signature.mtime_ns));
    put_varint(out, u64::from(signature.kind));
}

fn take_signature(reader: &mut Reader<'_>, device: &mut u64) -> Option<Signature> {
    let dev = reader.varint()? ^ *device;
    *device = dev;
    let (ino, size) = (reader.varint()?, reader.varint()?);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An input manifest of files, each with its resolved path.
    fn of_files(files: &[(&[u8], Option<&[u8]>)]) -> InputManifest {
        let mut manifest = InputManifest::default();
        for (path, resolved) in files {
            let path = manifest.push_text(path);
            manifest.files.push(FileEntry {
                path,
                signature: super::super::check::NOBODYS,
                content: [7; 32],
                resolved: resolved.map(|_| path),
            });
        }
        for (file, (path, resolved)) in files.iter().enumerate() {
            if let Some(resolved) = resolved.filter(|resolved| resolved != path) {
                manifest.files[file].resolved = Some(manifest.push_text(resolved));
            }
        }
        manifest
    }

    fn encoded(manifest: &InputManifest) -> Vec<u8> {
        let mut bytes = Vec::new();
        manifest.encode(&mut bytes);
        bytes
    }

    #[test]
    fn files_come_back_with_what_they_lead_to() {
        let manifest = of_files(&[
            (b"/a/link", Some(b"/a/file")),
            (b"/a/plain", Some(b"/a/plain")),
            (b"/a/untold", None),
            (b"name", Some(b"/work/name")),
        ]);
        let bytes = encoded(&manifest);
        assert_eq!(InputManifest::decode(&bytes), Some(manifest));
        for end in 0..bytes.len() {
            assert_eq!(InputManifest::decode(&bytes[..end]), None, "{end}");
        }
    }

    #[test]
    fn a_text_with_a_nul_inside_is_refused() {
        for files in [
            [(b"/a\0b".as_slice(), None)],
            [(b"/a".as_slice(), Some(b"/b\0c".as_slice()))],
        ] {
            assert_eq!(InputManifest::decode(&encoded(&of_files(&files))), None);
        }
    }
}
