//! Recognises the files that contain fat binaries, and finds the parts that contain them.

use std::collections::BTreeMap;
use std::ops::Range;

use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use serde::Serialize;

use crate::ar;
use crate::bytes::Bytes;
use crate::bytes::{u16_at, u32_at};
use crate::container::{Container, FoundImages, MAGIC, Region, Section};
use crate::cubin::{self, Cubin};
use crate::error::{Flaw, ReadLimits};
use crate::host_pe;
use crate::image::{Image, ImageFlags, ImageKind, ImagePlace};
use crate::names::SectionNames;

const E: LittleEndian = LittleEndian;
/// The offset of the machine in an ELF header, the same in both classes.
const MACHINE_AT: usize = 18;

/// The format of a file, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Object, executable or shared library for a CPU.
    Elf,
    /// A static library.
    Archive,
    /// Fat binaries and nothing else.
    Fatbin,
    /// Machine code for a GPU.
    Cubin,
    /// A Python wheel, or another zip file.
    Wheel,
    /// macOS: recognised, not read.
    MachO,
    /// A program or DLL for Windows: read, not rewritten.
    Pe,
}

impl Format {
    /// The format of a file with these first bytes; `None` if it cannot contain a known fat binary.
    pub fn detect(data: &[u8]) -> Option<Self> {
        match data {
            [0x7f, b'E', b'L', b'F', ..] => match u16_at(data, MACHINE_AT) {
                Some(cubin::MACHINE) => Some(Self::Cubin),
                _ => Some(Self::Elf),
            },
            [b'!', b'<', b'a', b'r', b'c', b'h', b'>', b'\n', ..]
            | [b'!', b'<', b't', b'h', b'i', b'n', b'>', b'\n', ..] => Some(Self::Archive),
            [b'P', b'K', 3 | 5, 4 | 6, ..] => Some(Self::Wheel),
            [b'M', b'Z', ..] => Some(Self::Pe),
            [0xcf | 0xce, 0xfa, 0xed, 0xfe, ..]
            | [0xfe, 0xed, 0xfa, 0xcf | 0xce, ..]
            | [0xca, 0xfe, 0xba, 0xbe | 0xbf, ..] => Some(Self::MachO),
            _ if u32_at(data, 0) == Some(MAGIC) => Some(Self::Fatbin),
            _ => None,
        }
    }
}

/// Reads a file of any format except wheels.
pub fn read<'a>(data: &'a [u8], format: Format, limits: &ReadLimits) -> FoundImages<'a> {
    let mut found = FoundImages::default();
    match format {
        Format::Elf => elf(data, 0, None, limits, &mut found),
        Format::Archive => archive(data, limits, &mut found),
        Format::Fatbin => {
            let region = Region {
                bytes: data,
                base: 0,
                section: Section::WholeFile,
                member: None,
                linked: false,
            };
            found.walk(region, limits);
        }
        Format::Cubin => stand_alone(data, 0, None, &mut found),
        Format::Wheel => found.problem(None, 0, Flaw::NotSupported("a wheel inside a wheel")),
        Format::MachO => found.problem(None, 0, Flaw::NotSupported("a Mach-O file (macOS)")),
        Format::Pe => walk_all(pieces_of_pe(data), 0, None, limits, &mut found),
    }
    found
}

fn elf<'a>(
    data: &'a [u8],
    base: u64,
    member: Option<&str>,
    limits: &ReadLimits,
    found: &mut FoundImages<'a>,
) {
    walk_all(regions(data), base, member, limits, found);
}

/// Walks the sections of a host file that begins at `base`.
fn walk_all<'a>(
    regions: Result<(bool, Vec<Piece<'a>>), Flaw>,
    base: u64,
    member: Option<&str>,
    limits: &ReadLimits,
    found: &mut FoundImages<'a>,
) {
    let (linked, regions) = match regions {
        Ok(found) => found,
        Err(flaw) => return found.problem(member, base, flaw),
    };
    for (section, from, bytes) in regions {
        match bytes {
            Ok(bytes) => found.walk(
                Region {
                    bytes,
                    base: base + from,
                    section,
                    member,
                    linked,
                },
                limits,
            ),
            Err(flaw) => found.problem(member, base.saturating_add(from), flaw),
        }
    }
}

type Piece<'a> = (Section, u64, Result<&'a [u8], Flaw>);

