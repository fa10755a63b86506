//! The file of a blob: first the payload, so that a plain one starts where a file's content starts, then a trailer that
//! verifies it.
//!
//! ```text
//! blob    = payload trailer
//! trailer = sha256[32] length(u64) payload length(u64) packing(u64: 0 plain, 1 zstd)
//!           payload checksum(u128 XXH3) checksum(u64 XXH3 of the trailer so far) magic[8]
//! ```
//!
//! Integers are little-endian. SHA-256 and length are of the bytes before packing. The magic ends in the version.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_128};

use super::error::BlobFault;
use super::file::means_missing;
use super::frames;
use crate::digest::{Digest, Digesting};
use crate::wire::Reader;

const MAGIC: &[u8; 8] = b"WCCBLB01";

pub(super) const TRAILER: usize = 32 + 8 + 8 + 8 + 16 + 8 + 8;

/// Larger blobs are decompressed in pieces.
const IN_MEMORY: u64 = 32 << 20;

const PIECE: usize = 1 << 20;

/// How the bytes of a blob are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Uncompressed: quickest to place.
    Plain,
    /// Compressed, unless that gains nothing.
    Zstd,
}

/// Verifies everything about a blob, including its SHA-256. Returns `Ok(false)` for a damaged one.
pub(super) fn verify(path: &Path) -> io::Result<bool> {
    let mut hashing = HashingWriter(Digesting::new());
    let verified = Blob::open(path).and_then(|blob| match blob {
        Some(mut blob) => blob.copy_to(&mut hashing).map(|()| Some(blob.trailer)),
        None => Ok(None),
    });
    match verified {
        // It was removed meanwhile, which is no damage.
        Ok(None) => Ok(true),
        Ok(Some(trailer)) => {
            let digest = hashing.0.finish();
            let name = format!("{}-{}", digest.hex(), digest.size);
            let named = path.file_name().is_some_and(|n| n == name.as_str());
            Ok(named && trailer.digest == digest)
        }
        Err(BlobFault::Bad) => Ok(false),
        Err(BlobFault::Reading(error) | BlobFault::Writing(error)) => Err(error),
    }
}

pub(super) struct Blob {
    pub(super) file: File,
    pub(super) trailer: Trailer,
}

impl Blob {
    pub(super) fn open(path: &Path) -> Result<Option<Blob>, BlobFault> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if means_missing(&error) => return Ok(None),
            Err(error) => return Err(BlobFault::Reading(error)),
        };
        let length = file.metadata().map_err(BlobFault::Reading)?.len();
        let payload = length.checked_sub(TRAILER as u64).ok_or(BlobFault::Bad)?;
        let mut end = [0; TRAILER];
        file.read_exact_at(&mut end, payload)
            .map_err(BlobFault::Reading)?;
        let trailer = Trailer::decode(&end).ok_or(BlobFault::Bad)?;
        if trailer.payload != payload {
            return Err(BlobFault::Bad);
        }
        Ok(Some(Blob { file, trailer }))
    }

    /// Writes the bytes. They are valid only if this returns `Ok`.
    pub(super) fn copy_to(&mut self, out: &mut dyn Write) -> Result<(), BlobFault> {
        let in_memory = match self.trailer.packing {
            Packing::Plain => frames::SMALL as u64,
            Packing::Zstd => IN_MEMORY,
        };
        if self.trailer.digest.size <= in_memory && self.trailer.payload <= in_memory {
            return self.write_at_once(out);
        }
        let mut payload = HashingReader {
            inner: (&self.file).take(self.trailer.payload),
            hasher: Xxh3::new(),
            fault: None,
        };
        let size = self.trailer.digest.size;
        let copied = match self.trailer.packing {
            Packing::Plain => copy_exactly(&mut payload, size, out),
            Packing::Zstd => match zstd::stream::read::Decoder::new(&mut payload) {
                Ok(mut decoder) => copy_exactly(&mut decoder, size, out),
                Err(error) => Err(BlobFault::Reading(error)),
            },
        };
        match (copied, payload.fault.take()) {
            (_, Some(error)) => return Err(BlobFault::Reading(error)),
            (Err(BlobFault::Writing(error)), None) => return Err(BlobFault::Writing(error)),
            // The decoder refused the bytes from the disk.
            (Err(_), None) => return Err(BlobFault::Bad),
            (Ok(()), None) => {}
        }
        // The checksum also covers bytes that the decoder does not need.
        io::copy(&mut payload, &mut io::sink()).map_err(BlobFault::Reading)?;
        match payload.hasher.digest128() == self.trailer.checksum {
            true => Ok(()),
            false => Err(BlobFault::Bad),
        }
    }

    /// The same for bytes that fit into memory: verified first, then decompressed by several threads.
    fn write_at_once(&mut self, out: &mut dyn Write) -> Result<(), BlobFault> {
        let size = usize::try_from(self.trailer.digest.size).map_err(|_| BlobFault::Bad)?;
        let mut payload = Vec::new();
        (&self.file)
            .take(self.trailer.payload)
            .read_to_end(&mut payload)
            .map_err(BlobFault::Reading)?;
        if xxh3_128(&payload) != self.trailer.checksum {
            return Err(BlobFault::Bad);
        }
        let bytes = match self.trailer.packing {
            Packing::Plain => Some(payload).filter(|plain| plain.len() == size),
            Packing::Zstd => frames::unpack(&payload, size),
        };
        let bytes = bytes.ok_or(BlobFault::Bad)?;
        out.write_all(&bytes).map_err(BlobFault::Writing)
    }
}

