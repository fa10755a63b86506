//! Finds the function that a hook stands before: what `dlsym(RTLD_NEXT)` would find, without calling it.
//!
//! Before glibc 2.34 `dlsym` allocates. A program with an allocator of its own, cicc for one, may call one of our
//! hooks from inside that allocator's first call. `dlsym` would then call the allocator again, which waits for itself
//! for ever (seen on glibc 2.31). So the tables of the loaded objects are read here. Nothing allocates, and the
//! loader's lock is only taken where the same thread may take it twice.

use core::ffi::{c_int, c_void};

use crate::state::ours;
use crate::sys::{self, LoadedObject, PT_LOAD};

const PT_DYNAMIC: u32 = 2;
const DT_NULL: i64 = 0;
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_STRSZ: i64 = 10;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;
/// In a symbol's version: there is a newer one under the same name.
const HIDDEN: u16 = 0x8000;
const FUNCTION: u8 = 2;

/// `Elf64_Dyn`.
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

/// `Elf64_Sym`.
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: usize,
    size: u64,
}

/// The tables of one object.
struct Tables {
    base: usize,
    symbols: *const Symbol,
    strings: *const u8,
    /// How many bytes of names there are.
    string_size: usize,
    /// The table of DT_GNU_HASH, or null.
    hashes: *const u32,
    /// Of DT_HASH, which the tools of CUDA 13.0 and before have alone, else null.
    old_hashes: *const u32,
    versions: *const u16,
    /// Whether the names are mapped together with the symbols, behind them.
    names_follow: bool,
}

struct Search {
    /// Without its NUL.
    name: &'static [u8],
    hash: u32,
    /// Whether our own object has been passed.
    behind: bool,
    found: usize,
}

/// The definition of `name`, which ends in NUL, in the first object behind ours that has one; null where none has.
pub(crate) fn next(name: &'static str) -> *mut c_void {
    let bytes = name.as_bytes();
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    let mut search = Search {
        name: bytes,
        hash: bytes.iter().fold(5381, |hash: u32, byte| {
            hash.wrapping_mul(33).wrapping_add(u32::from(*byte))
        }),
        behind: false,
        found: 0,
    };
    // SAFETY: `visit` has the signature and takes the data for what it is.
    unsafe { sys::dl_iterate_phdr(visit, (&raw mut search).cast()) };
    search.found as *mut c_void
}

/// Whether the main program has the list of all environment variables: it refers to `environ` under one of its names, or
/// has its own copy of it.
pub(crate) fn main_program_has_environ() -> bool {
    extern "C" fn first(object: *mut LoadedObject, _: usize, data: *mut c_void) -> c_int {
        const NAMES: [&[u8]; 3] = [b"environ", b"__environ", b"_environ"];
        // SAFETY: the loader's description of an object that is loaded, and the answer that is asked for.
        unsafe {
            let refers = |tables: Tables| NAMES.iter().any(|name| tables.names(name));
            *data.cast::<bool>() = tables(&*object).is_none_or(refers);
        }
        // The main program comes first.
        1
    }
    let mut refers = true;
    // SAFETY: `first` has the signature and takes the data for what it is.
    unsafe { sys::dl_iterate_phdr(first, (&raw mut refers).cast()) };
    refers
}

extern "C" fn visit(object: *mut LoadedObject, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader's description, and the search that `next` passed.
    let (object, search) = unsafe { (&*object, &mut *data.cast::<Search>()) };
    if !search.behind {
        search.behind = ours(object);
        return 0;
    }
    // SAFETY: the object is loaded, so its tables are mapped.
    search.found = unsafe { tables(object).map_or(0, |tables| tables.find(search)) };
    c_int::from(search.found != 0)
}

/// The tables of a loaded object, if it has those that are needed.
///
/// # Safety
/// The loader's description of an object that is loaded.
unsafe fn tables(object: &LoadedObject) -> Option<Tables> {
    // SAFETY: the loader's table of that many headers.
    let headers =
        unsafe { core::slice::from_raw_parts(object.headers, object.header_count.into()) };
    let dynamic = headers.iter().find(|header| header.kind == PT_DYNAMIC)?;
    let mut entry = object.address.wrapping_add(dynamic.address as usize) as *const Dynamic;
    let mut found = Tables {
        base: object.address,
        symbols: core::ptr::null(),
        strings: core::ptr::null(),
        string_size: 0,
        hashes: core::ptr::null(),
        old_hashes: core::ptr::null(),
        versions: core::ptr::null(),
        names_follow: false,
    };
    // SAFETY: the table ends in DT_NULL.
    unsafe {
        while (*entry).tag != DT_NULL {
            // glibc writes addresses here where the file has offsets; the kernel's object keeps its offsets.
            let value = (*entry).value;
            let address = if value < object.address {
                value.wrapping_add(object.address)
            } else {
                value
            };
            match (*entry).tag {
                DT_STRTAB => found.strings = address as *const u8,
                DT_SYMTAB => found.symbols = address as *const Symbol,
                DT_STRSZ => found.string_size = value,
                DT_GNU_HASH => found.hashes = address as *const u32,
                DT_HASH => found.old_hashes = address as *const u32,
                DT_VERSYM => found.versions = address as *const u16,
                _ => {}
            }
            entry = entry.add(1);
        }
    }
    found.names_follow = headers.iter().any(|header| {
        let start = object.address.wrapping_add(header.address as usize);
        let part = start..start.wrapping_add(header.memory_size as usize);
        header.kind == PT_LOAD
            && found.symbols.addr() <= found.strings.addr()
            && part.contains(&found.symbols.addr())
            && part.contains(&found.strings.addr())
    });
    let hashed = !(found.hashes.is_null() && found.old_hashes.is_null());
    let whole = hashed && !found.symbols.is_null() && !found.strings.is_null();
    whole.then_some(found)
}