/// Whether the file is linked, and the sections with fat binaries, those that are loaded first;
/// where the file ends within one, the part that is there. No byte is given twice.
fn regions(data: &[u8]) -> Result<(bool, Vec<Piece<'_>>), Flaw> {
    let wrong = |error: object::Error| Flaw::Host(error.to_string());
    if data.get(4) == Some(&1) {
        return Err(Flaw::NotSupported("a 32-bit ELF file"));
    }
    if data.get(5) == Some(&2) {
        return Err(Flaw::NotSupported("a big-endian ELF file"));
    }
    let header = FileHeader64::<LittleEndian>::parse(data).map_err(wrong)?;
    let sections = header.sections(E, data).map_err(wrong)?;
    let names = SectionNames::new(header, &sections, data);
    let mut pieces = Vec::new();
    let mut taken = BTreeMap::new();
    for wanted in [Section::Loaded, Section::Relocatable] {
        for (index, section) in sections.iter().enumerate() {
            if !names.is(section, wanted.name().as_bytes()) {
                continue;
            }
            let Some((from, size)) = section.file_range(E) else {
                continue;
            };
            pieces.extend(piece(data, wanted, index, (from, size), &mut taken));
        }
    }
    Ok((header.e_type(E) != object::elf::ET_REL, pieces))
}

/// The same for a program or DLL for Windows, which is always linked.
fn pieces_of_pe(data: &[u8]) -> Result<(bool, Vec<Piece<'_>>), Flaw> {
    let mut taken = BTreeMap::new();
    let sections = host_pe::sections(data)?.into_iter().enumerate();
    let pieces = sections.filter_map(|(index, (wanted, from, size))| {
        piece(data, wanted, index, (from, size), &mut taken)
    });
    Ok((true, pieces.collect()))
}

/// The bytes of one section; `None` where it has none.
fn piece<'a>(
    data: &'a [u8],
    wanted: Section,
    index: usize,
    (from, size): (u64, u64),
    taken: &mut BTreeMap<u64, u64>,
) -> Option<Piece<'a>> {
    let rest = usize::try_from(from).ok().and_then(|from| data.get(from..));
    let all = usize::try_from(size).ok().zip(rest);
    let bytes = match all.map(|(size, rest)| &rest[..size.min(rest.len())]) {
        Some([]) if size == 0 => return None,
        Some([]) | None => Err(Flaw::Truncated),
        Some(bytes) if !take(taken, from..from + bytes.len() as u64) => {
            let name = wanted.name();
            Err(Flaw::Host(format!(
                "section {index} ({name}) overlaps another section of fat binaries, and is skipped; link the file again"
            )))
        }
        Some(bytes) => Ok(bytes),
    };
    Some((wanted, from, bytes))
}

/// Adds a range to the list of used ranges, sorted by start, if it overlaps none of them.
fn take(taken: &mut BTreeMap<u64, u64>, range: Range<u64>) -> bool {
    // They do not overlap, so the last range that begins before its end also ends last.
    let before = taken.range(..range.end).next_back();
    let free = before.is_none_or(|(_, end)| *end <= range.start);
    if free {
        taken.insert(range.start, range.end);
    }
    free
}

fn archive<'a>(data: &'a [u8], limits: &ReadLimits, found: &mut FoundImages<'a>) {
    if data.starts_with(b"!<thin>") {
        return found.problem(None, 0, Flaw::NotSupported("a thin archive"));
    }
    let members = match ar::members(data) {
        Ok(members) => members,
        Err(why) => return found.problem(None, 0, Flaw::Host(why)),
    };
    for member in members {
        // After an error there are no more.
        let member = match member {
            Ok(member) => member,
            Err(why) => return found.problem(None, 0, Flaw::Host(why)),
        };
        if member.used != ar::Use::File {
            continue;
        }
        let (bytes, at) = (member.data, member.data_at as u64);
        let name = Some(member.name.as_str());
        match Format::detect(bytes) {
            Some(Format::Elf) => elf(bytes, at, name, limits, found),
            Some(Format::Cubin) => stand_alone(bytes, at, name, found),
            Some(Format::Fatbin) => found.walk(
                Region {
                    bytes,
                    base: at,
                    section: Section::WholeFile,
                    member: name,
                    linked: false,
                },
                limits,
            ),
            _ => {}
        }
    }
}

/// A cubin without a container. Its own header has the facts that a container's image header would have.
fn stand_alone<'a>(data: &'a [u8], base: u64, member: Option<&str>, found: &mut FoundImages<'a>) {
    let cubin = match Cubin::parse(data) {
        Ok(cubin) => cubin,
        Err(flaw) => return found.problem(member, base, flaw),
    };
    let image = Image {
        kind: ImageKind::Cubin,
        arch: cubin.arch(),
        code_version: None,
        flags: ImageFlags::default(),
        identifier: None,
        options: None,
        header_size: 0,
        stored_size: data.len() as u64,
        compressed_size: 0,
        uncompressed_size: 0,
        place: ImagePlace {
            offset: base,
            part: None,
        },
        stored: Bytes::Mapped(data),
    };
    found.containers.push(Container {
        member: member.map(str::to_owned),
        section: Section::Cubin,
        offset: base,
        size: data.len() as u64,
        images: vec![image],
        linked: true,
        bundles: Vec::new(),
    });
}
