//! Files that are damaged or made to do harm: a clear problem, bounded memory, the rest still read.

mod containers;

use std::io::Write;
use std::path::Path;

use containers::{container, image, packed};
use proptest::prelude::*;
use tempfile::NamedTempFile;
use warpcc_fatbin::{
    Binary, BinaryInput, Depth, Flaw, Format, Keep, Listing, OpenFailure, ReadLimits, Situation,
    judge, list, read, thin, thin_bytes,
};

const TEXT: &[u8] = b"// Cuda compilation tools, release 12.4, V12.4.1\n.visible .entry k()\n";
const ZSTD: u64 = 0x8011;
const LZ4: u64 = 0x2011;

fn ptx() -> Vec<u8> {
    image(1, 90, TEXT)
}

fn opened(bytes: &[u8]) -> (NamedTempFile, Result<Binary, OpenFailure>) {
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("written");
    let input = BinaryInput::file(file.path());
    let binary = Binary::open(input, &ReadLimits::default()).map_err(|error| error.why);
    (file, binary)
}

fn listed(bytes: &[u8]) -> Listing {
    let (_file, binary) = opened(bytes);
    list(
        &binary.expect("it opens"),
        Depth::Kernels,
        &ReadLimits::default(),
    )
}

fn flaws(listing: &Listing) -> Vec<String> {
    listing
        .problems
        .iter()
        .map(|p| p.flaw.to_string())
        .collect()
}

#[test]
fn images_around_damage_are_listed() {
    let good = container(&[ptx()]);
    let mut broken = container(&[ptx(), ptx()]);
    // The second image's header is cut to nothing.
    let second = 16 + ptx().len();
    broken[second + 4..second + 8].fill(0);
    let file = [good.clone(), broken, b"rubbish!".to_vec(), good].concat();
    let listing = listed(&file);
    assert_eq!(listing.rows.len(), 3, "{:?}", flaws(&listing));
    assert_eq!(listing.rows[2].container, 2);
    let said = flaws(&listing);
    assert!(
        said.iter().any(|flaw| flaw.contains("header of 0 bytes")),
        "{said:?}"
    );
    assert!(
        said.iter()
            .any(|flaw| flaw.contains("neither a container nor padding")),
        "{said:?}"
    );
}

#[test]
fn every_truncation_is_told_and_none_is_fatal() {
    let whole = container(&[ptx(), ptx()]);
    for length in 4..whole.len() {
        let listing = listed(&whole[..length]);
        assert!(!listing.problems.is_empty(), "{length}");
        assert!(listing.rows.len() < 2, "{length}");
    }
    assert!(listed(&whole).problems.is_empty());
}

#[test]
fn a_decompression_bomb_is_an_error() {
    let zeros = zstd::bulk::compress(&vec![0; 64 << 20], 3).expect("compressed");
    let size = u32::try_from(zeros.len()).expect("small");
    for (said, part) in [
        // The stated size is above the limit.
        (1_u64 << 40, "limit"),
        // It unpacks to more than it states.
        (4096, "zstd"),
        // And to less.
        (65 << 20, "not to the stated"),
    ] {
        let listing = listed(&container(&[
            packed(1, 90, ZSTD, size, said, &zeros),
            ptx(),
        ]));
        assert_eq!(listing.rows.len(), 2);
        let flaws_found = flaws(&listing);
        assert!(
            flaws_found.len() == 1 && flaws_found[0].contains(part),
            "{flaws_found:?}"
        );
    }
    let small = ReadLimits {
        image: 1 << 20,
        ..ReadLimits::default()
    };
    let bytes = container(&[packed(1, 90, ZSTD, size, 64 << 20, &zeros)]);
    let found = read(&bytes, Format::Fatbin, &small);
    let payload = found.containers[0].images[0].payload(&small);
    assert!(matches!(payload, Err(Flaw::TooLarge { .. })));
    // LZ4 cannot grow as much as this one says, which is known before anything is allocated.
    let listing = listed(&container(&[packed(1, 90, LZ4, 16, 1 << 29, &[0; 16])]));
    assert!(flaws(&listing)[0].contains("a size it cannot have"));
    // More compressed bytes than there are.
    let listing = listed(&container(&[packed(1, 90, ZSTD, 1 << 20, 10, &[0; 16])]));
    assert!(flaws(&listing)[0].contains("more compressed bytes"));
}

#[test]
fn containers_do_not_share_their_images() {
    // Each container has an image up to the images at the end, and states a size that has them in
    // it; behind them all is an invalid header.
    const COUNT: usize = 500;
    const UNIT: usize = 16 + 64;
    let tail: Vec<u8> = (0..COUNT).flat_map(|_| image(1, 90, b"")).collect();
    let mut bytes = Vec::new();
    for number in 0..COUNT {
        let between = (COUNT - 1 - number) * UNIT;
        let mut first = image(1, 80, b"");
        first[8..16].copy_from_slice(&(between as u64).to_le_bytes());
        let mut begin = container(&[first]);
        let size = (UNIT - 16 + between + tail.len() + 64) as u64;
        begin[8..16].copy_from_slice(&size.to_le_bytes());
        bytes.extend(begin);
    }
    bytes.extend(tail);
    bytes.extend([0xff; 64]);
    let found = read(&bytes, Format::Fatbin, &ReadLimits::default());
    let images: usize = found.containers.iter().map(|c| c.images.len()).sum();
    assert_eq!((found.containers.len(), images), (1, 1 + COUNT));
    assert!(!found.problems.is_empty());
    // Nor does what is behind them get lost.
    bytes.extend(container(&[ptx()]));
    assert_eq!(listed(&bytes).rows.len(), 1 + COUNT + 1);
}

