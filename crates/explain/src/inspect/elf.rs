//! ELF files of the host, as far as CUDA is concerned: sections, fat binary wrappers, constructors.
//!
//! A file in which something is damaged or unusual gives less, never a panic.

use std::collections::HashMap;

use object::read::elf::ElfFile64;
use object::{
    Endianness, Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolIndex, SymbolKind,
};

/// The magic number of a fat binary's wrapper.
pub const WRAPPER_MAGIC: u32 = 0x4662_43b1;
/// Its size: magic, version, two pointers.
const WRAPPER: usize = 24;
const POINTER: u64 = 8;
/// The section of the wrappers.
const SEGMENT: &str = ".nvFatBinSegment";
/// Sections with functions that run before main, in this order.
const ARRAYS: [&str; 3] = [".preinit_array", ".init_array", ".ctors"];
/// `DT_NEEDED`.
const NEEDED: u64 = 1;

/// The meaning of a wrapper's version.
pub fn wrapper_version(version: u32) -> &'static str {
    match version {
        1 => "one fat binary",
        2 => "after a device link",
        _ => "not known",
    }
}

/// A section.
pub struct Section {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
}

/// A fat binary's wrapper.
pub struct Wrapper {
    /// The name of its symbol, where it has one.
    pub name: String,
    /// [`WRAPPER_MAGIC`].
    pub magic: u32,
    /// 1, or 2 after a device link.
    pub version: u32,
    /// The targets of its two pointers.
    pub points: [String; 2],
}

/// A symbol.
pub struct Symbol {
    /// As in the table.
    pub name: String,
    /// Whether this file has it.
    pub defined: bool,
    /// Whether others see it.
    pub global: bool,
}

/// An object, program or shared library.
pub struct Elf {
    /// The sections that take space, in order.
    pub sections: Vec<Section>,
    /// In the order of the table.
    pub symbols: Vec<Symbol>,
    /// In their order in the segment.
    pub wrappers: Vec<Wrapper>,
    /// Functions that run before main, in order: array, function, source file.
    pub constructors: Vec<(String, String, String)>,
    /// Shared libraries that it needs.
    pub needed: Vec<String>,
}

type File<'d> = ElfFile64<'d, Endianness>;

impl Elf {
    /// Reads a 64-bit ELF file; `None` for anything else.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let file = File::parse(bytes).ok()?;
        let names = Names::new(&file);
        let sections = file
            .sections()
            .filter_map(|section| {
                Some(Section {
                    name: section.name().ok()?.to_owned(),
                    size: section.size(),
                })
            })
            .filter(|section| !section.name.is_empty())
            .collect();
        let symbols = file
            .symbols()
            .filter(|symbol| !matches!(symbol.kind(), SymbolKind::File | SymbolKind::Section))
            .filter_map(|symbol| {
                Some(Symbol {
                    name: symbol
                        .name()
                        .ok()
                        .filter(|name| !name.is_empty())?
                        .to_owned(),
                    defined: symbol.is_definition(),
                    global: symbol.is_global(),
                })
            })
            .collect();
        let mut constructors = Vec::new();
        for array in ARRAYS {
            constructors.extend(functions(&file, &names, array));
        }
        Some(Self {
            sections,
            symbols,
            wrappers: wrappers(&file, &names),
            constructors,
            needed: needed(&file),
        })
    }

    /// The size of a section, or nothing.
    pub fn size(&self, name: &str) -> Option<u64> {
        let found = self.sections.iter().find(|section| section.name == name)?;
        Some(found.size)
    }
}

/// The symbols at each address, and the source file of each local symbol.
struct Names {
    /// By section and address: linked files have one space of addresses, objects one each.
    at: HashMap<(usize, u64), Vec<(String, String)>>,
    /// By index of the symbol.
    file_of: HashMap<usize, String>,
    /// Relocations for the linker, by section and offset; asked for often, so read once.
    open: HashMap<(usize, u64), (RelocationTarget, i64)>,
    /// Relocations for the loader, by address.
    moved: HashMap<u64, (RelocationTarget, i64)>,
}

