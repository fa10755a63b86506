//! Says in what a kernel differs from those of its name that were compiled lately: why it missed.
//!
//! With each image that is made, the parts of its key are noted in the folder, by the program's name. Long texts are noted as
//! hashes of their lines.

use warpcc_cache::{Explaining, Hashing, Key, KeyParts, KeySink as _};

use crate::error::Error;
use crate::keys::Builds;
use crate::request::CompileRequest;
use crate::seen_files::SeenFiles;
use crate::{debug_sources, keys};

use super::KernelCache;

/// The kind of the notes.
const NOTES: &str = "kernel-parts";
/// How many images of one name are noted.
const MOST: usize = 8;
/// Longer values, and those of several lines, are noted as hashes.
const LONG: usize = 100;
/// A text with more lines is noted as a whole.
const MOST_LINES: usize = 20_000;

/// Whether a kernel would be found, and in what it differs from others if not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It is in a folder or a pack.
    Stored,
    /// It is never stored, for this reason.
    NotStored(String),
    /// No kernel of this name was compiled with this folder, or that was long ago.
    NeverSeen,
    /// It differs in these parts from the most similar one.
    Differs(Vec<PartChange>),
    /// It was compiled, and has been removed since.
    Removed,
}

impl Why {
    /// The answer in a word, as in JSON and in Python: `stored`, `not_stored`, `never_seen`, `removed` or `differs`.
    pub fn status(&self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::NotStored(_) => "not_stored",
            Self::NeverSeen => "never_seen",
            Self::Removed => "removed",
            Self::Differs(_) => "differs",
        }
    }
}

/// A part of the key that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartChange {
    /// The part: `option`, `target`, `source`, `file a.h`.
    pub part: String,
    /// The value of the stored kernel; `None` if it had none.
    pub old: Option<String>,
    /// The value now; `None` if there is none.
    pub new: Option<String>,
    /// The first line that differs, if both are texts.
    pub line: Option<usize>,
}

/// A value, or the hash of a long one and hashes of its lines.
type Noted = (Vec<u8>, Vec<u32>);
/// The parts of a key, shortened.
type Parts = Vec<(String, Noted)>;

impl KernelCache {
    /// Whether [`KernelCache::get`] would find `request` in a folder or a pack, and if not, in what it differs from the most
    /// similar kernel of its name that was compiled lately. Shared caches are not asked.
    ///
    /// # Errors
    /// As [`KernelCache::get`].
    pub fn why(&self, request: &CompileRequest) -> Result<Why, Error> {
        request.check()?;
        let directory = super::working_directory(request)?;
        let mut request = request.clone();
        for folder in &mut request.include_folders {
            *folder = directory.join(&*folder);
        }
        debug_sources::name_texts(&mut request, Some(&self.tiers.source_folder()));
        let seen = match SeenFiles::find(&request, &directory) {
            Ok(seen) => seen,
            Err(why) => return Ok(Why::NotStored(why)),
        };
        let builds = self.builds_of(&request)?;
        let key = keys::of_program(&self.compiler, &builds, &request, &seen);
        if self.tiers.has(&key) {
            return Ok(Why::Stored);
        }
        let now = self.parts(&builds, &request, &seen);
        let stored = self
            .noted(&request)
            .into_iter()
            .map(|old| changes(&old, &now));
        Ok(match stored.min_by_key(Vec::len) {
            None => Why::NeverSeen,
            Some(none) if none.is_empty() => Why::Removed,
            Some(some) => Why::Differs(some),
        })
    }

    /// Notes the parts of an image that was made.
    pub(super) fn note_parts(
        &self,
        builds: &Builds<'_>,
        request: &CompileRequest,
        seen: &SeenFiles,
    ) {
        let Some(store) = self.tiers.first_written() else {
            return;
        };
        let mut all = self.noted(request);
        let parts = self.parts(builds, request, seen);
        all.retain(|other| *other != parts);
        all.insert(0, parts);
        all.truncate(MOST);
        // Without the note nothing can be compared later.
        if let Ok(bytes) = postcard::to_allocvec(&all) {
            drop(store.put_note(NOTES, &note_key(request), &bytes));
        }
    }

    fn noted(&self, request: &CompileRequest) -> Vec<Parts> {
        let store = self.tiers.first_written();
        let bytes = store.and_then(|store| store.note(NOTES, &note_key(request)));
        let read = bytes.map(|bytes| postcard::from_bytes(&bytes));
        read.and_then(Result::ok).unwrap_or_default()
    }

    fn parts(&self, builds: &Builds<'_>, request: &CompileRequest, seen: &SeenFiles) -> Parts {
        let mut explaining = Explaining::new();
        keys::program_parts(&mut explaining, &self.compiler, builds, request, seen);
        let mut parts = Parts::new();
        let mut name_of_next = None;
        for (name, value) in explaining.finish().0 {
            match name.strip_suffix(" name") {
                Some(kind) => {
                    let value = String::from_utf8_lossy(&value);
                    name_of_next = Some(format!("{kind} {}", without_folder(&value)));
                }
                None => parts.push((name_of_next.take().unwrap_or(name), shortened(&value))),
            }
        }
        parts
    }
}

/// The name of a file without the number of its include folder.
fn without_folder(name: &str) -> &str {
    match name.split_once(':') {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => name,
    }
}

fn note_key(request: &CompileRequest) -> Key {
    let mut hashing = Hashing::new("warpcc kernel parts 1");
    hashing.part("name", request.plain_name().as_bytes());
    hashing.finish()
}

fn shortened(value: &[u8]) -> Noted {
    let is_text = std::str::from_utf8(value).is_ok();
    if value.len() <= LONG && !(is_text && value.contains(&b'\n')) {
        return (value.to_vec(), Vec::new());
    }
    let short = |bytes: &[u8]| {
        let [a, b, c, d, ..] = *blake3::hash(bytes).as_bytes();
        u32::from_le_bytes([a, b, c, d])
    };
    let mut lines: Vec<u32> = value.split(|byte| *byte == b'\n').map(short).collect();
    if lines.len() > MOST_LINES {
        lines = vec![short(value)];
    }
    (blake3::hash(value).as_bytes().to_vec(), lines)
}

fn changes(old: &Parts, new: &Parts) -> Vec<PartChange> {
    let encoded = |parts: &Parts| {
        let encode = |(name, value): &(String, Noted)| {
            // Numbers and bytes can always be written.
            (
                name.clone(),
                postcard::to_allocvec(value).unwrap_or_default(),
            )
        };
        KeyParts(parts.iter().map(encode).collect())
    };
    let decoded = |bytes: Option<Vec<u8>>| -> Option<Noted> {
        bytes.map(|bytes| postcard::from_bytes(&bytes).unwrap_or_default())
    };
    let changes = KeyParts::changes(&encoded(old), &encoded(new));
    let change = changes.into_iter().map(|change| {
        let (old, new) = (decoded(change.old), decoded(change.new));
        let line = old.as_ref().zip(new.as_ref()).and_then(|(old, new)| {
            let pairs = old.1.iter().zip(&new.1);
            let same = pairs.take_while(|(one, other)| one == other).count();
            (old.1.len() > 1 || new.1.len() > 1).then_some(same + 1)
        });
        PartChange {
            part: change.name,
            old: old.map(shown),
            new: new.map(shown),
            line,
        }
    });
    change.collect()
}

fn shown((bytes, lines): Noted) -> String {
    let text = String::from_utf8(bytes).ok();
    let text = text.filter(|text| lines.is_empty() && !text.contains(char::is_control));
    // Another value, and nothing that a reader could use.
    text.unwrap_or_else(|| "…".to_owned())
}
