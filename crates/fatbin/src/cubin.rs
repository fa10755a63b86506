//! A cubin: an ELF file for a GPU. Its producer, its architecture, and its parts.
//!
//! There are two generations, which the ABI version in the ELF header distinguishes: 7 (CUDA 12 and before, up to
//! sm_90) and 8. They keep the architecture in different bits of `e_flags` (seen on files of CUDA 11.7 to 13.5).

use object::elf::{FileHeader64, SHT_NOBITS, SHT_SYMTAB, SectionHeader64, Sym64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym, SymbolTable};
use object::{LittleEndian, SectionIndex};

use crate::arch::{Arch, Suffix};
use crate::attributes;
use crate::bytes::u32_at;
use crate::error::Flaw;
use crate::names::{Names, SectionNames};
use crate::work;

const E: LittleEndian = LittleEndian;
/// `EM_CUDA`.
pub const MACHINE: u16 = 190;
/// The newer generation's ABI version.
pub(crate) const NEWER: u8 = 8;
/// `e_flags` of the older generation: the code is for `sm_XYa`.
const OLDER_EXACT: u32 = 0x800;
/// `.nv.compat`: 1 for `sm_XYa` in the newer generation.
const COMPAT_EXACT: u8 = 9;
/// Bytes at the start of a note: three sizes and the name "NVIDIA Corp", padded.
const BEFORE_NOTE: usize = 24;

pub(crate) type ElfHeader = FileHeader64<LittleEndian>;

/// A cubin whose tables were found.
#[derive(Debug)]
pub struct Cubin<'d> {
    pub(crate) data: &'d [u8],
    header: &'d ElfHeader,
    pub(crate) sections: SectionTable<'d, ElfHeader>,
    pub(crate) symbols: SymbolTable<'d, ElfHeader>,
    /// By number; empty where a section has none.
    names: Vec<&'d [u8]>,
    symbol_names: Names<'d>,
}

/// How many sections may contain each byte of a file, on average.
const SHARED: u64 = 2;
/// Additional bytes that they may contain, for very small cubins.
const LEAST: u64 = 4096;

impl<'d> Cubin<'d> {
    /// Finds the tables.
    ///
    /// # Errors
    /// The bytes are no 64-bit ELF file, its tables lie outside of it, or its sections or names overlap.
    pub fn parse(data: &'d [u8]) -> Result<Self, Flaw> {
        let wrong = |error: object::Error| Flaw::Host(error.to_string());
        let header = ElfHeader::parse(data).map_err(wrong)?;
        let sections = header.sections(E, data).map_err(wrong)?;
        let symbols = sections.symbols(E, data, SHT_SYMTAB).map_err(wrong)?;
        work::count(sections.len());
        // Each section may be read, so together they must not be much larger than the file.
        let sizes = sections.iter().filter_map(|s| Some(s.file_range(E)?.1));
        let together = sizes.fold(0, u64::saturating_add);
        if together > SHARED * data.len() as u64 + LEAST {
            return Err(Flaw::Host("its sections overlap".to_owned()));
        }
        let table = SectionNames::new(header, &sections, data).table();
        let names = Names::new(table, sections.len());
        let names = sections.iter().map(|s| names.get(s.sh_name(E)));
        let names = names
            .map(|name| Ok(name?.unwrap_or_default()))
            .collect::<Result<_, Flaw>>()?;
        let strings = sections.section(symbols.string_section());
        let strings = strings.and_then(|strings| strings.data(E, data));
        let symbol_names = Names::new(strings.unwrap_or_default(), symbols.len());
        Ok(Self {
            data,
            header,
            sections,
            symbols,
            names,
            symbol_names,
        })
    }

    /// The architecture in the cubin itself. The newer generation does not record an `f`.
    pub fn arch(&self) -> Arch {
        let flags = self.header.e_flags(E).0;
        let (number, exact) = if self.is_newer() {
            let exact = self.section(".nv.compat").is_some_and(|compat| {
                attributes::each(compat)
                    .any(|a| a.code == COMPAT_EXACT && a.value.first() == Some(&1))
            });
            ((flags >> 8) & 0xff, exact)
        } else {
            (flags & 0xff, flags & OLDER_EXACT != 0)
        };
        let suffix = if exact { Suffix::Exact } else { Suffix::None };
        Arch { number, suffix }
    }

    /// Whether it is of the generation that came with CUDA 12.8 and 13.
    pub fn is_newer(&self) -> bool {
        self.header.e_ident().abi_version >= NEWER
    }

