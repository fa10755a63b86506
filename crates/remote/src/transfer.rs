//! Moves one result between the disk store and one server: fetches and verifies it, or merges it with the server's and
//! uploads it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Mutex;
use warpcc_cache::{
    Digest, DiskStore, FetchRequest, Key, Level, Packing, RecordError, StoreError, Variant, foreign,
};

use crate::action_result;
use crate::backend::{Backend, UploadSource};
use crate::error::RemoteError;
use crate::remote_record::Peer;
use crate::signature::Rejection;

/// Blobs up to this size are fetched together, and through memory.
const SMALL: u64 = 1 << 20;
/// Blobs on their way up are held in memory as far as they are small; this many bytes of them at a time.
const HELD: u64 = 16 << 20;

/// The outcome of a request for a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetched {
    /// It is in the disk store now; the number of bytes that were transferred.
    Stored(u64),
    /// There is no result that is valid here; the number of bytes that were transferred.
    Miss(u64),
    /// There is one that no run of warpcc can have made, or that is too large.
    Refused(u64),
    /// There is one, but without a signature of a trusted key.
    Rejected(Rejection, u64),
    /// There is one, but of a version that is not read.
    OtherVersion(u64),
}

/// State that concurrent requests share. Blobs of their results are fetched one result after another, since they may be the same.
#[derive(Clone, Copy)]
pub struct Turns<'a> {
    /// Held while blobs of one of them come.
    pub one_at_a_time: &'a Mutex<()>,
    /// The server failed for one of them, so the others are not fetched any more.
    pub failed: &'a AtomicBool,
}

/// Brings a result into `store`, if it is one that may be and holds here: the record first, and only the blobs of the
/// variant that holds.
///
/// # Errors
/// The server's faults, bytes that are not what they should be, a store that cannot be written.
pub async fn fetch(
    peer: Peer<'_, impl Backend>,
    store: &DiskStore,
    wanted: FetchRequest<'_>,
    turns: Turns<'_>,
) -> Result<Fetched, RemoteError> {
    let FetchRequest {
        level,
        key,
        at,
        vet,
    } = wanted;
    let mut refused = false;
    let mut compared: u64 = 0;
    let room = store.room();
    let found = peer.record(key).await?;
    let mut bytes = found.bytes;
    if let Some(rejection) = found.rejection {
        return Ok(Fetched::Rejected(rejection, bytes));
    }
    if found.other_version.is_some() {
        return Ok(Fetched::OtherVersion(bytes));
    }
    let _turn = turns.one_at_a_time.lock().await;
    if turns.failed.load(Ordering::Relaxed) {
        return Ok(Fetched::Miss(bytes));
    }
    for mut variant in found.variants {
        // This comes before a file is compared or a blob is fetched.
        let brings = size(variant.outcome.outputs.iter().map(|output| output.digest));
        compared = compared.saturating_add(variant.manifest.bytes_read());
        if !vet(&mut variant.outcome) || brings > room || compared > foreign::MOST_COMPARED {
            refused = true;
            continue;
        }
        let here = variant.manifest.real(at.path_map);
        let adopted = here.and_then(|seen| seen.adopted(at.directory, Some(store)));
        let Some(manifest) = adopted else {
            continue;
        };
        let outputs = &variant.outcome.outputs;
        let wanted: BTreeSet<Digest> = outputs.iter().map(|output| output.digest).collect();
        let wanted: Vec<Digest> = wanted.into_iter().filter(|d| !store.has(d)).collect();
        if !download_blobs(peer, store, &wanted).await? {
            // The server has evicted some of it.
            continue;
        }
        bytes += size(wanted.iter().copied());
        if peer.untrusted {
            // This comes before the result is stored, so that no upload can miss the mark.
            warpcc_cache::mark_untrusted(store.root()).map_err(|error| RemoteError::Local {
                path: store.root().display().to_string(),
                why: format!("cannot be marked as untrusted: {error}"),
            })?;
        }
        store
            .store_mapped(level, key, at.path_map, &manifest, &variant.outcome)
            .map_err(|e| store_error(&e))?;
        return Ok(Fetched::Stored(bytes));
    }
    Ok(match refused {
        true => Fetched::Refused(bytes),
        false => Fetched::Miss(bytes),
    })
}