/// One image that is `content` compressed with a table of one part, PTX.
fn concatenated(content: &[u8]) -> Vec<u8> {
    let mut part = image(1, 90, b"");
    part[4..8].fill(0);
    part[8..16].copy_from_slice(&(content.len() as u64).to_le_bytes());
    let compressed = zstd::bulk::compress(content, 3).expect("compressed");
    let size = u32::try_from(compressed.len()).expect("small");
    let mut bytes = packed(0x100, 0, ZSTD, size, content.len() as u64, &compressed);
    let table = [1_u32.to_le_bytes(), 72_u32.to_le_bytes()].concat();
    bytes[4..8].copy_from_slice(&136_u32.to_le_bytes());
    bytes[0x14..0x18].copy_from_slice(&64_u32.to_le_bytes());
    bytes.splice(64..64, [table, part].concat());
    bytes
}

#[test]
fn concatenated_images_share_one_limit() {
    let limits = ReadLimits {
        image: 1 << 20,
        ..ReadLimits::default()
    };
    let one = concatenated(&vec![0; 400 << 10]);
    let bytes = [
        container(&[one.clone(), one.clone()]),
        container(&[one.clone(), ptx(), one]),
    ]
    .concat();
    let found = read(&bytes, Format::Fatbin, &limits);
    let images = || found.containers.iter().flat_map(|c| &c.images);
    let held: u64 = images()
        .filter(|i| i.place.part.is_some())
        .map(|i| i.stored_size)
        .sum();
    assert_eq!(held, 800 << 10);
    // Images above the limit are still listed, as they are in the file.
    assert_eq!(images().count(), 5);
    let flaws_found: Vec<String> = found.problems.iter().map(|p| p.flaw.to_string()).collect();
    assert_eq!(flaws_found.len(), 2);
    assert!(
        flaws_found
            .iter()
            .all(|flaw| flaw.contains("concatenated images in one file"))
    );
}

/// A library for x86-64 with a container of two cubins, a wrapper that points at it, and sections
/// of these names over the container's bytes. Its tables are where the fuzzer has them.
fn library(over_the_container: [&str; 2]) -> Vec<u8> {
    const CONTAINER: usize = 64 + 6 * 64 + 2 * 56;
    let container = container(&[image(2, 80, b"80"), image(2, 90, b"90")]);
    let wrapper = CONTAINER + container.len();
    let names = wrapper + 24;
    let strings = format!(
        "\0.shstrtab\0.nvFatBinSegment\0{}\0{}\0",
        over_the_container[0], over_the_container[1]
    );
    let mut bytes = vec![0; 64];
    bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    let fields = [
        (0x10, 3_u16), // A library
        (0x12, 62),
        (0x14, 1),
        (0x20, 64 + 6 * 64), // The segments
        (0x28, 64),          // The sections
        (0x34, 64),
        (0x36, 56),
        (0x38, 2),
        (0x3a, 64),
        (0x3c, 6),
        (0x3e, 1), // The names' section
    ];
    for (at, value) in fields {
        bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
    bytes.resize(CONTAINER, 0);
    let over = CONTAINER..wrapper;
    for (index, name, kind, address, range) in [
        (1, ".shstrtab", 3_u32, 0, names..names + strings.len()),
        (2, over_the_container[0], 1, ADDRESS, over.clone()),
        (3, over_the_container[1], 1, ADDRESS, over),
        (4, ".nvFatBinSegment", 1, 2 * ADDRESS, wrapper..names),
    ] {
        let header = &mut bytes[64 + index * 64..][..64];
        let name = strings.find(name).expect("one of the names") as u32;
        header[..4].copy_from_slice(&name.to_le_bytes());
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[16..24].copy_from_slice(&address.to_le_bytes());
        header[24..32].copy_from_slice(&(range.start as u64).to_le_bytes());
        header[32..40].copy_from_slice(&(range.len() as u64).to_le_bytes());
        header[48] = 8;
    }
    bytes.extend(container);
    bytes.extend([1_u64, ADDRESS, 0].map(u64::to_le_bytes).concat());
    bytes.extend(strings.bytes());
    bytes
}

const ADDRESS: u64 = 0x1000;

#[test]
fn a_section_over_another_is_read_once_and_not_thinned() {
    let keep: Keep = "sm_90".parse().expect("a list");
    let refused = |bytes: &[u8]| {
        let thinned = thin_bytes(bytes, Format::Elf, &keep, None, &ReadLimits::default());
        thinned.expect_err("it cannot be thinned").to_string()
    };
    let twice = library([".nv_fatbin", ".nv_fatbin"]);
    let found = read(&twice, Format::Elf, &ReadLimits::default());
    assert_eq!(found.containers.len(), 1);
    assert_eq!(found.problems.len(), 1);
    let said = refused(&twice);
    assert!(said.contains("section 3 (.nv_fatbin) overlaps"), "{said}");
    let seed = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/corpus/fatbin-host/two-sections-in-one-place"
    );
    // The fuzzer begins with this file, too, and writes the header itself.
    assert!(std::fs::read(seed).expect("readable") == twice[64..]);
    let both = library([".nv_fatbin", "__nv_relfatbin"]);
    assert_eq!(
        read(&both, Format::Elf, &ReadLimits::default())
            .problems
            .len(),
        1
    );
    refused(&both);
    // Something else would be overwritten.
    let said = refused(&library([".comment", ".nv_fatbin"]));
    assert!(said.contains("sections 2 and 3 overlap"), "{said}");
}