impl Tables {
    /// Whether the object names this symbol, as its own or as another's. Also true where that cannot be known.
    ///
    /// # Safety
    /// As for [`Tables::find`].
    unsafe fn names(&self, name: &[u8]) -> bool {
        // SAFETY: so many symbols are in the table.
        unsafe {
            self.count().is_none_or(|count| {
                (0..count).any(|index| self.is_called(&*self.symbols.add(index), name))
            })
        }
    }

    /// How many symbols there are, if the tables say it.
    ///
    /// # Safety
    /// As for [`Tables::find`].
    unsafe fn count(&self) -> Option<usize> {
        // SAFETY: the layout of DT_HASH: the number of buckets, that of symbols, the buckets, the chains.
        // The layout of DT_GNU_HASH is as in `find`; symbols of others stand before the first that has a hash.
        unsafe {
            if !self.old_hashes.is_null() {
                return Some(*self.old_hashes.add(1) as usize);
            }
            let [buckets, first, words] = [0, 1, 2].map(|at| *self.hashes.add(at) as usize);
            let table = self.hashes.add(4 + words * 2);
            let last = (0..buckets).map(|at| *table.add(at) as usize).max();
            let Some(mut index) = last.filter(|last| *last >= first) else {
                if first > 1 {
                    return Some(first);
                }
                // GNU linkers write 1 where no symbol has a hash, however many there are. The names follow.
                let size = self.strings.addr().wrapping_sub(self.symbols.addr());
                return self.names_follow.then_some(size / size_of::<Symbol>());
            };
            // The last chain ends the table.
            while *table.add(buckets + index - first) & 1 == 0 {
                index += 1;
            }
            Some(index + 1)
        }
    }

    /// The address of a function, 0 where it is not found: the version that new programs bind to, else an older one.
    ///
    /// # Safety
    /// The tables are a loaded object's.
    unsafe fn find(&self, search: &Search) -> usize {
        let mut older = 0;
        if self.hashes.is_null() {
            // SAFETY: so many symbols are in the table, and versions.
            unsafe {
                for index in 0..self.count().unwrap_or(0) {
                    let symbol = &*self.symbols.add(index);
                    if self.is(symbol, search.name) {
                        let address = self.base.wrapping_add(symbol.value);
                        if !self.is_hidden(index) {
                            return address;
                        }
                        older = address;
                    }
                }
            }
            return older;
        }
        // SAFETY: the layout of DT_GNU_HASH: four counts, a filter of words, buckets, chains that end in an odd hash.
        unsafe {
            let [buckets, first, words] = [0, 1, 2].map(|at| *self.hashes.add(at) as usize);
            if buckets == 0 {
                return 0;
            }
            let table = self.hashes.add(4 + words * 2);
            let mut index = *table.add(search.hash as usize % buckets) as usize;
            if index < first {
                return 0;
            }
            loop {
                let hash = *table.add(buckets + index - first);
                let symbol = &*self.symbols.add(index);
                if hash | 1 == search.hash | 1 && self.is(symbol, search.name) {
                    let address = self.base.wrapping_add(symbol.value);
                    if !self.is_hidden(index) {
                        return address;
                    }
                    older = address;
                }
                if hash & 1 != 0 {
                    return older;
                }
                index += 1;
            }
        }
    }

    /// Whether there is a newer version of the symbol with this index.
    ///
    /// # Safety
    /// As for [`Tables::find`]; there is such a symbol.
    unsafe fn is_hidden(&self, index: usize) -> bool {
        // SAFETY: the table of versions is as long as that of symbols.
        !self.versions.is_null() && unsafe { *self.versions.add(index) } & HIDDEN != 0
    }

    /// Whether the symbol is a function of that name that the object itself has.
    ///
    /// # Safety
    /// As for [`Tables::find`].
    unsafe fn is(&self, symbol: &Symbol, name: &[u8]) -> bool {
        if symbol.section == 0 || symbol.value == 0 || symbol.info & 0xf != FUNCTION {
            return false;
        }
        // SAFETY: as the caller promises.
        unsafe { self.is_called(symbol, name) }
    }

    /// Whether the symbol has that name.
    ///
    /// # Safety
    /// As for [`Tables::find`].
    unsafe fn is_called(&self, symbol: &Symbol, name: &[u8]) -> bool {
        let start = symbol.name as usize;
        // SAFETY: the name lies within the names. It ends in NUL, so the comparison ends at the first that differs.
        unsafe {
            let text = self.strings.add(start);
            start < self.string_size
                && (0..name.len()).all(|at| *text.add(at) == name[at]) && *text.add(name.len()) == 0
        }
    }
}
