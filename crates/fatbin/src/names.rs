//! Reads names from the string table of an ELF file. In a hostile file, each name may be as long as the table.

use std::cell::Cell;

use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader, SectionTable};

use crate::error::Flaw;
use crate::work;

const E: LittleEndian = LittleEndian;

/// How often each byte of a table may be read. Names share their ends (`k` is the end of `.text.k`), and not much more.
const SHARED: usize = 16;
/// Bytes that each entry may cost besides.
const EACH: usize = 64;

/// A table of strings, and the number of bytes that may still be read from it.
#[derive(Debug)]
pub(crate) struct Names<'d> {
    table: &'d [u8],
    left: Cell<usize>,
}

impl<'d> Names<'d> {
    /// The names of `entries` rows.
    pub(crate) fn new(table: &'d [u8], entries: usize) -> Self {
        let most = table.len().saturating_mul(SHARED);
        Self {
            table,
            left: Cell::new(most.saturating_add(entries.saturating_mul(EACH))),
        }
    }

    /// The name at a place, up to a zero byte; `None` if there is none.
    ///
    /// # Errors All names together were longer than a valid table allows.
    pub(crate) fn get(&self, at: u32) -> Result<Option<&'d [u8]>, Flaw> {
        let Some(rest) = self.table.get(at as usize..) else {
            return Ok(None);
        };
        let near = &rest[..rest.len().min(self.left.get().saturating_add(1))];
        let end = memchr::memchr(0, near);
        let read = end.unwrap_or(near.len());
        work::count(read);
        match self.left.get().checked_sub(read) {
            Some(left) => self.left.set(left),
            None => return Err(Flaw::Host("the names in it overlap".to_owned())),
        }
        Ok(end.map(|end| &rest[..end]))
    }
}

/// Compares the names of an ELF file's sections with a wanted name, without reading them as a whole.
pub(crate) struct SectionNames<'d>(&'d [u8]);

impl<'d> SectionNames<'d> {
    pub(crate) fn new(
        header: &FileHeader64<LittleEndian>,
        sections: &SectionTable<'d, FileHeader64<LittleEndian>>,
        file: &'d [u8],
    ) -> Self {
        let index = header.section_strings_index(E, file);
        let section = index.and_then(|index| sections.section(index));
        let table = section.and_then(|section| section.data(E, file));
        Self(table.unwrap_or_default())
    }

    /// The table itself.
    pub(crate) fn table(&self) -> &'d [u8] {
        self.0
    }

    /// Whether a section has this name.
    pub(crate) fn is(
        &self,
        section: &impl SectionHeader<Elf = FileHeader64<LittleEndian>, Endian = LittleEndian>,
        name: &[u8],
    ) -> bool {
        work::count(name.len());
        let rest = self.0.get(section.sh_name(E) as usize..);
        rest.and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.first() == Some(&0))
    }
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn names_are_read_until_they_are_too_long_together() {
        let table = [b"one\0".as_slice(), &[b'x'; 1000], b"\0"].concat();
        let names = Names::new(&table, 1);
        assert_eq!(names.get(0), Ok(Some(&b"one"[..])));
        assert_eq!(names.get(5000), Ok(None));
        let read = (0..1000).take_while(|at| names.get(4 + at % 10).is_ok());
        assert!((10..40).contains(&read.count()));
        // One that does not end is none.
        assert_eq!(Names::new(b"abc", 1).get(0), Ok(None));
    }
}
