//! Puts smaller containers back into an ELF file, and makes the file smaller.
//!
//! The kept containers of a section are moved to its start, where everything that points at them is
//! known; else each stays where it begins. Behind them:
//!
//! - in an object file, the rest of the section is cut out and what follows moves up;
//! - in a program or library, no address may change. Whole pages are cut out of the file and their
//!   addresses out of the loaded segment, which becomes two. The larger table of segments that this
//!   needs has its place in the space that became free.
//!
//! If that is not possible, the bytes stay as zeros, and a note gives the reason.

use std::ops::Range;

use object::LittleEndian;
use object::elf::{ET_REL, FileHeader64, PT_INTERP, PT_LOAD, PT_PHDR, SHT_NOBITS};
use object::read::elf::{FileHeader, SectionHeader};

use crate::bytes::{put_u16, put_u64};
use crate::cubin::ElfHeader;
use crate::rewritten::Rewritten;
use crate::thin_pointers::Pointers;
use crate::thin_sections::{self, Packed, fill};
use crate::thin_segments::{SEGMENT, Segment, split};

const E: LittleEndian = LittleEndian;
/// Offsets in the ELF header, a section header and a program header.
const E_PHOFF: usize = 0x20;
const E_SHOFF: usize = 0x28;
const E_PHNUM: usize = 0x38;
const SH_OFFSET: u64 = 0x18;
const SH_SIZE: u64 = 0x20;
/// The largest page a kernel of the machine may have: a segment's place in the file and in memory
/// must agree up to it.
const PAGES: [(u16, u64); 2] = [(62, 4 << 10), (183, 64 << 10)];

/// The new file.
#[derive(Debug)]
pub struct Placed {
    pub bytes: Vec<u8>,
    /// Bytes without use that had to stay.
    pub zeroed: u64,
    pub notes: Vec<String>,
}

/// Puts the containers into `file`.
pub fn place(file: &[u8], containers: &[Rewritten]) -> Result<Placed, String> {
    let header = FileHeader64::<LittleEndian>::parse(file).map_err(|e| e.to_string())?;
    thin_sections::not_overlapping(file, header)?;
    let mut bytes = file.to_vec();
    let mut notes = Vec::new();
    let linked = header.e_type(E) != ET_REL;
    let pointers = if linked { Pointers::read(file) } else { None };
    let packed = thin_sections::pack(
        file,
        header,
        containers,
        pointers.as_ref(),
        &mut bytes,
        &mut notes,
    )?;
    thin_sections::alone(file, header, &packed)?;
    let freed: u64 = packed.iter().map(|p| p.range.end - p.used).sum();
    for section in &packed {
        fill(&mut bytes, section.used..section.range.end);
    }
    let holes = match linked {
        true => cut_segments(file, header, &packed, &mut bytes),
        false => Ok(cut_sections(file, header, &packed)),
    };
    let holes = holes.unwrap_or_else(|why| {
        notes.push(format!("the unused bytes stay, as zeros: {why}"));
        Vec::new()
    });
    if !holes.is_empty() {
        shift_sections(file, header, &packed, &holes, &mut bytes)?;
    }
    let cut: u64 = holes.iter().map(|hole| hole.end - hole.start).sum();
    let mut out = Vec::with_capacity(bytes.len());
    let mut from = 0;
    for hole in &holes {
        out.extend_from_slice(&bytes[from..hole.start as usize]);
        from = hole.end as usize;
    }
    out.extend_from_slice(&bytes[from..]);
    Ok(Placed {
        bytes: out,
        zeroed: freed.saturating_sub(cut),
        notes,
    })
}

/// The holes of an object file: any multiple of what the following sections align to.
fn cut_sections(file: &[u8], header: &ElfHeader, packed: &[Packed]) -> Vec<Range<u64>> {
    let sections = header.section_headers(E, file).unwrap_or_default();
    let align = sections.iter().map(|s| s.sh_addralign(E)).max();
    let align = align.unwrap_or(1).max(16);
    let holes = packed.iter().map(|p| {
        let length = (p.range.end - p.used) / align * align;
        p.range.end - length..p.range.end
    });
    holes.filter(|hole| !hole.is_empty()).collect()
}

