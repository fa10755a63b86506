//! The results stored under one key: what each run saw, and its outcome.
//!
//! ```text
//! record  = magic[8] key[32] checksum(u64 of magic and key) variant{0,6}
//! variant = length(u32) identity(u64) checksum(u64 of identity and body) body[length]
//! body    = length(varint) manifest outcome(postcard)
//! ```
//!
//! Integers are little-endian, checksums XXH3-64. The variant used last comes first. Each has its own checksum, so that a
//! hit on the first reads no other. `identity` is equal for two runs that saw the same. The magic ends with the version.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::digest::Digest;
use crate::foreign;
use crate::input_manifest::{InputManifest, Room};
use crate::key::Key;
use crate::versions::{RECORDS, is_read};
use crate::wire::{Reader, put_bytes};

/// Two digits of the version follow.
const MAGIC: &[u8; 6] = b"WCCREC";
/// The most results under one key: branches between which people switch.
pub const MOST_VARIANTS: usize = 6;
/// The longest body of a variant: diagnostics and `extra` are small, and larger data is stored as a blob.
const LONGEST_BODY: usize = 256 << 20;

/// One file that a task produced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProducedFile {
    /// Which of the task's outputs it is, in the task's own terms.
    pub role: String,
    /// The digest of its content, which is in the store.
    pub digest: Digest,
    /// Whether the file must be executable.
    pub executable: bool,
}

/// The result of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The files it produced.
    pub outputs: Vec<ProducedFile>,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// Any other data of the caller. Two runs with different data are two variants.
    pub extra: Vec<u8>,
    /// The cost of the run, in microseconds: processor time of a call or step, elapsed time of a kernel.
    pub micros: u64,
}

/// The inputs of a run, and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The files and other facts that it saw.
    pub manifest: InputManifest,
    /// Its result.
    pub outcome: Outcome,
}

/// Why bytes are not a valid record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The beginning is not that of a record.
    #[error("not a record")]
    Magic,
    /// It is a record of a version that is not read.
    #[error("a record of version {0}, which this version does not read")]
    Version(u32),
    /// It was written for another key.
    #[error("a record of another key")]
    OtherKey,
    /// The record ends early.
    #[error("truncated")]
    Truncated,
    /// A checksum does not match.
    #[error("checksum mismatch")]
    Checksum,
    /// The checksum matches but the content is not valid.
    #[error("malformed content")]
    Malformed,
    /// The data is larger than a record allows.
    #[error("too large")]
    TooLarge,
}

/// Reads a whole record of any key. It is for tests and fuzzing: the store reads variant by variant.
pub fn decode_record(bytes: &[u8]) -> Result<Vec<Variant>, RecordError> {
    variants(bytes, None)?
        .map(|stored| stored.and_then(|stored| stored.decode()))
        .collect()
}

/// Reads a whole record of `key` from another machine.
///
/// # Errors
/// The record has another key or version, or any part of it is damaged.
pub fn decode_record_of(bytes: &[u8], key: &Key) -> Result<Vec<Variant>, RecordError> {
    variants(bytes, Some(key))?
        .map(|stored| stored.and_then(|stored| stored.decode()))
        .collect()
}

/// The same for a record from another machine: at most [`foreign::MOST_ENTRIES`] and [`foreign::LONGEST_PATHS`] are decoded
/// for all its variants together.
///
/// # Errors
/// Those of [`decode_record_of`]; [`RecordError::Malformed`] also if it is too large.
pub fn decode_foreign_record(bytes: &[u8], key: &Key) -> Result<Vec<Variant>, RecordError> {
    let mut room = Room {
        text: foreign::LONGEST_PATHS,
        entries: foreign::MOST_ENTRIES,
    };
    let decode = |stored: Stored<'_>| {
        let outcome = stored.outcome_within(&mut room)?;
        let manifest = stored.manifest_within(&mut room)?;
        Ok(Variant { manifest, outcome })
    };
    let mut decode = decode;
    variants(bytes, Some(key))?
        .map(|stored| stored.and_then(&mut decode))
        .collect()
}

/// Writes a record of `key`, the first [`MOST_VARIANTS`] of `variants` in their order.
///
/// # Errors
/// A variant is too large.
pub fn encode_record(key: &Key, variants: &[Variant]) -> Result<Vec<u8>, RecordError> {
    let mut record = start_record(key);
    for variant in variants.iter().take(MOST_VARIANTS) {
        put_variant(&mut record, &variant.manifest, &variant.outcome)?;
    }
    Ok(record)
}

impl Variant {
    /// A number that is equal for two runs that saw the same, at any time and on any machine.
    pub fn identity(&self) -> u64 {
        identity_of(&self.manifest, &self.outcome)
    }
}

/// A variant as stored, its checksum verified.
#[derive(Clone, Copy)]
pub(crate) struct Stored<'a> {
    identity: u64,
    body: &'a [u8],
    whole: &'a [u8],
}