#[test]
fn unknown_kinds_and_flags_are_named_by_number() {
    let strange = packed(0x77, 90, 0x8000_0000_0011, 0, 0, b"?");
    let listing = listed(&container(&[strange, ptx()]));
    assert!(listing.problems.is_empty());
    assert_eq!(listing.rows[0].kind.to_string(), "unknown kind 0x77");
    assert!(
        listing.rows[0]
            .flags
            .contains(&"unknown 0x800000000000".to_owned())
    );
    assert_eq!(listing.rows[1].kernels().count(), 1);
}

#[test]
fn other_files_say_what_they_are() {
    for (bytes, part) in [
        (&b"MZ\x90\0 a program for Windows"[..], "PE"),
        (
            b"\xcf\xfa\xed\xfe\x07\0\0\x01 a library for macOS",
            "Mach-O",
        ),
        (
            b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x03\0",
            "32-bit",
        ),
        (b"\x7fELF\x02\x01\x01\0", "corrupt"),
        (b"\x01\x5a\xe5\x1e\0\0\0\0", "not an ELF file"),
        (b"just text", "not an ELF file"),
        (b"", "empty"),
        (b"PK\x03\x04 no zip file at all, whatever it says", "wheel"),
    ] {
        let (_file, binary) = opened(bytes);
        let said = match binary {
            Err(why) => why.to_string(),
            Ok(binary) => flaws(&list(&binary, Depth::Headers, &ReadLimits::default())).join(", "),
        };
        assert!(said.contains(part), "{bytes:?}: {said}");
    }
    let (inputs, errors) = warpcc_fatbin::find(&[Path::new("/dev/zero").into(), "/nowhere".into()]);
    assert_eq!((inputs.len(), errors.len()), (0, 2));
}

/// Whatever the bytes, every reader comes back, and a list agrees with itself.
fn all_readers(bytes: &[u8]) {
    let (_file, binary) = opened(bytes);
    let Ok(binary) = binary else { return };
    let limits = ReadLimits {
        image: 1 << 20,
        ..ReadLimits::default()
    };
    let headers = list(&binary, Depth::Headers, &limits);
    let kernels = list(&binary, Depth::Kernels, &limits);
    assert_eq!(headers.rows.len(), kernels.rows.len());
    let gpus = ["sm_90", "next"].map(|gpu| gpu.parse().expect("a GPU"));
    judge(&binary, &gpus, &Situation::default(), &limits);
    let keep: Keep = "sm_90+ptx".parse().expect("a list");
    if let Ok(thinned) = thin(&binary, &keep, None, &limits) {
        assert!(thinned.bytes.len() <= bytes.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn flipped_bytes_never_panic(flips in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..12)) {
        let zeros = zstd::bulk::compress(TEXT, 3).expect("compressed");
        let size = u32::try_from(zeros.len()).expect("small");
        let mut bytes = container(&[ptx(), packed(1, 80, ZSTD, size, TEXT.len() as u64, &zeros), packed(0x100, 0, ZSTD, size, TEXT.len() as u64, &zeros)]);
        for (at, value) in flips {
            // The magic stays, or nothing behind it is reached.
            let at = 4 + at % (bytes.len() - 4);
            bytes[at] = value;
        }
        all_readers(&bytes);
    }
}

proptest! {
    // Each case is a file of tens of kilobytes.
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_damaged_host_never_panics(flips in proptest::collection::vec((0..4_usize, any::<usize>(), any::<u8>()), 1..12)) {
        // This test's own program is an ELF file with every table there is; its head will do.
        let program = std::env::current_exe().expect("a path");
        let mut bytes = std::fs::read(program).expect("readable");
        let tables = u64::from_le_bytes(bytes[0x28..0x30].try_into().expect("eight bytes")) as usize;
        let length = bytes.len();
        for (where_to, at, value) in flips {
            // The ELF header, the segments, the sections, anywhere.
            let range = [0x10..0x40, 0x40..0x400, tables..length, 0..length][where_to].clone();
            bytes[range.start + at % range.len()] = value;
        }
        all_readers(&bytes);
    }
}
