//! Records what a run saw of the file system: the files it read, the names it did not find, and other answers.
//!
//! A [`InputManifest`] is made after a run by [`InputManifestBuilder`] and asked later, by [`InputManifest::check`],
//! whether the run would still see the same. It is kept in one piece: all paths in one text, so that reading a record
//! allocates a few vectors, not thousands of strings.
//!
//! Not seen: a symbolic link or a folder on the way to a file that was exchanged for another *while* the run went on,
//! with an old file behind it.

mod absent_names;
mod build;
mod check;
mod code;
mod comparison;
mod difference;
mod equals;
mod facts;
mod hash;
mod known_contents;
mod links;
mod mount;
mod rebase;
mod signature;
mod suspects;
mod trust;

use std::ffi::{CStr, OsStr, OsString};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

pub use build::{ExpectedFile, InputManifestBuilder, Unsettled};
pub use check::ManifestVerdict;
pub(crate) use code::Room;
pub use difference::{ANY_VARIABLE, Difference, WORKING_DIRECTORY};
pub use facts::Fact;
pub(crate) use hash::content_of;
pub use hash::{ContentHashes, Inspect};
pub use signature::Signature;
pub(crate) use trust::trusted_signature;

/// The input manifest: what a run saw of the file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputManifest {
    /// Every path and name, each ended by a NUL so that it goes to the kernel as it is. Below 4 GiB.
    text: Vec<u8>,
    files: Vec<FileEntry>,
    directories: Vec<DirectoryEntry>,
    names: Vec<NameEntry>,
    facts: Vec<FactEntry>,
}

/// The place of a path or name in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Span {
    at: u32,
    length: u32,
}

/// Something else that a run was told about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FactEntry {
    path: Span,
    fact: Fact,
    /// A link's target, the path without links. Empty for the others.
    text: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FileEntry {
    path: Span,
    signature: Signature,
    content: [u8; 32],
    /// The path without links, where the run was told: [`Fact::Resolved`]. Mostly the path.
    resolved: Option<Span>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct DirectoryEntry {
    path: Span,
    signature: Signature,
    /// Whether an equal signature proves that no name was added. Not so when the directory had just changed, or when a name goes through a dangling link.
    settled: bool,
    names: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NameEntry {
    at: Span,
    seen: NameSeen,
}

/// Why a name was not the file someone looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameSeen {
    Nothing,
    /// A folder, which a preprocessor passes over as if it were not there.
    Folder,
}

/// A file that was read, as [`InputManifest::files`] shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSeen {
    /// The path as the run named it.
    pub path: PathBuf,
    /// Its signature when it was hashed.
    pub signature: Signature,
    /// BLAKE3 of its content.
    pub content: [u8; 32],
}

/// A directory in which names were looked for in vain, as [`InputManifest::directories`] shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectorySeen {
    /// The path as the run named it.
    pub path: PathBuf,
    /// Its signature when the names were seen to be absent.
    pub signature: Signature,
    /// The names, or remainders of paths, that were not files there.
    pub absent: Vec<OsString>,
}

impl InputManifest {
    /// The files that were read, in order of their paths.
    pub fn files(&self) -> impl Iterator<Item = FileSeen> + '_ {
        self.files.iter().map(|file| FileSeen {
            path: path_of(self.text_at(file.path)),
            signature: file.signature,
            content: file.content,
        })
    }

    /// The directories in which something was looked for in vain.
    pub fn directories(&self) -> impl Iterator<Item = DirectorySeen> + '_ {
        self.directories.iter().map(|directory| DirectorySeen {
            path: path_of(self.text_at(directory.path)),
            signature: directory.signature,
            absent: self.names[directory.names.clone()]
                .iter()
                .map(|name| OsString::from_vec(self.bytes_at(name.at).to_vec()))
                .collect(),
        })
    }

    /// The other answers that the run got: path, fact, and the fact's text.
    pub fn facts(&self) -> impl Iterator<Item = (PathBuf, Fact, PathBuf)> + '_ {
        let path = |span| path_of(self.text_at(span));
        let resolved = self.files.iter().filter_map(move |file| {
            let resolved = file.resolved?;
            Some((path(file.path), Fact::Resolved, path(resolved)))
        });
        let others = self.facts.iter();
        let others = others.map(move |entry| (path(entry.path), entry.fact, path(entry.text)));
        resolved.chain(others)
    }

    /// The number of files that were read.
    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    /// How many directories have absent names.
    pub fn directory_count(&self) -> usize {
        self.directories.len()
    }

    /// A checksum of what was seen without when it was seen: paths, contents and absent names, no signatures. Equal for two runs that saw the same.
    pub(crate) fn identity(&self) -> u64 {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        hasher.update(&(self.files.len() as u64).to_le_bytes());
        for file in &self.files {
            hasher.update(self.ended(file.path));
            hasher.update(&file.content);
            if let Some(resolved) = file.resolved {
                hasher.update(self.ended(resolved));
            }
        }
        for directory in &self.directories {
            hasher.update(self.ended(directory.path));
            hasher.update(&(directory.names.len() as u64).to_le_bytes());
            for name in &self.names[directory.names.clone()] {
                hasher.update(&[name.seen as u8]);
                hasher.update(self.ended(name.at));
            }
        }
        for entry in &self.facts {
            hasher.update(&[entry.fact as u8]);
            hasher.update(self.ended(entry.path));
            hasher.update(self.ended(entry.text));
        }
        hasher.digest()
    }

    fn text_at(&self, span: Span) -> &CStr {
        // Every text ends with a NUL and has none inside: `push_text` and `decode` see to it.
        CStr::from_bytes_with_nul(self.ended(span)).unwrap_or_default()
    }

    fn bytes_at(&self, span: Span) -> &[u8] {
        let at = span.at as usize;
        self.text
            .get(at..at + span.length as usize)
            .unwrap_or_default()
    }

    /// The bytes of `span` with the NUL.
    fn ended(&self, span: Span) -> &[u8] {
        let at = span.at as usize;
        self.text
            .get(at..=at + span.length as usize)
            .unwrap_or_default()
    }

    /// Adds a path or name without its NUL; returns where it stands. The caller has made sure that it has none inside, and
    /// sees to it that the text stays below [`code::LONGEST_TEXT`].
    fn push_text(&mut self, text: &[u8]) -> Span {
        let span = Span {
            at: u32::try_from(self.text.len()).unwrap_or(u32::MAX),
            length: u32::try_from(text.len()).unwrap_or(u32::MAX),
        };
        self.text.extend_from_slice(text);
        self.text.push(0);
        span
    }
}

fn path_of(text: &CStr) -> PathBuf {
    as_path(text).to_path_buf()
}

fn as_path(text: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(text.to_bytes()))
}