/// Whether a section is one that [`follow`] is asked about.
fn has_pointers(name: &str) -> bool {
    name == SEGMENT || ARRAYS.iter().any(|array| name.starts_with(array))
}

impl Names {
    fn new(file: &File<'_>) -> Self {
        let mut at: HashMap<_, Vec<_>> = HashMap::new();
        let mut file_of = HashMap::new();
        let mut source = String::new();
        for symbol in file.symbols() {
            let Ok(name) = symbol.name() else { continue };
            if symbol.kind() == SymbolKind::File {
                name.clone_into(&mut source);
                continue;
            }
            // Those that all can see stand behind the locals of the last file.
            let own = if symbol.is_local() {
                source.as_str()
            } else {
                ""
            };
            file_of.insert(symbol.index().0, own.to_owned());
            let Some(section) = symbol.section_index().filter(|_| !name.is_empty()) else {
                continue;
            };
            if symbol.kind() != SymbolKind::Section {
                at.entry((section.0, symbol.address()))
                    .or_default()
                    .push((name.to_owned(), own.to_owned()));
            }
        }
        let mut open = HashMap::new();
        for section in file.sections() {
            if section.name().is_ok_and(has_pointers) {
                let all = section.relocations();
                open.extend(all.map(|(at, r)| ((section.index().0, at), (r.target(), r.addend()))));
            }
        }
        let moved = file.dynamic_relocations().into_iter().flatten();
        Self {
            at,
            file_of,
            open,
            moved: moved
                .map(|(at, r)| (at, (r.target(), r.addend())))
                .collect(),
        }
    }

    /// The name and source file of what is at `address` of a section.
    fn find(&self, section: usize, address: u64) -> Option<&(String, String)> {
        self.at.get(&(section, address))?.first()
    }
}

/// A pointer in the file: where it leads, in words, and from which source file that is.
fn follow(file: &File<'_>, names: &Names, section: &str, at: u64) -> Option<(String, String)> {
    let holder = file.section_by_name(section)?;
    if let Some((target, addend)) = names.open.get(&(holder.index().0, at)) {
        return match target {
            RelocationTarget::Symbol(index) => Some(symbol(file, names, *index, *addend)),
            _ => None,
        };
    }
    let address = holder.address().checked_add(at)?;
    let value = match names.moved.get(&address) {
        // A shared library's own symbol, to be found when it is loaded.
        Some((RelocationTarget::Symbol(index), _)) => {
            let table = object::Object::dynamic_symbol_table(file)?;
            let found = object::ObjectSymbolTable::symbol_by_index(&table, *index).ok()?;
            return Some((found.name().ok()?.to_owned(), String::new()));
        }
        Some((_, addend)) => u64::try_from(*addend).ok()?,
        None => {
            let data = holder.data().ok()?;
            let from = usize::try_from(at).ok()?;
            let bytes = data.get(from..from.checked_add(8)?)?;
            u64::from_le_bytes(bytes.try_into().ok()?)
        }
    };
    if value == 0 {
        return Some(("0".to_owned(), String::new()));
    }
    Some(address_in_words(file, names, value))
}

fn address_in_words(file: &File<'_>, names: &Names, value: u64) -> (String, String) {
    let within = file.sections().find(|section| {
        section.address() != 0
            && (section.address()..section.address().saturating_add(section.size()))
                .contains(&value)
    });
    let Some(within) = within else {
        return (format!("{value:#x}"), String::new());
    };
    match names.find(within.index().0, value) {
        Some(found) => found.clone(),
        None => {
            let name = within.name().unwrap_or_default();
            let offset = value - within.address();
            (format!("{name} + {offset:#x}"), String::new())
        }
    }
}

