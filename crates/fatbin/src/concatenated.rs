//! Several images compressed as one: a table of sub-headers, and one stream for all of them.
//!
//! `fatbinary --concat` of 13.5 writes them; a driver of CUDA 13.0 does not load them (seen).

use std::sync::Arc;

use crate::bytes::{Bytes, slice, u32_at, u64_at};
use crate::error::{Flaw, ReadLimits};
use crate::image::{Image, ImagePlace, SMALLEST_HEADER};
use crate::payload;

/// The offset in the header of the table's place.
const TABLE_AT: usize = 0x14;
/// The number of parts and the length of the table, before the first sub-header.
const BEFORE_PARTS: u64 = 8;

/// The images inside `outer`, whose header is `header`, and how many bytes they hold as long as they
/// live. `held` is the same of the file's other concatenated images.
///
/// # Errors The table is inconsistent, or the stream cannot be decompressed within `limits`.
pub fn expand<'a>(
    header: &[u8],
    outer: &Image<'a>,
    held: u64,
    limits: &ReadLimits,
) -> Result<(Vec<Image<'a>>, u64), Flaw> {
    let at = u32_at(header, TABLE_AT).ok_or(Flaw::Table)?;
    let head = slice(header, at.into(), BEFORE_PARTS).ok_or(Flaw::Table)?;
    let count = u32_at(head, 0).ok_or(Flaw::Table)?;
    let size = u32_at(head, 4).ok_or(Flaw::Table)?;
    let table = slice(header, at.into(), size.into()).ok_or(Flaw::Table)?;
    let mut rest = table.get(BEFORE_PARTS as usize..).ok_or(Flaw::Table)?;
    // Before anything is decompressed or allocated.
    if u64::from(count) * u64::from(SMALLEST_HEADER) > rest.len() as u64 {
        return Err(Flaw::Table);
    }
    // Parts that are stored without compression are copied.
    let together = held.saturating_add(outer.uncompressed_size.max(outer.stored_size));
    if together > limits.image {
        return Err(Flaw::TooLarge {
            what: "decompressed concatenated images in one file",
            said: together,
            limit: limits.image,
        });
    }
    // Each part is read on its own. Together they are not larger than the whole.
    let mut left = outer.uncompressed_size.max(outer.stored_size);
    let blob = Arc::new(payload::decompress(outer, limits)?.into_owned());
    let mut parts = Vec::new();
    for part in 0..count {
        let length = sub_header_length(rest).ok_or(Flaw::Table)?;
        let sub = slice(rest, 0, length).ok_or(Flaw::Table)?;
        let from = u32_at(sub, 4).ok_or(Flaw::Table)?;
        let bytes = u64_at(sub, 8).ok_or(Flaw::Table)?;
        slice(&blob, from.into(), bytes).ok_or(Flaw::Table)?;
        left = left.checked_sub(bytes).ok_or(Flaw::Table)?;
        let from = from as usize;
        // It fits: the blob has these bytes.
        let range = from..from + bytes as usize;
        let place = ImagePlace {
            part: Some(part),
            ..outer.place
        };
        let stored = Bytes::Shared(Arc::clone(&blob), range);
        parts.push(Image::from_header(sub, stored, place).ok_or(Flaw::Table)?);
        rest = &rest[sub.len()..];
    }
    Ok((parts, blob.len() as u64))
}

/// A sub-header does not state its length. It ends after its name or options.
fn sub_header_length(sub: &[u8]) -> Option<u64> {
    let word = |at| u32_at(sub, at).map(u64::from);
    let mut end = u64::from(SMALLEST_HEADER);
    let (name, name_length) = (word(0x20)?, word(0x24)?);
    if name != 0 {
        end = end.max(name + (name_length + 1).next_multiple_of(8));
    }
    let options = word(TABLE_AT)?;
    if options != 0 {
        let record = usize::try_from(options).ok()?;
        let (text, length) = (word(record)?, word(record + 4)?);
        end = end.max((text + length + 1).next_multiple_of(8));
    }
    Some(end)
}