/// The sum of the stated sizes.
fn size(digests: impl Iterator<Item = Digest>) -> u64 {
    digests
        .map(|digest| digest.size)
        .fold(0, u64::saturating_add)
}

/// Puts blobs into `store`. Returns false if the server does not have all of them.
async fn download_blobs(
    peer: Peer<'_, impl Backend>,
    store: &DiskStore,
    wanted: &[Digest],
) -> Result<bool, RemoteError> {
    let (small, large): (Vec<Digest>, Vec<Digest>) =
        wanted.iter().partition(|digest| digest.size <= SMALL);
    if !small.is_empty() {
        for (digest, bytes) in small.iter().zip(peer.backend.read_small(&small).await?) {
            let Some(bytes) = bytes else {
                return Ok(false);
            };
            let stored = store.put_bytes(&bytes, Packing::Zstd);
            verify_digest(digest, stored, peer.name)?;
        }
    }
    for digest in large {
        let temporary = TemporaryFile::new(store)?;
        if !peer.backend.read_large(&digest, &temporary.0).await? {
            return Ok(false);
        }
        verify_digest(
            &digest,
            store.put_file(&temporary.0, Packing::Zstd),
            peer.name,
        )?;
    }
    Ok(true)
}

/// The store computes the digest of the bytes. It must be the requested one, whatever the backend has checked.
fn verify_digest(
    asked: &Digest,
    stored: Result<Digest, StoreError>,
    server: &str,
) -> Result<(), RemoteError> {
    match stored {
        Ok(digest) if digest == *asked => Ok(()),
        Ok(_) => Err(RemoteError::WrongBytes {
            server: server.to_owned(),
            digest: *asked,
        }),
        Err(error) => Err(store_error(&error)),
    }
}

/// The outcome of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// The server has it now; the number of bytes that were transferred.
    Put(u64),
    /// The server had it before, or the store does not have it any more.
    Unchanged,
}

/// Uploads what `store` has under `key`, merged with what the server has.
///
/// # Errors
/// As [`fetch`].
pub async fn push(
    peer: Peer<'_, impl Backend>,
    store: &DiskStore,
    level: Level,
    key: &Key,
) -> Result<Pushed, RemoteError> {
    let backend = peer.backend;
    let ours = store.remembered(level, key);
    // The mark is checked after the result is read, because it is set before a result is stored.
    let may_go = peer.untrusted || !warpcc_cache::is_untrusted(store.root());
    if ours.is_empty() || !may_go {
        return Ok(Pushed::Unchanged);
    }
    let signer = peer.trust.signer().await?;
    let blobs: BTreeSet<Digest> = ours.iter().flat_map(digests).collect();
    let blobs: Vec<Digest> = blobs.into_iter().collect();
    let missing = backend.missing(&blobs).await?;
    // The blobs of a result may have been evicted from the store or from the server.
    let whole = |v: &Variant| digests(v).all(|d| !missing.contains(&d) || store.has(&d));
    let mut merged: Vec<Variant> = ours.iter().filter(|v| whole(v)).cloned().collect();
    let needed: BTreeSet<Digest> = merged.iter().flat_map(digests).collect();
    let nothing_missing = missing.is_empty();
    let sent: Vec<Digest> = missing.into_iter().filter(|d| needed.contains(d)).collect();
    let mut bytes = upload(backend, store, &sent).await?;
    // Read last, so that little time is left for others before it is replaced. What cannot be read is.
    let theirs = match peer.record(key).await {
        // Its readers would not take it from us.
        Ok(theirs) if theirs.is_signed && signer.is_none() => return Ok(Pushed::Unchanged),
        Ok(theirs) if theirs.is_newer() => return Ok(Pushed::Unchanged),
        Ok(theirs) => theirs.variants,
        Err(RemoteError::Answer { .. } | RemoteError::WrongBytes { .. }) => Vec::new(),
        Err(fault) => return Err(fault),
    };
    if nothing_missing && are_among(&theirs, &merged) && !backend.is_aging(key) {
        return Ok(Pushed::Unchanged);
    }
    let rest = theirs.into_iter();
    let rest: Vec<Variant> = rest
        .filter(|v| merged.iter().all(|ours| ours.identity() != v.identity()))
        .collect();
    merged.extend(rest);
    if merged.is_empty() {
        return Ok(Pushed::Unchanged);
    }
    merged.truncate(warpcc_cache::MOST_VARIANTS);
    let packed = match action_result::pack(key, &merged, signer) {
        Ok(packed) => packed,
        // Nobody would take it.
        Err(RecordError::TooLarge) => return Ok(Pushed::Unchanged),
        Err(why) => {
            return Err(RemoteError::Local {
                path: format!("the record of {key}"),
                why: why.to_string(),
            });
        }
    };
    if let Some((digest, record)) = packed.record {
        bytes += digest.size;
        backend
            .write(&[(digest, UploadSource::Bytes(record))])
            .await?;
    }
    bytes += packed.result.stdout_raw.len() as u64;
    backend.put_result(key, &packed.result).await?;
    Ok(Pushed::Put(bytes))
}