impl<'a> Stored<'a> {
    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }

    /// The variant's bytes in the record.
    pub(crate) fn whole(&self) -> &'a [u8] {
        self.whole
    }

    fn manifest_within(&self, room: &mut Room) -> Result<InputManifest, RecordError> {
        let mut reader = Reader::new(self.body);
        let manifest = reader.bytes();
        let manifest = manifest.and_then(|bytes| InputManifest::decode_within(bytes, room));
        manifest.ok_or(RecordError::Malformed)
    }

    /// The outcome. Each of its outputs counts as an entry: one takes at least two bytes, and a hundred in memory.
    fn outcome_within(&self, room: &mut Room) -> Result<Outcome, RecordError> {
        let mut reader = Reader::new(self.body);
        reader.bytes().ok_or(RecordError::Malformed)?;
        let (count, _) =
            postcard::take_from_bytes::<u64>(reader.rest()).map_err(|_| RecordError::Malformed)?;
        let left = usize::try_from(count).ok();
        let left = left.and_then(|count| room.entries.checked_sub(count));
        room.entries = left.ok_or(RecordError::Malformed)?;
        self.outcome()
    }

    pub(crate) fn manifest(&self) -> Result<InputManifest, RecordError> {
        let mut reader = Reader::new(self.body);
        let manifest = reader.bytes().and_then(InputManifest::decode);
        manifest.ok_or(RecordError::Malformed)
    }

    pub(crate) fn outcome(&self) -> Result<Outcome, RecordError> {
        let mut reader = Reader::new(self.body);
        reader.bytes().ok_or(RecordError::Malformed)?;
        match postcard::take_from_bytes(reader.rest()) {
            Ok((outcome, [])) => Ok(outcome),
            Ok(_) | Err(_) => Err(RecordError::Malformed),
        }
    }

    pub(crate) fn decode(&self) -> Result<Variant, RecordError> {
        Ok(Variant {
            manifest: self.manifest()?,
            outcome: self.outcome()?,
        })
    }
}

/// The variants of a record, the most recently used first. A truncated variant is the last one. A variant whose checksum does
/// not match is an error, and the next one follows.
pub(crate) fn variants<'a>(
    bytes: &'a [u8],
    key: Option<&Key>,
) -> Result<impl Iterator<Item = Result<Stored<'a>, RecordError>> + use<'a>, RecordError> {
    let mut reader = Reader::new(bytes);
    let magic: [u8; 8] = reader.array().ok_or(RecordError::Truncated)?;
    let version = version_of(&magic).ok_or(RecordError::Magic)?;
    if !is_read(version) {
        return Err(RecordError::Version(version));
    }
    let named: [u8; 32] = reader.array().ok_or(RecordError::Truncated)?;
    let checksum = reader.u64().ok_or(RecordError::Truncated)?;
    if checksum != xxh3_64(&bytes[..magic.len() + named.len()]) {
        return Err(RecordError::Checksum);
    }
    if key.is_some_and(|key| key.0 != named) {
        return Err(RecordError::OtherKey);
    }
    let mut count = 0;
    Ok(std::iter::from_fn(move || {
        if reader.rest().is_empty() || count == MOST_VARIANTS {
            return None;
        }
        count += 1;
        let stored = take_stored(&mut reader);
        if stored.is_none() {
            reader = Reader::new(b"");
        }
        Some(stored.unwrap_or(Err(RecordError::Truncated)))
    }))
}

fn take_stored<'a>(reader: &mut Reader<'a>) -> Option<Result<Stored<'a>, RecordError>> {
    let from_here = reader.rest();
    let length = usize::try_from(reader.u32()?).ok()?;
    let identity = reader.u64()?;
    let checksum = reader.u64()?;
    let body = reader.take(length)?;
    let whole = &from_here[..from_here.len() - reader.rest().len()];
    Some(if checksum == checksum_of(identity, body) {
        Ok(Stored {
            identity,
            body,
            whole,
        })
    } else {
        Err(RecordError::Checksum)
    })
}

/// The first bytes of a record of a version.
fn magic_of(version: u32) -> [u8; 8] {
    let mut magic = [b'0'; 8];
    magic[..6].copy_from_slice(MAGIC);
    for (digit, unit) in magic[6..].iter_mut().zip([10, 1]) {
        *digit += u8::try_from(version / unit % 10).unwrap_or(0);
    }
    magic
}

fn version_of(magic: &[u8; 8]) -> Option<u32> {
    let digits = magic.strip_prefix(MAGIC)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Converts a record of an older version that is still read to this version.
///
/// # Errors
/// The record is damaged, or has another key.
pub(crate) fn upgrade(bytes: &[u8], key: &Key) -> Result<Vec<u8>, RecordError> {
    encode_record(key, &decode_record_of(bytes, key)?)
}

/// A record's bytes before its first variant.
pub(crate) fn start_record(key: &Key) -> Vec<u8> {
    let mut out = Vec::with_capacity(4096);
    out.extend_from_slice(&magic_of(RECORDS));
    out.extend_from_slice(&key.0);
    let checksum = xxh3_64(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// Appends a variant to a record.
pub(crate) fn put_variant(
    out: &mut Vec<u8>,
    manifest: &InputManifest,
    outcome: &Outcome,
) -> Result<(), RecordError> {
    let mut seen = Vec::new();
    manifest.encode(&mut seen);
    let mut body = Vec::with_capacity(seen.len() + 256);
    put_bytes(&mut body, &seen);
    let body = postcard::to_extend(outcome, body).map_err(|_| RecordError::Malformed)?;
    if body.len() > LONGEST_BODY {
        return Err(RecordError::TooLarge);
    }
    let length = u32::try_from(body.len()).map_err(|_| RecordError::TooLarge)?;
    let identity = identity_of(manifest, outcome);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&identity.to_le_bytes());
    out.extend_from_slice(&checksum_of(identity, &body).to_le_bytes());
    out.extend_from_slice(&body);
    Ok(())
}

/// A number that is equal for two runs that saw the same files and have the same other data.
pub(crate) fn identity_of(manifest: &InputManifest, outcome: &Outcome) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(&manifest.identity().to_le_bytes());
    hasher.update(&outcome.extra);
    hasher.digest()
}

fn checksum_of(identity: u64, body: &[u8]) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(&identity.to_le_bytes());
    hasher.update(body);
    hasher.digest()
}