pub(super) struct Trailer {
    pub(super) digest: Digest,
    pub(super) payload: u64,
    pub(super) packing: Packing,
    pub(super) checksum: u128,
}

impl Trailer {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(TRAILER);
        out.extend_from_slice(&self.digest.hash);
        out.extend_from_slice(&self.digest.size.to_le_bytes());
        out.extend_from_slice(&self.payload.to_le_bytes());
        let packing: u64 = match self.packing {
            Packing::Plain => 0,
            Packing::Zstd => 1,
        };
        out.extend_from_slice(&packing.to_le_bytes());
        out.extend_from_slice(&self.checksum.to_le_bytes());
        out.extend_from_slice(&xxh3_64(&out).to_le_bytes());
        out.extend_from_slice(MAGIC);
        out
    }

    fn decode(bytes: &[u8; TRAILER]) -> Option<Trailer> {
        let mut reader = Reader::new(bytes);
        let hash = reader.array()?;
        let (size, payload) = (reader.u64()?, reader.u64()?);
        let packing = match reader.u64()? {
            0 => Packing::Plain,
            1 => Packing::Zstd,
            _ => return None,
        };
        let checksum = u128::from_le_bytes(reader.array()?);
        let covered = bytes.len() - reader.rest().len();
        let sound = reader.u64()? == xxh3_64(&bytes[..covered]) && reader.rest() == MAGIC;
        sound.then_some(Trailer {
            digest: Digest { hash, size },
            payload,
            packing,
            checksum,
        })
    }
}

/// Writes exactly `size` bytes; any other number means damage.
fn copy_exactly(from: &mut dyn Read, size: u64, out: &mut dyn Write) -> Result<(), BlobFault> {
    let piece = usize::try_from(size).unwrap_or(PIECE).clamp(1, PIECE);
    let mut buffer = vec![0; piece];
    let mut rest = size;
    loop {
        let read = match from.read(&mut buffer) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(BlobFault::Reading(error)),
        };
        if read == 0 {
            return if rest == 0 {
                Ok(())
            } else {
                Err(BlobFault::Bad)
            };
        }
        rest = rest.checked_sub(read as u64).ok_or(BlobFault::Bad)?;
        out.write_all(&buffer[..read]).map_err(BlobFault::Writing)?;
    }
}

/// What [`copy`] read and wrote.
pub(super) struct Copied {
    /// The number of bytes read.
    pub(super) size: u64,
    /// The XXH3 of the bytes read.
    pub(super) checksum: u128,
    /// The number of bytes written.
    pub(super) payload: u64,
    /// The XXH3 of the bytes written.
    pub(super) payload_checksum: u128,
}

/// The digest of a file's content, and its XXH3, with which a second reading is compared.
pub(super) fn digest_and_checksum(file: &File) -> io::Result<(Digest, u128)> {
    let (mut digesting, mut hasher) = (Digesting::new(), Xxh3::new());
    each_piece(file, |piece| {
        digesting.update(piece);
        hasher.update(piece);
        Ok(())
    })?;
    Ok((digesting.finish(), hasher.digest128()))
}

/// Copies a file, and packs it on the way.
pub(super) fn copy(from: &File, out: &mut File, packing: Packing) -> io::Result<Copied> {
    let (mut read, mut written) = (Xxh3::new(), Xxh3::new());
    let (mut size, mut payload) = (0, 0);
    let mut packer = match packing {
        Packing::Plain => None,
        Packing::Zstd => Some(frames::Packer::new()?),
    };
    each_piece(from, |piece| {
        size += piece.len() as u64;
        read.update(piece);
        if let Some(packer) = &mut packer {
            let packed = packer.frame(piece)?;
            written.update(packed);
            payload += packed.len() as u64;
            return out.write_all(packed);
        }
        out.write_all(piece)
    })?;
    let checksum = read.digest128();
    let (payload, payload_checksum) = match packing {
        Packing::Plain => (size, checksum),
        Packing::Zstd => (payload, written.digest128()),
    };
    Ok(Copied {
        size,
        checksum,
        payload,
        payload_checksum,
    })
}

/// Calls `each` for each piece. All pieces but the last have the length of a frame.
fn each_piece(from: &File, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(frames::FRAME);
    loop {
        buffer.clear();
        from.take(frames::FRAME as u64).read_to_end(&mut buffer)?;
        if buffer.is_empty() {
            return Ok(());
        }
        each(&buffer)?;
    }
}

/// Hashes the bytes that are read, and notes whether the disk itself failed.
struct HashingReader<R> {
    inner: R,
    hasher: Xxh3,
    fault: Option<io::Error>,
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(buffer) {
            Ok(read) => {
                self.hasher.update(&buffer[..read]);
                Ok(read)
            }
            Err(error) => {
                if error.kind() != io::ErrorKind::Interrupted {
                    self.fault = Some(io::Error::from(error.kind()));
                }
                Err(error)
            }
        }
    }
}

struct HashingWriter(Digesting);

impl Write for HashingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
