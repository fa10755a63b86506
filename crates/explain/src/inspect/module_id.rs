//! The module id taken apart: a name that is unique among the objects of a program, made from the
//! source's path and from a function or variable that others can see.
//!
//! The rule was found by trying; every part that can be made again from
//! what is known is, and the explanation says whether it agrees.

use warpcc_plan::Step;

use super::facts::value_of;
use super::known::{EarlierFiles, ModuleId, is_checksum};
use crate::block::{Block, NamedValue};

/// The parts of an id.
struct Parts<'i> {
    checksum: &'i str,
    length: &'i str,
    name: &'i str,
    last: &'i str,
}

fn take_apart(id: &str) -> Option<Parts<'_>> {
    let (checksum, rest) = id.strip_prefix('_')?.split_once('_')?;
    let (length, rest) = rest.split_once('_')?;
    let at: usize = length.parse().ok()?;
    let name = rest.get(..at)?;
    let last = rest.get(at..)?.strip_prefix('_')?;
    let is_checksum = checksum.len() == 8 && checksum.bytes().all(|b| b.is_ascii_hexdigit());
    is_checksum.then_some(Parts {
        checksum,
        length,
        name,
        last,
    })
}

/// The parts of the id.
pub fn blocks(step: &Step, id: &str, known: &mut EarlierFiles) -> Vec<Block> {
    let Some(parts) = take_apart(id) else {
        return vec![Block::facts("", vec![NamedValue::new("module id", id)])];
    };
    known.module_ids.push(ModuleId {
        text: id.to_owned(),
        last: parts.last.to_owned(),
    });
    let path = value_of(step, "--orig_src_path_name").unwrap_or_default();
    let made = format!("{:08x}", crc32fast::hash(path.as_bytes()));
    let checksum = if made == parts.checksum {
        format!("CRC-32 of the source's path, {path}: computed here, it agrees")
    } else {
        format!("a checksum, and not the CRC-32 of {path}, which is {made}")
    };
    let rows = [
        (parts.checksum, checksum),
        (parts.length, "the length of the next part".to_owned()),
        (
            parts.name,
            "the source's name, with `_` for everything that a C name cannot have".to_owned(),
        ),
        (parts.last, last(parts.last)),
    ];
    let rows = rows.map(|(part, meaning)| vec![part.to_owned(), meaning]);
    vec![
        Block::text(
            "A name for this object that no other object of a program has. Static device variables, \
             the fat binary's wrapper and the registration function contain it when objects are linked \
             on the device; cudafe++ and every cicc must use the same one.",
        ),
        Block::facts("", vec![NamedValue::new("module id", id)]),
        Block::table("What it is made of", &["part", "what it is"], rows.to_vec()),
    ]
}

fn last(part: &str) -> String {
    let numbers = part.split_once('_');
    if numbers.is_some_and(|(checksum, process)| is_checksum(checksum) && is_number(process)) {
        "nothing here can be seen from outside, so a checksum and the number of cudafe++'s \
         process: another one in each run"
            .to_owned()
    } else if is_checksum(part) {
        "CRC-32 of the mangled name of a function or variable that is defined here and can be seen \
         from outside"
            .to_owned()
    } else {
        "a function or variable that is defined here and can be seen from outside; a longer name \
         would be a checksum"
            .to_owned()
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_comes_apart() {
        let parts = take_apart("_97f150be_19_cuda_leaf_splits_cu_9978434b_4242").expect("an id");
        assert_eq!(
            (parts.name, parts.last),
            ("cuda_leaf_splits_cu", "9978434b_4242")
        );
        assert!(last(parts.last).contains("process"));
        let parts = take_apart("_00000000_4_a_cu_main").expect("an id");
        assert_eq!((parts.name, parts.last), ("a_cu", "main"));
        for broken in ["", "_", "_x_1_a_b", "_97f150be_99_a_b", "_97f150be_1_a"] {
            assert!(take_apart(broken).is_none(), "{broken}");
        }
    }

    #[test]
    fn the_function_is_found_again() {
        // NVCC_FACTS' own example.
        let id = ModuleId {
            text: String::new(),
            last: "b81a68a1".into(),
        };
        let symbols = ["main", "_Z6kernelv"];
        assert_eq!(id.named_after(symbols.into_iter()), Some("_Z6kernelv"));
        let id = ModuleId {
            text: String::new(),
            last: "main".into(),
        };
        assert_eq!(id.named_after(symbols.into_iter()), Some("main"));
    }
}
