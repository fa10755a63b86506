//! Reads one image of a fat binary: the header in front of it, and the meaning of its fields.
//!
//! Offsets and meanings were found by making files and comparing with `cuobjdump` 13.5. Those that were not seen, and
//! come from other people's notes, are marked.

use std::fmt;

use serde::Serialize;

use crate::arch::{Arch, Suffix};
use crate::bytes::{Bytes, slice, text_at, u16_at, u32_at, u64_at};
use crate::error::Flaw;

/// The part of every header whose place is fixed.
pub const SMALLEST_HEADER: u32 = 64;
/// Identifier and options are paths and option lists; a header beyond this is not one.
const LARGEST_HEADER: u32 = 1 << 20;

/// The kind of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ImageKind {
    /// Text that the driver compiles (1).
    Ptx,
    /// Machine code in an ELF file (2).
    Cubin,
    /// NVVM code for linking (8), which `cuobjdump` calls nvvm.
    LtoIr,
    /// Several images compressed together (0x100), as `fatbinary --concat` of 13.5 writes them.
    Concatenated,
    /// A number without a known meaning.
    Unknown(u16),
}

impl ImageKind {
    fn from_number(number: u16) -> Self {
        match number {
            1 => Self::Ptx,
            2 => Self::Cubin,
            8 => Self::LtoIr,
            0x100 => Self::Concatenated,
            other => Self::Unknown(other),
        }
    }

    /// NVIDIA's prefix for this kind's architecture.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Ptx => "compute_",
            Self::LtoIr => "lto_",
            _ => "sm_",
        }
    }

    /// The ending of a file that holds only this.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Ptx => "ptx",
            Self::Cubin => "cubin",
            Self::LtoIr => "ltoir",
            Self::Concatenated | Self::Unknown(_) => "bin",
        }
    }
}

impl fmt::Display for ImageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ptx => f.pad("ptx"),
            Self::Cubin => f.pad("elf"),
            Self::LtoIr => f.pad("lto"),
            Self::Concatenated => f.pad("concat"),
            Self::Unknown(number) => f.pad(&format!("unknown kind {number:#x}")),
        }
    }
}

impl Serialize for ImageKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// How the stored bytes become the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// As they are, with zeros behind.
    None,
    /// One LZ4 block (flag 0x2000): CUDA 11 and 12.
    Lz4,
    /// One Zstandard frame (flag 0x8000): CUDA 13.
    Zstd,
    /// The scheme before LZ4 (flag 0x1000; from others' notes, never seen).
    Old,
    /// LTO-IR that is scrambled (flag 0x10000): only NVIDIA's linker reads it.
    Scrambled,
}

/// The flag word of an image header (offset 0x28).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct ImageFlags(pub u64);

impl ImageFlags {
    const A64: u64 = 0x1;
    const DEBUG: u64 = 0x2;
    const LINUX: u64 = 0x10;
    pub(crate) const OLD: u64 = 0x1000;
    pub(crate) const LZ4: u64 = 0x2000;
    pub(crate) const ZSTD: u64 = 0x8000;
    const SCRAMBLED: u64 = 0x1_0000;
    const EXACT: u64 = 0x10_0000;
    const FAMILY: u64 = 0x20_0000;
    const COMPAT: u64 = 0x100_0000;
    /// Host systems, one of which is set (Mac and Windows from others' notes).
    const HOSTS: u64 = 0xf0;
    const KNOWN: u64 = Self::A64
        | Self::DEBUG
        | Self::HOSTS
        | Self::OLD
        | Self::LZ4
        | Self::ZSTD
        | Self::SCRAMBLED
        | Self::EXACT
        | Self::FAMILY
        | Self::COMPAT;

    /// The compression of the payload.
    pub fn method(self) -> Method {
        match self.0 {
            f if f & Self::SCRAMBLED != 0 => Method::Scrambled,
            f if f & Self::ZSTD != 0 => Method::Zstd,
            f if f & Self::LZ4 != 0 => Method::Lz4,
            f if f & Self::OLD != 0 => Method::Old,
            _ => Method::None,
        }
    }

    /// The letter after the architecture.
    pub fn suffix(self) -> Suffix {
        match self.0 {
            f if f & Self::EXACT != 0 => Suffix::Exact,
            f if f & Self::FAMILY != 0 => Suffix::Family,
            _ => Suffix::None,
        }
    }

    /// Made with `-G`.
    pub fn is_debug(self) -> bool {
        self.0 & Self::DEBUG != 0
    }

    /// Whether the header ends with a copy of the cubin's compatibility section, and not with options.
    pub fn has_compatibility_record(self) -> bool {
        self.0 & Self::COMPAT != 0
    }

    /// The flags in words. Flags without a known meaning are shown as a number.
    pub fn words(self) -> Vec<String> {
        let known = [
            (Self::A64, "64-bit"),
            (Self::DEBUG, "debug"),
            (Self::LINUX, "linux"),
            (0x20, "mac"),
            (0x40, "windows"),
            (Self::SCRAMBLED, "scrambled"),
            (Self::COMPAT, "compat"),
        ];
        let mut words: Vec<String> = known
            .iter()
            .filter(|(bit, _)| self.0 & bit != 0)
            .map(|(_, word)| (*word).to_owned())
            .collect();
        let unknown = self.0 & !Self::KNOWN;
        if unknown != 0 {
            words.push(format!("unknown {unknown:#x}"));
        }
        words
    }
}

