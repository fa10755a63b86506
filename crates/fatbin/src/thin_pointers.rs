//! Finds the pointers of a linked file to its fat binaries: the wrappers that the CUDA runtime registers.
//!
//! A container may be moved only when everything that points into its section is such a wrapper. In the output of nvcc
//! and clang, code points at wrappers, never at containers.

use std::collections::{HashMap, HashSet};

use object::LittleEndian;
use object::elf::{FileHeader64, Rela64, SHT_NOBITS, SHT_RELA, SectionHeader64, SectionType};
use object::read::elf::{FileHeader, Rela, SectionHeader};

use crate::bytes::{slice, u64_at};
use crate::names::SectionNames;
use crate::work;

const E: LittleEndian = LittleEndian;
/// Bytes of a wrapper, and where its pointer is.
const WRAPPER: u64 = 24;
const POINTER: u64 = 8;
const SHT_RELR: SectionType = SectionType(19);
/// The relocation that adds nothing but the file's base address, by machine.
const RELATIVE: [(u16, u32); 2] = [(62, 8), (183, 1027)];

/// A file's relocations and wrappers.
#[derive(Debug)]
pub struct Pointers {
    /// By target address: the places in the file that hold the address, for every wrapper.
    wrappers: HashMap<u64, Vec<u64>>,
    /// The targets of all other addresses that a loader adjusts.
    others: Vec<u64>,
}

/// The source of the address at a place.
enum Origin {
    /// An addend in the relocation table, at this place in the file.
    Addend(u64),
    /// A symbol, or something else that is not followed.
    Other,
}

impl Pointers {
    /// Reads a file's relocations and wrappers; `None` when the machine's relocations are not known.
    pub fn read(file: &[u8]) -> Option<Self> {
        let header = FileHeader64::<LittleEndian>::parse(file).ok()?;
        let machine = header.e_machine(E).0;
        let (_, relative) = RELATIVE.iter().find(|(known, _)| *known == machine)?;
        let sections = header.sections(E, file).ok()?;
        let mut origins = HashMap::new();
        let mut targets = HashMap::new();
        let mut packed = Vec::new();
        for section in sections.iter() {
            match section.sh_type(E) {
                SHT_RELA => {
                    let from = section.sh_offset(E);
                    let entries: &[Rela64<LittleEndian>] =
                        section.data_as_array(E, file).unwrap_or_default();
                    for (entry, index) in entries.iter().zip(0_u64..) {
                        let place = entry.r_offset(E);
                        if entry.r_type(E, false).0 == *relative {
                            // Offset, information, addend: eight bytes each.
                            origins.insert(place, Origin::Addend(from + index * 24 + 16));
                            targets.insert(place, entry.r_addend(E).cast_unsigned());
                        } else {
                            origins.insert(place, Origin::Other);
                        }
                    }
                }
                SHT_RELR => {
                    packed.extend(unpack(section.data(E, file).unwrap_or_default()));
                }
                _ => {}
            }
        }
        let places = Places::new(sections.iter());
        let at = |address: u64| places.file_offset(address);
        for place in packed {
            let value = at(place).and_then(|offset| u64_at(file, usize::try_from(offset).ok()?));
            targets.insert(place, value?);
        }
        let mut wrappers: HashMap<u64, Vec<u64>> = HashMap::new();
        let names = SectionNames::new(header, &sections, file);
        let wrapping = sections.iter().find(|s| names.is(*s, b".nvFatBinSegment"));
        if let Some(section) = wrapping {
            let (address, from) = (section.sh_addr(E), section.sh_offset(E));
            let bytes = slice(file, from, section.sh_size(E))?;
            for index in 0..bytes.len() as u64 / WRAPPER {
                let inside = index * WRAPPER + POINTER;
                let place = address.wrapping_add(inside);
                let here = u64_at(bytes, usize::try_from(inside).ok()?)?;
                let (target, mut places) = match origins.get(&place) {
                    Some(&Origin::Addend(addend)) => (targets.remove(&place)?, vec![addend]),
                    Some(Origin::Other) => return None,
                    None => (targets.remove(&place).unwrap_or(here), Vec::new()),
                };
                // Some linkers write the address here as well.
                if here == target {
                    places.push(from + inside);
                }
                wrappers.entry(target).or_default().extend(places);
            }
        }
        Some(Self {
            wrappers,
            others: targets.into_values().collect(),
        })
    }

    /// Whether all that is known to point into these addresses is a wrapper at one of `starts`.
    pub fn are_all_at(&self, section: std::ops::Range<u64>, starts: &HashSet<u64>) -> bool {
        work::count(self.wrappers.len() + self.others.len());
        let inside = self.wrappers.keys().filter(|to| section.contains(to));
        !self.others.iter().any(|to| section.contains(to))
            && inside.into_iter().all(|to| starts.contains(to))
    }

    /// The places in the file that hold `address`, if wrappers point there.
    pub fn at(&self, address: u64) -> Option<&[u64]> {
        self.wrappers.get(&address).map(Vec::as_slice)
    }
}

/// `SHT_RELR`: an address, then bit maps of the 63 words behind it.
fn unpack(table: &[u8]) -> Vec<u64> {
    let mut places = Vec::new();
    let mut next = 0_u64;
    for entry in table.chunks_exact(8).filter_map(|entry| u64_at(entry, 0)) {
        if entry & 1 == 0 {
            places.push(entry);
            next = entry.wrapping_add(8);
            continue;
        }
        let set = (0..63_u64).filter(|bit| entry >> (bit + 1) & 1 == 1);
        places.extend(set.map(|bit| next.wrapping_add(bit * 8)));
        next = next.wrapping_add(63 * 8);
    }
    places
}

/// Where in the file the bytes at addresses are.
struct Places {
    /// First address, length, place in the file; by address.
    sections: Vec<(u64, u64, u64)>,
}

impl Places {
    fn new<'s>(sections: impl Iterator<Item = &'s SectionHeader64<LittleEndian>>) -> Self {
        let loaded = sections.filter(|s| s.sh_addr(E) != 0 && s.sh_type(E) != SHT_NOBITS);
        let rows = loaded.map(|s| (s.sh_addr(E), s.sh_size(E), s.sh_offset(E)));
        let mut sections: Vec<_> = rows.collect();
        sections.sort_unstable();
        Self { sections }
    }

    fn file_offset(&self, address: u64) -> Option<u64> {
        work::count(1);
        let behind = self.sections.partition_point(|(from, ..)| *from <= address);
        let (from, length, offset) = self.sections.get(behind.checked_sub(1)?)?;
        let inside = address - from;
        (inside < *length).then(|| offset.checked_add(inside))?
    }
}

#[cfg(test)]
mod tests {
    use super::unpack;

    #[test]
    fn packed_relocations_unfold() {
        let table: Vec<u8> = [0x1000_u64, 0b1011, 0x2000]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        assert_eq!(unpack(&table), [0x1000, 0x1008, 0x1018, 0x2000]);
    }
}
