//! Turns stored bytes into the image that `cuobjdump` would extract: decompressed, without padding.

use std::borrow::Cow;
use std::cell::RefCell;

use crate::bytes::slice;
use crate::cubin;
use crate::error::{Flaw, ReadLimits};
use crate::image::{Image, ImageKind, Method};

/// No LZ4 block grows to more than this many times its size: a length byte adds at most 255.
const LZ4_GROWTH: u64 = 255;

thread_local! {
    // To create one costs more than to decompress a small image.
    static ZSTD: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

impl Image<'_> {
    /// The image itself: decompressed, and cut to its exact length. LTO-IR is given as it is
    /// stored, which is scrambled.
    ///
    /// # Errors It cannot be decompressed, has another length than it states, or is above the limit.
    pub fn payload(&self, limits: &ReadLimits) -> Result<Cow<'_, [u8]>, Flaw> {
        let whole = decompress(self, limits)?;
        let length = exact_length(self.kind, &whole);
        Ok(match whole {
            Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[..length]),
            Cow::Owned(mut bytes) => {
                bytes.truncate(length);
                Cow::Owned(bytes)
            }
        })
    }
}

/// Decompresses if need be; padding stays.
pub fn decompress<'b>(image: &'b Image<'_>, limits: &ReadLimits) -> Result<Cow<'b, [u8]>, Flaw> {
    let stored = image.stored.get();
    let method = image.method();
    if method == Method::Old {
        return Err(Flaw::Method);
    }
    // The parts of a concatenated image were decompressed with it.
    if method == Method::None || image.place.part.is_some() {
        return Ok(Cow::Borrowed(stored));
    }
    let compressed = slice(stored, 0, image.compressed_size.into())
        .ok_or_else(|| Flaw::Payload("more compressed bytes than are stored".to_owned()))?;
    if method == Method::Scrambled {
        return Ok(Cow::Borrowed(compressed));
    }
    let said = image.uncompressed_size;
    if said > limits.image {
        return Err(Flaw::TooLarge {
            what: "decompressed image",
            said,
            limit: limits.image,
        });
    }
    let size = usize::try_from(said).map_err(|_| Flaw::Truncated)?;
    let bytes = match method {
        Method::Zstd => unzstd(compressed, size)?,
        _ => unlz4(compressed, size)?,
    };
    if bytes.len() != size {
        return Err(Flaw::Payload(format!(
            "decompresses to {} bytes, not to the stated {size}",
            bytes.len()
        )));
    }
    Ok(Cow::Owned(bytes))
}

fn unzstd(compressed: &[u8], size: usize) -> Result<Vec<u8>, Flaw> {
    let wrong = |error: std::io::Error| Flaw::Payload(format!("zstd: {error}"));
    ZSTD.with(|context| {
        let mut context = context.borrow_mut();
        let context = match &mut *context {
            Some(context) => context,
            none => none.insert(zstd::bulk::Decompressor::new().map_err(wrong)?),
        };
        // A frame that grows beyond `size` is an error in there.
        context.decompress(compressed, size).map_err(wrong)
    })
}

fn unlz4(compressed: &[u8], size: usize) -> Result<Vec<u8>, Flaw> {
    if size as u64 > LZ4_GROWTH * (compressed.len() as u64 + 1) {
        return Err(Flaw::Payload(
            "lz4: states a size it cannot have".to_owned(),
        ));
    }
    lz4_flex::block::decompress(compressed, size)
        .map_err(|error| Flaw::Payload(format!("lz4: {error}")))
}

/// PTX ends before its padding zeros, a cubin where its last table or section ends.
fn exact_length(kind: ImageKind, whole: &[u8]) -> usize {
    match kind {
        ImageKind::Ptx => whole.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1),
        ImageKind::Cubin => cubin::length(whole).unwrap_or(whole.len()),
        _ => whole.len(),
    }
}
