//! Which bytes of an image belong to which function.

use std::collections::HashMap;

use object::LittleEndian;
use object::elf::SHT_NOBITS;
use object::read::elf::SectionHeader;
use sha2::{Digest, Sha256};

use crate::cubin::Cubin;
use crate::error::Flaw;
use crate::image::ImageKind;
use crate::kernels;
use crate::ptx::ptx_kernels;

const E: LittleEndian = LittleEndian;
/// Dots in a section's name that may stand before a function's name: `.nv.capmerc.text.`, and room.
const MOST_DOTS: usize = 8;

/// What one function takes of its image, after decompression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owned {
    /// As in the symbol table, mangled.
    pub(crate) name: String,
    /// Whether the host starts it.
    pub(crate) is_kernel: bool,
    /// Its sections in a cubin, or its text up to the next kernel's.
    pub(crate) bytes: u64,
    /// Equal for functions of the same code and constants.
    pub(crate) digest: [u8; 32],
}

/// The functions of an image, in order, with what belongs to each. An image that is neither machine code nor PTX has none.
pub(crate) fn owned(kind: ImageKind, payload: &[u8]) -> Result<Vec<Owned>, Flaw> {
    match kind {
        ImageKind::Cubin => of_cubin(payload),
        ImageKind::Ptx => Ok(of_ptx(payload)),
        _ => Ok(Vec::new()),
    }
}

fn of_ptx(text: &[u8]) -> Vec<Owned> {
    let starts: Vec<(usize, &str)> = ptx_kernels(text).collect();
    let ends = starts.iter().skip(1).map(|(at, _)| *at);
    let ranges = starts.iter().zip(ends.chain([text.len()]));
    ranges
        .map(|((from, name), to)| Owned {
            name: (*name).to_owned(),
            is_kernel: true,
            bytes: (to - from) as u64,
            digest: Sha256::digest(&text[*from..to]).into(),
        })
        .collect()
}

fn of_cubin(payload: &[u8]) -> Result<Vec<Owned>, Flaw> {
    let cubin = Cubin::parse(payload)?;
    let mut numbers: HashMap<&[u8], usize> = HashMap::new();
    let mut functions: Vec<(Owned, Sha256)> = Vec::new();
    for (_, symbol, name) in kernels::own_functions(&cubin)? {
        numbers.insert(name, functions.len());
        let function = Owned {
            name: String::from_utf8_lossy(name).into_owned(),
            is_kernel: kernels::is_entry(symbol),
            bytes: 0,
            digest: [0; 32],
        };
        functions.push((function, Sha256::new()));
    }
    for (name, section) in cubin.named_sections() {
        let Some((kind, number)) = owner(name, &numbers) else {
            continue;
        };
        let Some((function, digest)) = functions.get_mut(number) else {
            continue;
        };
        if section.sh_type(E) == SHT_NOBITS {
            continue;
        }
        let data = section.data(E, cubin.data).unwrap_or_default();
        function.bytes = function.bytes.saturating_add(data.len() as u64);
        if decides(kind) {
            // Name and length: two sections cannot pass for one.
            digest.update(kind);
            digest.update((data.len() as u64).to_le_bytes());
            digest.update(data);
        }
    }
    let done = functions.into_iter().map(|(function, digest)| Owned {
        digest: digest.finalize().into(),
        ..function
    });
    Ok(done.collect())
}

/// The function that a section is named after, and what stands before its name.
fn owner<'n>(section: &'n [u8], numbers: &HashMap<&[u8], usize>) -> Option<(&'n [u8], usize)> {
    let dots = section.iter().enumerate().filter(|(_, b)| **b == b'.');
    dots.take(MOST_DOTS).find_map(|(dot, _)| {
        let (kind, name) = section.split_at(dot + 1);
        numbers.get(name).map(|number| (kind, *number))
    })
}

/// Whether a section decides what the function does. The rest names symbols by their numbers, which differ from image to
/// image.
fn decides(kind: &[u8]) -> bool {
    [&b".text."[..], b".nv.constant", b".rel"]
        .iter()
        .any(|start| kind.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_belongs_to_the_function_it_is_named_after() {
        let names = [&b"k"[..], b"a.b"];
        let numbers = names.iter().zip(0..).map(|(name, n)| (*name, n)).collect();
        for (section, expected) in [
            (&b".text.k"[..], Some((&b".text."[..], 0))),
            (b".nv.capmerc.text.k", Some((&b".nv.capmerc.text."[..], 0))),
            (b".nv.constant0.a.b", Some((&b".nv.constant0."[..], 1))),
            (b".symtab", None),
            (b".text.kk", None),
        ] {
            assert_eq!(owner(section, &numbers), expected);
        }
    }

    #[test]
    fn a_text_is_divided_at_its_kernels() {
        let text = b".version 9.5\n.visible .entry a() {\n}\n.visible .entry b() {\n}\n";
        let found = of_ptx(text);
        let sizes: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.bytes)).collect();
        assert_eq!(sizes, [("a", 24), ("b", 15)]);
    }
}
