//! Finds the real function behind a hook: the one that `dlsym(RTLD_NEXT)` would find, without calling `dlsym`.
//!
//! Before glibc 2.34 `dlsym` allocates. A program with an allocator of its own, such as cicc, may call one of our hooks in
//! that allocator's first call. `dlsym` would then call the allocator again, which would wait for itself for ever (seen on
//! glibc 2.31). So this module reads the tables of the loaded objects. It does not allocate, and takes the loader's lock
//! only in a way that the same thread may repeat.

use core::ffi::{c_int, c_void};

use crate::libraries::ours;
use crate::sys::{self, LoadedObject, PT_LOAD};

const PT_DYNAMIC: u32 = 2;
const DT_NULL: i64 = 0;
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_STRSZ: i64 = 10;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;
/// A bit in a symbol's version: there is a newer one under the same name.
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
    /// The size of the names in bytes.
    string_size: usize,
    /// The table of DT_GNU_HASH, or null.
    hashes: *const u32,
    /// The table of DT_HASH, or null. The tools of CUDA 13.0 and before have only this one.
    old_hashes: *const u32,
    versions: *const u16,
    /// Whether the names are mapped right behind the symbols.
    names_follow: bool,
}

struct Search {
    /// The name that is searched for, without its NUL.
    name: &'static [u8],
    hash: u32,
    /// Whether the search has passed our own object.
    behind: bool,
    found: usize,
}

/// The definition of `name`, which ends in NUL, in the first object after ours that has one; null if none has.
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
    // SAFETY: `visit` has the signature, and the data has the type that it expects.
    unsafe { sys::dl_iterate_phdr(visit, (&raw mut search).cast()) };
    search.found as *mut c_void
}

/// Whether the main program imports the list of all environment variables.
pub(crate) fn main_program_has_environ() -> bool {
    extern "C" fn first(object: *mut LoadedObject, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: `object` is the loader's description of a loaded object, and `data` is the answer's address.
        unsafe { *data.cast::<bool>() = has_environ(&*object) };
        // The main program comes first.
        1
    }
    let mut refers = true;
    // SAFETY: `first` has the signature, and the data has the type that it expects.
    unsafe { sys::dl_iterate_phdr(first, (&raw mut refers).cast()) };
    refers
}

/// Whether an object refers to the list of all environment variables, `environ`, under one of its names, or has its own copy
/// of it.
///
/// # Safety
/// The object is loaded.
pub(crate) unsafe fn has_environ(object: &LoadedObject) -> bool {
    const NAMES: [&[u8]; 3] = [b"environ", b"__environ", b"_environ"];
    // SAFETY: as the caller promises.
    unsafe {
        let refers = |tables: Tables| NAMES.iter().any(|name| tables.names(name));
        tables(object).is_none_or(refers)
    }
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

/// The tables of a loaded object, if it has the required ones.
///
/// # Safety
/// `object` is the loader's description of a loaded object.
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
            // glibc writes addresses here in place of the file's offsets; the kernel's object keeps its offsets.
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
    /// Whether the object defines or uses this symbol. If that cannot be known, the answer is yes.
    ///
    /// # Safety
    /// As for [`Tables::find`].
    unsafe fn names(&self, name: &[u8]) -> bool {
        // SAFETY: the table has that many symbols.
        unsafe {
            self.count().is_none_or(|count| {
                (0..count).any(|index| self.is_called(&*self.symbols.add(index), name))
            })
        }
    }

    /// The number of symbols, if the tables contain it.
    ///
    /// # Safety
    /// As for [`Tables::find`].
    unsafe fn count(&self) -> Option<usize> {
        // SAFETY: DT_HASH has this layout: the number of buckets, the number of symbols, the buckets, the chains.
        // DT_GNU_HASH has the layout described in `find`; symbols without a hash come before the first that has one.
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
                // GNU linkers write 1 if no symbol has a hash, however many there are. The names follow.
                let size = self.strings.addr().wrapping_sub(self.symbols.addr());
                return self.names_follow.then_some(size / size_of::<Symbol>());
            };
            // The end of the last chain is the end of the table.
            while *table.add(buckets + index - first) & 1 == 0 {
                index += 1;
            }
            Some(index + 1)
        }
    }

    /// The address of a function, 0 if it is not found: of the version that new programs bind to, else of an older one.
    ///
    /// # Safety
    /// The tables belong to a loaded object.
    unsafe fn find(&self, search: &Search) -> usize {
        let mut older = 0;
        if self.hashes.is_null() {
            // SAFETY: the tables have that many symbols and versions.
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
        // SAFETY: DT_GNU_HASH has this layout: four counts, a filter of words, buckets, and chains that end in an odd hash.
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
    /// As for [`Tables::find`]; a symbol with this index exists.
    unsafe fn is_hidden(&self, index: usize) -> bool {
        // SAFETY: the table of versions is as long as that of symbols.
        !self.versions.is_null() && unsafe { *self.versions.add(index) } & HIDDEN != 0
    }

    /// Whether the symbol is a function of that name, defined by the object itself.
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
        // SAFETY: the name starts inside the names. It ends in NUL, so the comparison ends at the first byte that differs.
        unsafe {
            let text = self.strings.add(start);
            start < self.string_size
                && (0..name.len()).all(|at| *text.add(at) == name[at]) && *text.add(name.len()) == 0
        }
    }
}