    /// Whether it must be linked before it can be loaded.
    pub fn is_relocatable(&self) -> bool {
        self.header.e_type(E) == object::elf::ET_REL
    }

    /// The toolkit that made it: `13.5.37` where a note says it whole, else `12.4`.
    pub fn toolkit(&self) -> Option<String> {
        if let Some(release) = self.section(".note.nv.tkinfo").and_then(release) {
            return Some(release);
        }
        let tens = match self.section(".note.nv.cuinfo") {
            // Two 16-bit numbers stand before it: the note's version and the architecture.
            Some(note) => u32_at(note, BEFORE_NOTE + 4),
            None => Some(self.header.e_version(E)).filter(|tens| *tens > 1),
        }?;
        Some(format!("{}.{}", tens / 10, tens % 10))
    }

    /// The bytes of a section.
    pub fn section(&self, name: &str) -> Option<&'d [u8]> {
        self.find(name)?.data(E, self.data).ok()
    }

    fn find(&self, name: &str) -> Option<&'d SectionHeader64<LittleEndian>> {
        work::count(self.names.len());
        let number = self.names.iter().position(|n| *n == name.as_bytes())?;
        self.sections.section(SectionIndex(number)).ok()
    }

    /// The size of a section, in bytes; also of one without bytes in the file.
    pub fn section_size(&self, name: &str) -> u64 {
        self.find(name).map_or(0, |section| section.sh_size(E))
    }

    /// Variables in global memory, in bytes.
    pub(crate) fn global_bytes(&self) -> u64 {
        [".nv.global", ".nv.global.init"]
            .iter()
            .map(|name| self.section_size(name))
            // Sizes are what the file says.
            .fold(0, u64::saturating_add)
    }

    pub(crate) fn section_name(&self, index: SectionIndex) -> Option<&'d [u8]> {
        let name = self.names.get(index.0)?;
        (!name.is_empty()).then_some(*name)
    }

    /// The sections that have names, with these.
    pub(crate) fn named_sections(
        &self,
    ) -> impl Iterator<Item = (&'d [u8], &'d SectionHeader64<LittleEndian>)> + '_ {
        let all = self.names.iter().copied().zip(self.sections.iter());
        all.filter(|(name, _)| !name.is_empty())
    }

    /// The name of a symbol.
    ///
    /// # Errors
    /// See [`Names::get`].
    pub(crate) fn symbol_name(
        &self,
        symbol: &Sym64<LittleEndian>,
    ) -> Result<Option<&'d [u8]>, Flaw> {
        self.symbol_names.get(symbol.st_name(E))
    }
}

/// `13.5.37` from `Cuda compilation tools, release 13.5, V13.5.37`, wherever it stands.
pub(crate) fn release(text: &[u8]) -> Option<String> {
    const BEFORE: &[u8] = b"Cuda compilation tools, release ";
    let at = memchr::memmem::find(text, BEFORE)? + BEFORE.len();
    let rest = &text[at..text.len().min(at + 40)];
    let rest = &rest[rest.iter().position(|b| *b == b'V')? + 1..];
    let end = rest.iter().position(|b| !b.is_ascii_digit() && *b != b'.');
    let version = std::str::from_utf8(&rest[..end.unwrap_or(rest.len())]).ok()?;
    (!version.is_empty()).then(|| version.to_owned())
}

/// The end of the file without padding, which is the end of its last table or section.
///
/// This gives the bytes that `cuobjdump -xelf` writes.
pub fn length(data: &[u8]) -> Option<usize> {
    let header = ElfHeader::parse(data).ok()?;
    let sections = header.section_headers(E, data).ok()?;
    let programs = header.program_headers(E, data).ok()?;
    let table = |at: u64, count: usize, each: u16| {
        (count > 0).then_some(at.checked_add(count as u64 * u64::from(each))?)
    };
    let section_ends = sections
        .iter()
        .filter(|s| s.sh_type(E) != SHT_NOBITS)
        .filter_map(|s| s.sh_offset(E).checked_add(s.sh_size(E)));
    let program_ends = programs
        .iter()
        .filter_map(|p| p.p_offset(E).checked_add(p.p_filesz(E)));
    let end = section_ends
        .chain(program_ends)
        .chain(table(
            header.e_shoff(E),
            sections.len(),
            header.e_shentsize(E),
        ))
        .chain(table(
            header.e_phoff(E),
            programs.len(),
            header.e_phentsize(E),
        ))
        .chain([u64::from(header.e_ehsize(E))])
        .max()?;
    usize::try_from(end).ok().filter(|end| *end <= data.len())
}
