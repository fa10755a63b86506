//! Records what a run saw of the file system: the files that it read, the names that it did not find, and other answers.
//!
//! [`InputManifestBuilder`] makes an [`InputManifest`] after a run. [`InputManifest::check`] says later whether the run
//! would still see the same. All paths of a manifest are in one text, so that reading a record allocates a few vectors, not
//! thousands of strings.
//!
//! One change is not noticed: *while* the run goes on, a symbolic link or folder in a file's path is replaced by
//! another one, and the path then leads to an old file.

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
mod large_file;
mod links;
mod mount;
mod rebase;
mod signature;
mod suspects;
mod time_comparison;
mod trust;
mod unsettled;

use std::ffi::{CStr, OsStr, OsString};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

pub use build::{ExpectedFile, InputManifestBuilder};
pub use check::ManifestVerdict;
pub(crate) use code::Room;
pub use difference::{ANY_VARIABLE, Difference, WORKING_DIRECTORY};
pub use facts::Fact;
pub use hash::{ContentHashes, Inspect, library_content};
pub(crate) use hash::{Reading, content_of};
pub use signature::Signature;
pub(crate) use trust::trusted_signature;
pub use unsettled::Unsettled;

/// The input manifest: what a run saw of the file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputManifest {
    /// Every path and name, each with a NUL at its end, as the kernel takes it. Shorter than 4 GiB.
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

/// Another answer that a run got about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FactEntry {
    path: Span,
    fact: Fact,
    /// The target of a link, or the path with its links resolved; empty for other facts.
    text: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FileEntry {
    path: Span,
    signature: Signature,
    content: [u8; 32],
    /// The path with its links resolved, if the run got it: [`Fact::Resolved`]. It is mostly the path itself.
    resolved: Option<Span>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct DirectoryEntry {
    path: Span,
    signature: Signature,
    /// Whether an equal signature proves that no name was added. It does not if the directory had just changed, or if a name
    /// goes through a dangling link.
    settled: bool,
    names: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NameEntry {
    at: Span,
    seen: NameSeen,
}

/// Why a name was not the file that a program looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameSeen {
    Nothing,
    /// It is a folder, which a preprocessor ignores.
    Folder,
}

/// A file that was read, as [`InputManifest::files`] returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSeen {
    /// The path as the run named it.
    pub path: PathBuf,
    /// Its signature when it was hashed.
    pub signature: Signature,
    /// BLAKE3 of its content.
    pub content: [u8; 32],
}

/// A directory in which names were not found, as [`InputManifest::directories`] returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectorySeen {
    /// The path as the run named it.
    pub path: PathBuf,
    /// Its signature when the names were absent.
    pub signature: Signature,
    /// The names, or ends of paths, that were not files in it.
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

    /// The directories in which names were not found.
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

    /// The number of directories with absent names.
    pub fn directory_count(&self) -> usize {
        self.directories.len()
    }

    /// A checksum of what was seen, without the time: paths, contents and absent names, but no signatures. It is equal for
    /// two runs that saw the same.
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
        // Every text ends with a NUL and has none inside: `push_text` and `decode` make sure of that.
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

    /// Adds a path or name without its NUL, and returns its place. The caller makes sure that it has no NUL inside, and that
    /// the text stays below [`code::LONGEST_TEXT`].
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
