//! Windows programs and DLLs: where their fat binaries are.
//!
//! Names of sections have eight bytes there, so that `.nv_fatbin` is `.nv_fatb` (inferred from NVIDIA's
//! `fatbinary_section.h` and the format; no file of nvcc for Windows was at hand). They are read, and not rewritten.

use object::LittleEndian;
use object::pe::{IMAGE_DOS_SIGNATURE, ImageDosHeader, ImageNtHeaders64};
use object::read::pe::ImageNtHeaders;

use crate::container::Section;
use crate::error::Flaw;
use crate::work;

const E: LittleEndian = LittleEndian;
/// Names of sections, and which part of a file they are.
const NAMES: [(&[u8; 8], Section); 2] = [
    (b".nv_fatb", Section::Loaded),
    (b"__nv_rel", Section::Relocatable),
];
/// The optional header of a program for 32 bits.
const SMALL: u16 = 0x10b;

/// The sections with fat binaries: those that are loaded first, each with its place in the file and its length there.
///
/// # Errors
/// It is none, or for 32 bits.
pub(crate) fn sections(data: &[u8]) -> Result<Vec<(Section, u64, u64)>, Flaw> {
    let wrong = |error: object::Error| Flaw::Host(format!("a PE file: {error}"));
    let dos = ImageDosHeader::parse(data).map_err(wrong)?;
    if dos.e_magic.get(E) != IMAGE_DOS_SIGNATURE {
        return Err(Flaw::Host("a PE file without its first header".to_owned()));
    }
    let mut offset = dos.nt_headers_offset().into();
    if object::read::pe::optional_header_magic(data).map_err(wrong)? == SMALL {
        return Err(Flaw::NotSupported("a PE file for 32 bits"));
    }
    let (headers, _) = ImageNtHeaders64::parse(data, &mut offset).map_err(wrong)?;
    let table = headers.sections(data, offset).map_err(wrong)?;
    let mut found = Vec::new();
    for (name, section) in NAMES {
        for row in table.iter() {
            work::count(1);
            if row.name != *name {
                continue;
            }
            // Without the padding up to the next block of the file.
            let stated = row.size_of_raw_data.get(E).min(row.virtual_size.get(E));
            let from = row.pointer_to_raw_data.get(E);
            found.push((section, u64::from(from), u64::from(stated)));
        }
    }
    Ok(found)
}
