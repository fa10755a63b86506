//! Puts smaller containers back into the sections of an ELF file, and checks that nothing else is in the way.

use std::collections::HashSet;
use std::ops::Range;

use object::LittleEndian;
use object::elf::SHT_NULL;
use object::read::elf::{FileHeader, SectionHeader};

use crate::bytes::put_u64;
use crate::container::Section;
use crate::cubin::ElfHeader;
use crate::names::SectionNames;
use crate::rewritten::Rewritten;
use crate::thin_pointers::Pointers;
use crate::work;

const E: LittleEndian = LittleEndian;
/// The advice for a file whose sections are not valid.
const ANEW: &str = "link the file again, or keep it as it is";
/// Sections of fat binaries that a file may have: a linker makes one of each kind.
const MOST_SECTIONS: usize = 64;

/// A section of containers, after they were put together.
pub struct Packed {
    /// Of the section header, in the file.
    pub header_at: u64,
    /// The whole section, in the file.
    pub range: Range<u64>,
    /// Where what is used ends, in the file.
    pub used: u64,
}

/// A section of containers in the old file.
struct Place<'a> {
    index: u64,
    name: &'a str,
    /// The whole section, in the file.
    range: Range<u64>,
    /// Where its first byte is loaded.
    address: u64,
}

impl Place<'_> {
    /// Where the byte at an offset of the file is loaded.
    fn address(&self, offset: u64) -> u64 {
        self.address.wrapping_add(offset - self.range.start)
    }
}

/// Each section may be read: together they hold no more than there is, and some small ones that share.
pub fn not_overlapping(file: &[u8], header: &ElfHeader) -> Result<(), String> {
    let sections = header.section_headers(E, file).map_err(|e| e.to_string())?;
    let sizes = sections.iter().filter_map(|s| Some(s.file_range(E)?.1));
    match sizes.fold(0, u64::saturating_add) > 2 * file.len() as u64 {
        true => Err(format!("its sections overlap; {ANEW}")),
        false => Ok(()),
    }
}

/// Fills a part of the file with zeros.
pub fn fill(bytes: &mut [u8], range: Range<u64>) {
    if let Some(part) = bytes.get_mut(range.start as usize..range.end as usize) {
        part.fill(0);
    }
}

/// Moves the containers of each section together, and corrects what points at them.
pub fn pack(
    file: &[u8],
    header: &ElfHeader,
    containers: &[Rewritten],
    pointers: Option<&Pointers>,
    bytes: &mut [u8],
    notes: &mut Vec<String>,
) -> Result<Vec<Packed>, String> {
    let sections = header.sections(E, file).map_err(|e| e.to_string())?;
    let size = u64::from(header.e_shentsize(E));
    let mut packed = Vec::new();
    let names = SectionNames::new(header, &sections, file);
    for (section, index) in sections.iter().zip(0_u64..) {
        work::count(1);
        let wanted = [Section::Loaded, Section::Relocatable];
        let Some(wanted) = wanted
            .into_iter()
            .find(|w| names.is(section, w.name().as_bytes()))
        else {
            continue;
        };
        let Some((from, length)) = section.file_range(E) else {
            continue;
        };
        if packed.len() >= MOST_SECTIONS {
            return Err(format!(
                "more than {MOST_SECTIONS} sections of fat binaries; {ANEW}"
            ));
        }
        work::count(containers.len());
        let end = from
            .checked_add(length)
            .filter(|end| *end <= file.len() as u64);
        let range = from..end.ok_or("a section ends behind the file")?;
        let inside = |c: &&Rewritten| c.section == wanted && range.contains(&c.offset);
        let mine: Vec<&Rewritten> = containers.iter().filter(inside).collect();
        if mine.is_empty() {
            continue;
        }
        let here = Place {
            index,
            name: wanted.name(),
            range: range.clone(),
            address: section.sh_addr(E),
        };
        let used = pack_section(&here, &mine, pointers, bytes, notes)?;
        packed.push(Packed {
            header_at: header.e_shoff(E) + index * size,
            range,
            used,
        });
    }
    packed.sort_by_key(|p| p.range.start);
    Ok(packed)
}

/// Moves the containers of a section together, and corrects what points at them. Returns where the last one ends, in the
/// file.
fn pack_section(
    here: &Place<'_>,
    containers: &[&Rewritten],
    pointers: Option<&Pointers>,
    bytes: &mut [u8],
    notes: &mut Vec<String>,
) -> Result<u64, String> {
    let Place {
        index, name, range, ..
    } = here;
    let starts: HashSet<u64> = containers.iter().map(|c| here.address(c.offset)).collect();
    let addresses = here.address..here.address(range.end);
    let movable = pointers.filter(|p| p.are_all_at(addresses.clone(), &starts));
    if movable.is_none() && containers.len() > 1 {
        notes.push(format!(
            "{name}: its containers keep their places, as not all that points at them is known"
        ));
    }
    let mut cursor = range.start;
    for container in containers {
        let wrappers = movable.and_then(|p| p.at(here.address(container.offset)));
        // Without a wrapper it is not known what points at it, so it is not moved.
        let start = match wrappers {
            Some(_) => cursor,
            None => container.offset,
        };
        let end = start + container.bytes.len() as u64;
        if start < cursor || end > range.end {
            return Err(format!(
                "the containers of section {index} ({name}) overlap or do not fit into it; {ANEW}"
            ));
        }
        // The bytes in between belonged to a container, of which the rest may still be there.
        fill(bytes, cursor..start);
        let place = bytes.get_mut(start as usize..end as usize);
        place
            .ok_or("a container lies outside of its section")?
            .copy_from_slice(&container.bytes);
        for place in wrappers.unwrap_or_default() {
            put_u64(bytes, *place as usize, here.address(start));
        }
        cursor = end;
    }
    Ok(cursor)
}

/// Whether nothing else lies where containers were put together: it would have been overwritten.
pub fn alone(file: &[u8], header: &ElfHeader, packed: &[Packed]) -> Result<(), String> {
    let sections = header.section_headers(E, file).map_err(|e| e.to_string())?;
    let size = u64::from(header.e_shentsize(E));
    let mut ranges: Vec<(Range<u64>, u64, bool)> = Vec::new();
    for (section, index) in sections.iter().zip(0_u64..) {
        let range = section.file_range(E).filter(|(_, length)| *length > 0);
        let Some((from, length)) = range.filter(|_| section.sh_type(E) != SHT_NULL) else {
            continue;
        };
        let at = header.e_shoff(E) + index * size;
        let is_packed = packed.iter().any(|p| p.header_at == at);
        ranges.push((from..from.saturating_add(length), index, is_packed));
    }
    ranges.sort_by_key(|(range, ..)| range.start);
    // In this order each needs to be compared only with the one that reaches furthest.
    let mut furthest: Option<&(Range<u64>, u64, bool)> = None;
    for here in &ranges {
        if let Some(before) = furthest
            && here.0.start < before.0.end
            && (here.2 || before.2)
        {
            let (one, other) = (before.1, here.1);
            return Err(format!(
                "sections {one} and {other} overlap, and there are fat binaries in one of them; {ANEW}"
            ));
        }
        if furthest.is_none_or(|before| before.0.end < here.0.end) {
            furthest = Some(here);
        }
    }
    Ok(())
}
