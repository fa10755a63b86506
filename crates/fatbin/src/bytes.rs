//! Reading little-endian numbers and strings from bytes that may end anywhere.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// The two bytes at `at`.
pub fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*data.get(at..)?.first_chunk()?))
}

/// The four bytes at `at`.
pub fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*data.get(at..)?.first_chunk()?))
}

/// The eight bytes at `at`.
pub fn u64_at(data: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*data.get(at..)?.first_chunk()?))
}

/// `length` bytes from `at`. Both numbers come from a file and are checked.
pub fn slice(data: &[u8], at: u64, length: u64) -> Option<&[u8]> {
    let from = usize::try_from(at).ok()?;
    let to = from.checked_add(usize::try_from(length).ok()?)?;
    data.get(from..to)
}

/// The text at `at` up to a zero byte or the end.
pub fn text_at(data: &[u8], at: usize) -> Cow<'_, str> {
    let rest = data.get(at..).unwrap_or_default();
    let end = rest.iter().position(|b| *b == 0).unwrap_or(rest.len());
    String::from_utf8_lossy(&rest[..end])
}

/// Bytes of a mapped file, or a part of something that was decompressed.
#[derive(Debug, Clone)]
pub enum Bytes<'a> {
    /// The bytes in the file.
    Mapped(&'a [u8]),
    /// A range of decompressed bytes that several images share.
    Shared(Arc<Vec<u8>>, Range<usize>),
}

impl Bytes<'_> {
    /// The bytes.
    pub fn get(&self) -> &[u8] {
        match self {
            Bytes::Mapped(bytes) => bytes,
            Bytes::Shared(all, range) => all.get(range.clone()).unwrap_or_default(),
        }
    }
}

/// Writes eight bytes, if they are inside `data`.
pub fn put_u64(data: &mut [u8], at: usize, value: u64) {
    if let Some(place) = data.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = value.to_le_bytes();
    }
}

/// Writes four bytes, if they are inside `data`.
pub fn put_u32(data: &mut [u8], at: usize, value: u32) {
    if let Some(place) = data.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = value.to_le_bytes();
    }
}

/// Writes two bytes, if they are inside `data`.
pub fn put_u16(data: &mut [u8], at: usize, value: u16) {
    if let Some(place) = data.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = value.to_le_bytes();
    }
}
