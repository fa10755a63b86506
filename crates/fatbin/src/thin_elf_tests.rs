//! Rewritten containers that do not fit are an error.

use super::place;
use crate::container::Section;
use crate::rewritten::Rewritten;

#[test]
fn containers_that_do_not_fit_are_an_error() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/corpus/fatbin-host/two-sections-in-one-place"
    );
    // The header is not in it: an object for x86-64, six sections, the second with the names.
    let mut header = [0; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    for (at, byte) in [(0x10, 1), (0x12, 62), (0x14, 1), (0x28, 64), (0x34, 64)] {
        header[at] = byte;
    }
    for (at, byte) in [(0x3a, 64), (0x3c, 6), (0x3e, 1)] {
        header[at] = byte;
    }
    let file = [&header[..], &std::fs::read(file).expect("readable")].concat();
    let container = |offset: u64, length| Rewritten {
        section: Section::Loaded,
        offset,
        size: 160,
        bytes: vec![0; length],
    };
    for (containers, part) in [
        // As two sections in one place would give it.
        (vec![container(560, 96), container(560, 96)], "do not fit"),
        (vec![container(560, 200)], "do not fit"),
        (vec![container(568, 96), container(576, 96)], "do not fit"),
        // It fits into both sections.
        (vec![container(560, 96)], "sections 2 and 3 overlap"),
    ] {
        let said = place(&file, &containers).expect_err("it does not fit");
        assert!(said.contains(part), "{said}");
    }
}
