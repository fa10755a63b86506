//! A record of the cache as an `ActionResult`, and back.
//!
//! ```text
//! output_files   every blob of every variant, named by its digest: for servers that check results or evict by use
//! stdout_raw     the record as a zstd frame, signed or not (`signature`), if it is short
//! output_files   else: "record", a blob of the same bytes
//! ```
//!
//! The record is the disk store's own (`warpcc_cache::record`), with its checksums and its key in it, but without
//! signatures of this machine's files.

use std::collections::BTreeSet;
use std::io::Read;

use crate::download::WIDEST_WINDOW;
use crate::keys::Signer;
use crate::signature::{self, SIGNED, UNSIGNED};
use bazel_remote_apis::build::bazel::remote::execution::v2::{
    ActionResult, Digest as WireDigest, OutputFile,
};
use warpcc_cache::{Digest, Key, RecordError, Variant, decode_foreign_record, encode_record};

const RECORD: &str = "record";
/// A longer record is a blob of its own: servers limit a message to 4 MiB, and every look-up reads the result.
const INLINE: usize = 256 << 10;
/// Largest record, packed or not.
pub const LARGEST: usize = 16 << 20;
/// The largest result: the inline record, and the names of its blobs. Decoded, it takes up to a hundred times as many
/// bytes.
pub const LARGEST_RESULT: usize = 1 << 20;
/// The error for a larger one.
pub const TOO_LARGE: &str = "a result of more than 1 MiB";

/// A result to be put under a key.
pub struct NewResult {
    /// The message to upload.
    pub result: ActionResult,
    /// The record, if it is a blob of its own.
    pub record: Option<(Digest, Vec<u8>)>,
}

/// Where an `ActionResult`'s record is.
pub enum RecordLocation {
    /// In it.
    Inline(Vec<u8>),
    /// In a blob.
    Blob(Digest),
    /// It has none: it is not ours.
    Absent,
}

/// Packs `variants` for others, signed if there is a signer.
///
/// # Errors
/// One is too large for a record.
pub fn pack(
    key: &Key,
    variants: &[Variant],
    signer: Option<&Signer>,
) -> Result<NewResult, RecordError> {
    let bare: Vec<Variant> = variants
        .iter()
        .map(|variant| Variant {
            manifest: variant.manifest.without_signatures(),
            outcome: variant.outcome.clone(),
        })
        .collect();
    let record = encode_record(key, &bare)?;
    let frame = zstd::bulk::compress(&record, 3).map_err(|_| RecordError::TooLarge)?;
    let packed = signature::wrap(key, &frame, signer);
    // What no reader takes need not be there.
    if packed.len() > LARGEST || self::variants(&frame, key).is_err() {
        return Err(RecordError::TooLarge);
    }
    let outputs = variants.iter().flat_map(|variant| &variant.outcome.outputs);
    let blobs: BTreeSet<Digest> = outputs.map(|output| output.digest).collect();
    let mut files: Vec<OutputFile> = blobs
        .iter()
        .map(|digest| file(digest.hex(), digest))
        .collect();
    let mut result = ActionResult::default();
    let mut blob = None;
    if packed.len() <= INLINE {
        result.stdout_raw = packed;
    } else {
        let digest = Digest::of_bytes(&packed);
        files.push(file(RECORD.to_owned(), &digest));
        blob = Some((digest, packed));
    }
    result.output_files = files;
    Ok(NewResult {
        result,
        record: blob,
    })
}

fn file(path: String, digest: &Digest) -> OutputFile {
    OutputFile {
        path,
        digest: Some(WireDigest {
            hash: digest.hex(),
            size_bytes: i64::try_from(digest.size).unwrap_or(i64::MAX),
        }),
        ..OutputFile::default()
    }
}

/// Where `result` has its record.
pub fn locate_record(result: &ActionResult) -> RecordLocation {
    let begins = |magic: &[u8]| result.stdout_raw.starts_with(magic);
    if begins(UNSIGNED) || begins(SIGNED) {
        return RecordLocation::Inline(result.stdout_raw.clone());
    }
    let record = result.output_files.iter().find(|file| file.path == RECORD);
    let digest = record.and_then(|file| {
        let digest = file.digest.as_ref()?;
        format!("{}/{}", digest.hash, digest.size_bytes)
            .parse()
            .ok()
    });
    match digest {
        Some(digest) => RecordLocation::Blob(digest),
        None => RecordLocation::Absent,
    }
}

/// The variants in the frame of a record that [`pack`] made for `key`.
///
/// # Errors
/// The bytes are something else.
pub fn variants(frame: &[u8], key: &Key) -> Result<Vec<Variant>, RecordError> {
    let record = unpack(frame, LARGEST).ok_or(RecordError::Malformed)?;
    decode_foreign_record(&record, key)
}

/// A zstd frame's content of at most `limit` bytes.
pub fn unpack(frame: &[u8], limit: usize) -> Option<Vec<u8>> {
    let mut decoder = zstd::stream::read::Decoder::new(frame).ok()?;
    decoder.window_log_max(WIDEST_WINDOW).ok()?;
    let mut bytes = Vec::new();
    let mut limited = decoder.take(limit as u64 + 1);
    limited.read_to_end(&mut bytes).ok()?;
    (bytes.len() <= limit).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpcc_cache::{InputManifest, Outcome, ProducedFile};

    fn variant(text: &[u8], noise: usize) -> Variant {
        // Bytes that do not compress.
        let mut noisy = Vec::new();
        let mut last = Digest::of_bytes(text);
        while noisy.len() < noise {
            noisy.extend_from_slice(&last.hash);
            last = Digest::of_bytes(&last.hash);
        }
        Variant {
            manifest: InputManifest::default(),
            outcome: Outcome {
                outputs: vec![ProducedFile {
                    role: "0".to_owned(),
                    digest: Digest::of_bytes(text),
                    executable: false,
                }],
                extra: noisy,
                ..Outcome::default()
            },
        }
    }

    #[test]
    fn records_go_round_inline_and_as_blobs() {
        let key = Key([7; 32]);
        for noise in [0, 1 << 20] {
            let all = vec![variant(b"a", noise), variant(b"b", 0)];
            let entry = pack(&key, &all, None).expect("pack");
            let named = entry.result.output_files.len();
            let packed = match (locate_record(&entry.result), entry.record) {
                (RecordLocation::Inline(bytes), None) => bytes,
                (RecordLocation::Blob(digest), Some((same, bytes))) if digest == same => bytes,
                _ => panic!("a record that is nowhere"),
            };
            assert_eq!(named, if noise == 0 { 2 } else { 3 });
            let frame = signature::RecordParts::split(&packed)
                .expect("a record")
                .frame;
            assert_eq!(variants(frame, &key), Ok(all));
            assert!(variants(frame, &Key([8; 32])).is_err());
            assert!(variants(&frame[..frame.len() - 9], &key).is_err());
        }
        assert!(matches!(
            locate_record(&ActionResult::default()),
            RecordLocation::Absent
        ));
    }
}