/// The holes of a linked file; writes its new table of segments.
fn cut_segments(
    file: &[u8],
    header: &ElfHeader,
    packed: &[Packed],
    bytes: &mut [u8],
) -> Result<Vec<Range<u64>>, String> {
    let machine = header.e_machine(E).0;
    let page = PAGES.iter().find(|(known, _)| *known == machine);
    let page = page
        .map(|(_, page)| *page)
        .ok_or("the machine is not known")?;
    let sections = header.section_headers(E, file).map_err(|e| e.to_string())?;
    if sections
        .iter()
        .any(|s| s.sh_addr(E) != 0 && s.sh_addralign(E) > page)
    {
        return Err("a section is aligned to more than a page".to_owned());
    }
    let old = header.program_headers(E, file).map_err(|e| e.to_string())?;
    let mut segments: Vec<Segment> = old.iter().map(Segment::read).collect();
    if !segments.iter().all(|s| s.is_sane(file.len() as u64)) {
        return Err("a segment lies outside of the file or of the memory".to_owned());
    }
    let is_program = segments.iter().any(|s| s.kind == PT_INTERP.0);
    let mut holes: Vec<Range<u64>> = Vec::new();
    let mut table = None;
    // Each hole makes one segment more.
    let table_size = (segments.len() + packed.len()) as u64 * SEGMENT;
    for section in packed {
        let room = if table.is_none() { table_size } else { 0 };
        let start = (section.used + room).next_multiple_of(page);
        let end = section.range.end / page * page;
        if start >= end {
            continue;
        }
        split(&mut segments, &(start..end))?;
        if table.is_none() {
            table = Some(section.used);
        }
        holes.push(start..end);
    }
    let Some(table) = table else {
        return Ok(holes);
    };
    let load = |s: &&Segment| s.kind == PT_LOAD.0;
    let first = segments.iter().find(load).ok_or("no loaded segment")?;
    let holder = segments
        .iter()
        .filter(load)
        .find(|s| (s.offset..s.offset + s.in_file).contains(&table))
        .ok_or("the table of segments would not be loaded")?;
    let table_address = holder.address + (table - holder.offset);
    // Linux before 5.18 tells a program so where its table is.
    if is_program && table_address.wrapping_sub(table) != first.address.wrapping_sub(first.offset) {
        return Err("a program whose table of segments cannot be moved".to_owned());
    }
    let count = u16::try_from(segments.len()).map_err(|e| e.to_string())?;
    for segment in &mut segments {
        if segment.kind == PT_PHDR.0 {
            segment.offset = table;
            segment.address = table_address;
            segment.physical = table_address;
            segment.in_file = u64::from(count) * SEGMENT;
            segment.in_memory = segment.in_file;
        }
        if segment.kind == PT_LOAD.0 {
            // Larger alignments only helped huge pages, and the holes are no multiple of them.
            segment.align = segment.align.min(page);
        }
        segment.offset = moved(segment.offset, &holes);
    }
    for (segment, index) in segments.iter().zip(0_u64..) {
        segment.write(bytes, table + index * SEGMENT);
    }
    put_u64(bytes, E_PHOFF, table);
    put_u16(bytes, E_PHNUM, count);
    Ok(holes)
}

/// Where an offset of the old file is in the new one.
fn moved(offset: u64, holes: &[Range<u64>]) -> u64 {
    let before = holes.iter().filter(|hole| hole.end <= offset);
    offset - before.map(|hole| hole.end - hole.start).sum::<u64>()
}

/// Corrects the table of sections, and where it is.
fn shift_sections(
    file: &[u8],
    header: &ElfHeader,
    packed: &[Packed],
    holes: &[Range<u64>],
    bytes: &mut [u8],
) -> Result<(), String> {
    let sections = header.section_headers(E, file).map_err(|e| e.to_string())?;
    let size = u64::from(header.e_shentsize(E));
    for (section, index) in sections.iter().zip(0_u64..) {
        let at = header.e_shoff(E) + index * size;
        let offset = section.sh_offset(E);
        let spans = |hole: &&Range<u64>| {
            section.sh_type(E) != SHT_NOBITS
                && offset < hole.start
                && offset.saturating_add(section.sh_size(E)) > hole.start
        };
        if let Some(own) = packed.iter().find(|p| p.header_at == at) {
            put_u64(bytes, (at + SH_SIZE) as usize, own.used - own.range.start);
        } else if holes.iter().any(|hole| spans(&hole)) {
            return Err("two sections overlap".to_owned());
        }
        put_u64(bytes, (at + SH_OFFSET) as usize, moved(offset, holes));
    }
    put_u64(bytes, E_SHOFF, moved(header.e_shoff(E), holes));
    Ok(())
}

#[cfg(test)]
#[path = "thin_elf_tests.rs"]
mod tests;
