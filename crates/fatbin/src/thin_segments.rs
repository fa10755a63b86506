//! A program's segments, with holes where pages were cut out of the file.

use std::ops::Range;

use object::LittleEndian;
use object::elf::{PT_LOAD, ProgramHeader64};
use object::read::elf::ProgramHeader;

use crate::bytes::put_u64;

const E: LittleEndian = LittleEndian;

/// Bytes of a program header.
pub(crate) const SEGMENT: u64 = 56;

/// A segment as numbers, in the order of its fields after the type and the flags.
#[derive(Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    pub(crate) offset: u64,
    pub(crate) address: u64,
    pub(crate) physical: u64,
    pub(crate) in_file: u64,
    pub(crate) in_memory: u64,
    pub(crate) align: u64,
}

/// Takes a hole out of the loaded segment it is in.
pub(crate) fn split(segments: &mut Vec<Segment>, hole: &Range<u64>) -> Result<(), String> {
    let touched: Vec<usize> = (0..segments.len())
        .filter(|index| {
            let s = &segments[*index];
            s.offset < hole.end && s.offset.saturating_add(s.in_file) > hole.start
        })
        .collect();
    let [index] = touched[..] else {
        return Err("more than one segment covers them".to_owned());
    };
    let whole = segments[index];
    let ends = whole.offset + whole.in_file;
    if whole.kind != PT_LOAD.0 || whole.offset >= hole.start || ends < hole.end {
        return Err("they are not inside of one loaded segment".to_owned());
    }
    let skipped = hole.end - whole.offset;
    segments[index].in_file = hole.start - whole.offset;
    segments[index].in_memory = hole.start - whole.offset;
    if whole.in_memory > skipped {
        let rest = Segment {
            offset: hole.end,
            address: whole.address + skipped,
            physical: whole.physical + skipped,
            in_file: whole.in_file - skipped,
            in_memory: whole.in_memory - skipped,
            ..whole
        };
        segments.insert(index + 1, rest);
    }
    Ok(())
}

impl Segment {
    pub(crate) fn read(header: &ProgramHeader64<LittleEndian>) -> Self {
        Self {
            kind: header.p_type(E).0,
            flags: header.p_flags(E).0,
            offset: header.p_offset(E),
            address: header.p_vaddr(E),
            physical: header.p_paddr(E),
            in_file: header.p_filesz(E),
            in_memory: header.p_memsz(E),
            align: header.p_align(E),
        }
    }

    pub(crate) fn is_sane(&self, file: u64) -> bool {
        let fits = |from: u64, length: u64, end: u64| {
            from.checked_add(length).is_some_and(|sum| sum <= end)
        };
        // A linker's notes may state anything about memory, but not about the file.
        let loaded = self.kind != PT_LOAD.0 || self.in_memory >= self.in_file;
        fits(self.offset, self.in_file, file)
            && fits(self.address, self.in_memory, u64::MAX)
            && fits(self.physical, self.in_memory, u64::MAX)
            && loaded
    }

    pub(crate) fn write(&self, bytes: &mut [u8], at: u64) {
        let words = [
            u64::from(self.kind) | u64::from(self.flags) << 32,
            self.offset,
            self.address,
            self.physical,
            self.in_file,
            self.in_memory,
            self.align,
        ];
        for (word, index) in words.iter().zip(0_u64..) {
            put_u64(bytes, (at + index * 8) as usize, *word);
        }
    }
}