/// Whether the server still remembers what `store` does under `key` and could give it: another machine may have
/// replaced a result that it had read before ours was there.
///
/// # Errors
/// As [`fetch`].
pub async fn holds(
    peer: Peer<'_, impl Backend>,
    store: &DiskStore,
    level: Level,
    key: &Key,
) -> Result<bool, RemoteError> {
    let mut ours = store.remembered(level, key);
    ours.retain(|variant| digests(variant).all(|digest| store.has(&digest)));
    let theirs = peer.record(key).await?;
    let is_left = theirs.is_newer() || theirs.is_signed && peer.trust.signer().await?.is_none();
    Ok(is_left || are_among(&theirs.variants, &ours))
}

fn are_among(theirs: &[Variant], ours: &[Variant]) -> bool {
    let is_theirs = |ours: &Variant| theirs.iter().any(|v| v.identity() == ours.identity());
    ours.iter().all(is_theirs)
}

fn digests(variant: &Variant) -> impl Iterator<Item = Digest> + '_ {
    variant.outcome.outputs.iter().map(|output| output.digest)
}

/// Sends blobs of the store. Returns the number of bytes.
async fn upload(
    backend: &impl Backend,
    store: &DiskStore,
    blobs: &[Digest],
) -> Result<u64, RemoteError> {
    let mut sent = 0;
    let mut batch: Vec<(Digest, UploadSource)> = Vec::new();
    let mut held = 0;
    for digest in blobs {
        sent += digest.size;
        if digest.size > SMALL {
            let temporary = TemporaryFile::new(store)?;
            let there = store.get_to(digest, &temporary.0, false);
            if !there.map_err(|e| store_error(&e))? {
                return Err(gone(digest));
            }
            let source = UploadSource::File(temporary.0.clone());
            backend.write(&[(*digest, source)]).await?;
            continue;
        }
        let bytes = store.get_bytes(digest).map_err(|e| store_error(&e))?;
        let bytes = bytes.ok_or_else(|| gone(digest))?;
        held += digest.size;
        batch.push((*digest, UploadSource::Bytes(bytes)));
        if held > HELD {
            backend.write(&std::mem::take(&mut batch)).await?;
            held = 0;
        }
    }
    if !batch.is_empty() {
        backend.write(&batch).await?;
    }
    Ok(sent)
}

fn gone(digest: &Digest) -> RemoteError {
    RemoteError::Local {
        path: digest.to_string(),
        why: "was removed from the cache while it was uploaded".to_owned(),
    }
}

fn store_error(error: &StoreError) -> RemoteError {
    let mut why = error.to_string();
    if let Some(source) = std::error::Error::source(error) {
        why = format!("{why}: {source}");
    }
    RemoteError::Local {
        path: "the cache".to_owned(),
        why,
    }
}

/// The name of a temporary file, which is removed when the transfer is over.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn new(store: &DiskStore) -> Result<Self, RemoteError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let folder = store.root().join("tmp");
        std::fs::create_dir_all(&folder).map_err(|error| RemoteError::Local {
            path: folder.display().to_string(),
            why: error.to_string(),
        })?;
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        // If this process is killed, the store later removes files with such a name.
        let path = folder.join(format!(".warpcc-remote-{process}-{number}"));
        // It is of a process that had our number and was killed.
        drop(std::fs::remove_file(&path));
        Ok(Self(path))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}