/// The place of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImagePlace {
    /// Bytes from the start of the file (of the member, in a wheel) to the image's header.
    pub offset: u64,
    /// For a part of a concatenated image: which part.
    pub part: Option<u32>,
}

/// One image, with its header understood and its payload untouched.
#[derive(Debug, Clone)]
pub struct Image<'a> {
    /// The kind of its content.
    pub kind: ImageKind,
    /// The architecture that it was compiled for.
    pub arch: Arch,
    /// PTX ISA version, or the version of the ELF or NVVM encoding: major, minor. `None` for a
    /// stand-alone cubin, which has no header.
    pub code_version: Option<(u16, u16)>,
    /// The flag word; zero for a stand-alone cubin.
    pub flags: ImageFlags,
    /// The source's path as nvcc was given it (only with `-G` or `-lineinfo`).
    pub identifier: Option<String>,
    /// `ptxas` or NVVM options.
    pub options: Option<String>,
    /// Header, in bytes; 0 for a stand-alone cubin.
    pub header_size: u32,
    /// The size of the image in the file without its header, with padding, in bytes. For a part of a concatenated
    /// image: its size in the decompressed whole.
    pub stored_size: u64,
    /// Exact size of the compressed bytes; 0 when they are not compressed.
    pub compressed_size: u32,
    /// Size after decompression as the header says it; 0 when the bytes are not compressed.
    pub uncompressed_size: u64,
    /// Its place.
    pub place: ImagePlace,
    /// The payload as it is stored.
    pub stored: Bytes<'a>,
}

impl<'a> Image<'a> {
    /// Reads the image whose header begins at `at` in `region`, which begins at `base` in the file.
    ///
    /// # Errors The header is invalid, or the region ends before the image.
    pub fn read(region: &'a [u8], at: usize, base: u64) -> Result<Self, Flaw> {
        let rest = region.get(at..).unwrap_or_default();
        let header_size = u32_at(rest, 4).ok_or(Flaw::Truncated)?;
        if !(SMALLEST_HEADER..=LARGEST_HEADER).contains(&header_size) || header_size % 8 != 0 {
            return Err(Flaw::HeaderSize(header_size));
        }
        let header = slice(rest, 0, header_size.into()).ok_or(Flaw::Truncated)?;
        let stored_size = u64_at(header, 8).ok_or(Flaw::Truncated)?;
        let stored = slice(rest, header_size.into(), stored_size).ok_or(Flaw::Truncated)?;
        let place = ImagePlace {
            offset: base + at as u64,
            part: None,
        };
        Self::from_header(header, Bytes::Mapped(stored), place).ok_or(Flaw::Truncated)
    }

    /// Reads the fields that a header and a sub-header of a concatenated image share.
    pub(crate) fn from_header(header: &[u8], stored: Bytes<'a>, place: ImagePlace) -> Option<Self> {
        let flags = ImageFlags(u64_at(header, 0x28)?);
        let kind = ImageKind::from_number(u16_at(header, 0)?);
        let compressed_size = u32_at(header, 0x10)?;
        Some(Self {
            kind,
            arch: Arch {
                number: u32_at(header, 0x1c)?,
                suffix: flags.suffix(),
            },
            code_version: Some((u16_at(header, 0x1a)?, u16_at(header, 0x18)?)),
            flags,
            identifier: identifier(header),
            options: options(header, kind, flags),
            header_size: u32::try_from(header.len()).ok()?,
            stored_size: stored.get().len() as u64,
            compressed_size,
            uncompressed_size: u64_at(header, 0x38)?,
            place,
            stored,
        })
    }

    /// `sm_90a`, `compute_90`, `lto_100`.
    pub fn target(&self) -> String {
        format!("{}{}", self.kind.prefix(), self.arch)
    }

    /// The size of header and payload in the file, in bytes. It is 0 for a part of a concatenated image.
    pub fn cost(&self) -> u64 {
        match self.place.part {
            Some(_) => 0,
            None => u64::from(self.header_size) + self.stored_size,
        }
    }

    /// The compression of the payload.
    pub fn method(&self) -> Method {
        self.flags.method()
    }
}

/// The name as NVIDIA stores it: an offset and a length, zero where there is none.
fn identifier(header: &[u8]) -> Option<String> {
    let at = u32_at(header, 0x20)?;
    let length = u32_at(header, 0x24)?;
    if at == 0 || length == 0 {
        return None;
    }
    let bytes = slice(header, at.into(), length.into())?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// The options' text. Where it lies outside the header (CUDA 11.7 points just behind it, with
/// length zero) there is none.
fn options(header: &[u8], kind: ImageKind, flags: ImageFlags) -> Option<String> {
    // In this case the bytes are a binary record about compatibility, and a table.
    if flags.has_compatibility_record() || kind == ImageKind::Concatenated {
        return None;
    }
    let record = u32_at(header, 0x14).filter(|at| *at != 0)?;
    let at = u32_at(header, record as usize)?;
    let length = u32_at(header, (record as usize).checked_add(4)?)?;
    let bytes = slice(header, at.into(), length.into())?;
    let text = text_at(bytes, 0).into_owned();
    (!text.is_empty()).then_some(text)
}
