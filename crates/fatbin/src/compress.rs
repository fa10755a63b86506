//! Compresses an image anew, in the forms that `fatbinary` writes.
//!
//! Which images a mode compresses, by what method and at which level was found by comparing with `fatbinary` 13.5: its
//! PTX is equal byte for byte in every mode (tests/thinning/recompressed.rs).

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::bytes::{put_u32, put_u64};
use crate::cubin::Cubin;
use crate::error::{Flaw, ReadLimits};
use crate::image::{Image, ImageFlags, ImageKind, Method};
use crate::payload;

/// A mode of `nvcc -compress-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CompressMode {
    /// Everything, by the densest method.
    Size,
    /// Compresses PTX and code that is linked later. Machine code that is loaded stays as it is. This is nvcc's
    /// default.
    Balance,
    /// The same by LZ4, which unpacks faster.
    Speed,
    /// Nothing.
    None,
}

impl CompressMode {
    /// All modes, the densest first.
    pub const ALL: [Self; 4] = [Self::Size, Self::Balance, Self::Speed, Self::None];

    /// Its name as nvcc's option has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Balance => "balance",
            Self::Speed => "speed",
            Self::None => "none",
        }
    }
}

impl fmt::Display for CompressMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why a text names no mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a mode: write size, balance, speed or none, as for nvcc -compress-mode")]
pub struct NotAMode(String);

impl FromStr for CompressMode {
    type Err = NotAMode;

    fn from_str(text: &str) -> Result<Self, NotAMode> {
        let mode = match text {
            // What nvcc 13 does without the option.
            "default" => Some(Self::Balance),
            other => Self::ALL.into_iter().find(|mode| mode.name() == other),
        };
        mode.ok_or_else(|| NotAMode(text.to_owned()))
    }
}

/// The levels of `fatbinary` 13.5.
const ZSTD_SIZE: i32 = 19;
const ZSTD_BALANCE: i32 = 5;
const LZ4_LEVEL: i32 = 3;
/// Fields of an image's header.
const STORED_SIZE: usize = 8;
const COMPRESSED_SIZE: usize = 0x10;
const FLAGS: usize = 0x28;
const UNCOMPRESSED_SIZE: usize = 0x38;

/// Whether images of this kind can be compressed anew. LTO-IR is scrambled, and several images that are compressed as one
/// stay together.
pub fn can_recompress(image: &Image<'_>) -> bool {
    matches!(image.kind, ImageKind::Cubin | ImageKind::Ptx)
        && image.place.part.is_none()
        && image.header_size > 0
        && matches!(image.method(), Method::None | Method::Lz4 | Method::Zstd)
}

/// The image with its header as `mode` has it; `None` where it stays as it is. An image that would grow by being
/// compressed stays, too.
///
/// # Errors
/// It does not decompress.
pub fn recompress(
    header: &[u8],
    image: &Image<'_>,
    mode: CompressMode,
    limits: &ReadLimits,
) -> Result<Option<Vec<u8>>, Flaw> {
    if !can_recompress(image) {
        return Ok(None);
    }
    let content = content(image, limits)?;
    let method = method(image, &content, mode);
    if method == Method::None {
        if image.method() == Method::None {
            return Ok(None);
        }
        return Ok(Some(assemble(header, image, method, &content, 0)));
    }
    let packed = compress(&content, method, mode)?;
    let padded = (packed.len() as u64).next_multiple_of(8);
    let worse = match image.method() {
        Method::None => padded >= image.stored_size,
        same if same == method => padded >= image.stored_size,
        // Another method was requested, perhaps a faster one.
        _ => false,
    };
    if worse {
        return Ok(None);
    }
    let size = content.len() as u64;
    Ok(Some(assemble(header, image, method, &packed, size)))
}

/// The bytes that are compressed. A PTX text is followed by one zero byte.
fn content(image: &Image<'_>, limits: &ReadLimits) -> Result<Vec<u8>, Flaw> {
    if image.method() != Method::None {
        return Ok(payload::decompress(image, limits)?.into_owned());
    }
    let mut bytes = image.payload(limits)?.into_owned();
    if image.kind == ImageKind::Ptx {
        bytes.push(0);
    }
    Ok(bytes)
}

fn method(image: &Image<'_>, content: &[u8], mode: CompressMode) -> Method {
    // Loaded machine code is left as it is, so that nothing has to be unpacked when a program starts.
    let loaded = image.kind == ImageKind::Cubin
        && !image.flags.is_debug()
        && Cubin::parse(content).is_ok_and(|cubin| !cubin.is_relocatable());
    match mode {
        CompressMode::Size => Method::Zstd,
        CompressMode::None => Method::None,
        CompressMode::Balance | CompressMode::Speed if loaded => Method::None,
        CompressMode::Balance => Method::Zstd,
        CompressMode::Speed => Method::Lz4,
    }
}

fn compress(content: &[u8], method: Method, mode: CompressMode) -> Result<Vec<u8>, Flaw> {
    let wrong = |error: std::io::Error| Flaw::Payload(format!("cannot be compressed: {error}"));
    match method {
        Method::Lz4 => {
            let level = lz4::block::CompressionMode::HIGHCOMPRESSION(LZ4_LEVEL);
            lz4::block::compress(content, Some(level), false).map_err(wrong)
        }
        _ => {
            let level = match mode {
                CompressMode::Size => ZSTD_SIZE,
                _ => ZSTD_BALANCE,
            };
            zstd::bulk::compress(content, level).map_err(wrong)
        }
    }
}

/// Header and payload, with `uncompressed` bytes of content (0 if they are not compressed).
fn assemble(
    header: &[u8],
    image: &Image<'_>,
    method: Method,
    stored: &[u8],
    uncompressed: u64,
) -> Vec<u8> {
    let padded = stored.len().next_multiple_of(8);
    let mut bytes = header.to_vec();
    put_u64(&mut bytes, STORED_SIZE, padded as u64);
    let compressed = match method {
        Method::None => 0,
        // The content is not larger than the limit of an image, and no method doubles it.
        _ => u32::try_from(stored.len()).unwrap_or(u32::MAX),
    };
    put_u32(&mut bytes, COMPRESSED_SIZE, compressed);
    put_u64(&mut bytes, FLAGS, image.flags.with(method).0);
    put_u64(&mut bytes, UNCOMPRESSED_SIZE, uncompressed);
    bytes.extend_from_slice(stored);
    bytes.resize(header.len() + padded, 0);
    bytes
}

impl ImageFlags {
    fn with(self, method: Method) -> Self {
        let rest = self.0 & !(Self::OLD | Self::LZ4 | Self::ZSTD);
        Self(match method {
            Method::Lz4 => rest | Self::LZ4,
            Method::Zstd => rest | Self::ZSTD,
            _ => rest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::CompressMode;

    #[test]
    fn modes_have_nvccs_names() {
        for mode in CompressMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert_eq!("default".parse(), Ok(CompressMode::Balance));
        assert!("zstd".parse::<CompressMode>().is_err());
    }
}