fn symbol(file: &File<'_>, names: &Names, index: SymbolIndex, addend: i64) -> (String, String) {
    let Ok(symbol) = file.symbol_by_index(index) else {
        return ("?".to_owned(), String::new());
    };
    let source = names.file_of.get(&index.0).cloned().unwrap_or_default();
    if symbol.kind() == SymbolKind::Section {
        let section = symbol.section_index().map_or(0, |section| section.0);
        let address = u64::try_from(addend).unwrap_or(0);
        if let Some(found) = names.find(section, address) {
            return found.clone();
        }
        let name = file
            .sections()
            .find(|s| s.index().0 == section)
            .and_then(|s| s.name().ok().map(str::to_owned))
            .unwrap_or_default();
        return (format!("{name} + {addend:#x}"), source);
    }
    (symbol.name().unwrap_or("?").to_owned(), source)
}

fn functions(file: &File<'_>, names: &Names, array: &str) -> Vec<(String, String, String)> {
    // An object has one section for each function with a priority as well.
    let sections = file.sections().filter_map(|section| {
        let name = section.name().ok()?;
        let rest = name.strip_prefix(array)?;
        // The bytes that are there, whatever size the file states.
        let bytes = section.data().map_or(0, <[u8]>::len) as u64;
        (rest.is_empty() || rest.starts_with('.')).then(|| (name.to_owned(), bytes))
    });
    let mut found = Vec::new();
    for (name, bytes) in sections {
        for slot in 0..bytes / POINTER {
            if let Some((function, source)) = follow(file, names, &name, slot * POINTER) {
                found.push((name.clone(), function, source));
            }
        }
    }
    // The old kind of array is run from its end.
    if array == ".ctors" {
        found.reverse();
    }
    found
}

fn wrappers(file: &File<'_>, names: &Names) -> Vec<Wrapper> {
    let Some(segment) = file.section_by_name(SEGMENT) else {
        return Vec::new();
    };
    let data = segment.data().unwrap_or_default();
    let one = |(index, bytes): (usize, &[u8])| {
        let number = |at: usize| {
            let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_le_bytes(bytes))
        };
        let start = (index * WRAPPER) as u64;
        let point = |at: u64| {
            follow(file, names, SEGMENT, start + at)
                .map_or_else(|| "0".to_owned(), |(name, _)| name)
        };
        let name = names
            .find(segment.index().0, segment.address() + start)
            .map_or_else(
                || format!("{SEGMENT} + {start:#x}"),
                |(name, _)| name.clone(),
            );
        Some(Wrapper {
            name,
            magic: number(0)?,
            version: number(4)?,
            points: [point(8), point(16)],
        })
    };
    data.chunks_exact(WRAPPER)
        .enumerate()
        .filter_map(one)
        .collect()
}

fn needed(file: &File<'_>) -> Vec<String> {
    let section = |name: &str| file.section_by_name(name)?.data().ok();
    let (Some(entries), Some(names)) = (section(".dynamic"), section(".dynstr")) else {
        return Vec::new();
    };
    let name = |at: u64| {
        let rest = names.get(usize::try_from(at).ok()?..)?;
        let end = rest.iter().position(|b| *b == 0)?;
        Some(String::from_utf8_lossy(&rest[..end]).into_owned())
    };
    let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or(0);
    entries
        .chunks_exact(16)
        .filter(|entry| number(&entry[..8]) == NEEDED)
        .filter_map(|entry| name(number(&entry[8..])))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_read_and_a_broken_one_survived() {
        let bytes = std::fs::read("/bin/true").expect("a program");
        let elf = Elf::read(&bytes).expect("an ELF file");
        assert!(elf.needed.iter().any(|name| name.starts_with("libc.so")));
        assert!(!elf.constructors.is_empty() && elf.wrappers.is_empty());
        assert!(elf.size(".text").is_some_and(|size| size > 100));
        for length in (0..bytes.len()).step_by(997) {
            drop(Elf::read(&bytes[..length]));
        }
        // Each byte of the header and of the tables behind it is wrong once.
        let tables = bytes.len().saturating_sub(2048);
        for at in (0..64).chain(tables..bytes.len()) {
            let mut broken = bytes.clone();
            broken[at] ^= 0xff;
            drop(Elf::read(&broken));
        }
    }
}
