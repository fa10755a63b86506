//! What is fuzzed: every reader of what nvcc, a user, a disk or another process wrote.
//!
//! A target fails by panicking: for itself, or because something that must hold does not.

use warpcc_cache::{RecordError, decode_record};
use warpcc_fatbin::{Format, Keep, ReadLimits};
use warpcc_plan::{FileKind, Invocation, TaskGraph, Transcript, words};
use warpcc_remote_client::bundle_index::{ContentKind, Index, WINDOW};
use warpcc_rtc::Pack;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The target of that name.
pub fn find(name: &str) -> Option<fn(&[u8])> {
    Some(match name {
        "transcript" => transcript,
        "words" => split,
        "invocation" => invocation,
        "record" => record,
        "watch-log" => watch_log,
        "fatbin" => fatbin,
        "fatbin-host" => fatbin_host,
        "kernel" => kernel,
        "pack" => pack,
        "bundle-index" => bundle_index,
        _ => return None,
    })
}

/// What is kept of a kernel besides its image, and the text of a header.
fn kernel(data: &[u8]) {
    let kept = warpcc_rtc::read_entry(b"image", data);
    assert!(kept.is_none_or(|kept| kept.image[..] == b"image"[..]));
    // A name that is written out is found, whatever stands before it.
    let mut text = data.to_vec();
    text.extend_from_slice(b"\n#include <fuzz/found.h>\n");
    let names = warpcc_rtc::names_included(&text);
    // Behind a backslash the line belongs to the one before, which may hide nothing either.
    assert!(names.iter().any(|name| name == b"fuzz/found.h"));
}

/// A pack of images, as it is and with the hash of its index put right. The first two bytes say how long the index is.
fn pack(data: &[u8]) {
    let _ = Pack::of_bytes(data.to_vec());
    let Some((length, rest)) = data.split_first_chunk::<2>() else {
        return;
    };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (index, bodies) = rest.split_at(length);
    let mut bytes = b"warpcc-pack 1\n".to_vec();
    bytes.extend((bytes.len() as u64 + 48 + bodies.len() as u64).to_le_bytes());
    bytes.extend((index.len() as u64).to_le_bytes());
    bytes.extend(blake3::hash(index).as_bytes());
    bytes.extend(bodies);
    bytes.extend(index);
    match Pack::of_bytes(bytes) {
        Ok(pack) => {
            let keys: Vec<_> = pack.keys().collect();
            assert_eq!(keys.len(), pack.len());
            assert!(keys.is_sorted_by(|one, other| one.0 < other.0));
            for key in &keys {
                assert!(!matches!(pack.get(key), Ok(None)));
            }
        }
        // Or the format has changed, and this no longer reaches anything.
        Err(error) => assert!(error.why.contains("cannot be understood"), "{error}"),
    }
}

/// The index of bundles, as it is and with its rows put in order; and several of them as one.
fn bundle_index(data: &[u8]) {
    let _ = Index::read(data);
    let Some((count, rest)) = data.split_first() else {
        return;
    };
    let (numbers, rows) = rest.split_at((usize::from(*count) % 8 * 8).min(rest.len()));
    let mut rows: Vec<Vec<u8>> = rows.chunks_exact(INDEX_ROW).map(<[u8]>::to_vec).collect();
    for row in &mut rows {
        row[0] %= 2;
    }
    rows.sort();
    rows.dedup_by(|later, earlier| later[..33] == earlier[..33]);
    let read = |rows: &[Vec<u8>]| {
        let mut bytes = b"warpccI1".to_vec();
        bytes.extend((numbers.len() as u32 / 8).to_le_bytes());
        bytes.extend(&numbers[..numbers.len() / 8 * 8]);
        bytes.extend(rows.concat());
        // Or the format has changed, and this no longer reaches anything.
        Index::read(&bytes).expect("an index")
    };
    let (some, others) = rows.split_at(rows.len() / 2);
    let all = read(&rows);
    assert_eq!(Index::read(&all.bytes()).as_ref(), Some(&all));
    // Cut in two and put together, in whatever order, it is the same, within the limits.
    let (some, others) = (read(some), read(others));
    let merged = Index::merged([&some, &others]);
    assert_eq!(merged, Index::merged([&others, &some]));
    assert_eq!(merged, Index::merged([&all]));
    assert_eq!(merged, Index::merged([&merged, &all]));
    assert_eq!(Index::read(&merged.bytes()).as_ref(), Some(&merged));
    for row in &rows {
        let kind = if row[0] == 0 {
            ContentKind::Result
        } else {
            ContentKind::Blob
        };
        let name = (kind, row[1..33].try_into().expect("32 bytes"));
        let place = all.find(&name).expect("it is there");
        if let Some(kept) = merged.find(&name) {
            assert_eq!(kept, place);
            let age = merged.newest().checked_sub(kept.bundle.number());
            assert!(age.is_some_and(|age| age < WINDOW));
        }
        let without = all.without(|bundle| bundle != place.bundle);
        assert_eq!(without.find(&name), None);
    }
}

/// Kind, name and four numbers.
const INDEX_ROW: usize = 65;

/// A dry run, as it is read from nvcc's standard error.
fn transcript(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(transcript) = Transcript::parse(text) else {
        return;
    };
    for private in ["/keep/K/", ""] {
        let Ok(graph) = TaskGraph::build(&transcript, private) else {
            continue;
        };
        for (number, step) in graph.steps.iter().enumerate() {
            assert!(graph.needs(number).iter().all(|&needed| needed < number));
            for &id in &step.reads {
                let file = graph.file(id);
                assert!(file.kind != FileKind::Temp || file.writer.is_some());
            }
            for &id in &step.writes {
                assert_ne!(graph.file(id).kind, FileKind::External);
            }
            let _ = (step.names_matter(), step.has_debug_information());
        }
    }
}

/// One command as nvcc would give it to a shell.
fn split(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = words::split(text, |name| {
            (name.len() % 2 == 1).then(|| name.to_uppercase())
        });
    }
}

/// NVCC_PREPEND_FLAGS, NVCC_APPEND_FLAGS, an options file and the arguments, one on a line.
fn invocation(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut lines = text.split('\n').map(str::to_owned);
    let [prepend, append, file] = [(); 3].map(|()| lines.next().unwrap_or_default());
    let args: Vec<String> = lines.collect();
    let read = |name: &str| (name != "missing").then(|| file.clone().into_bytes());
    let Ok(read_once) = Invocation::parse(&args, &prepend, &append, &read) else {
        return;
    };
    let again = Invocation::parse(&args, &prepend, &append, &read);
    assert_eq!(Ok(&read_once), again.as_ref());
    let _ = (read_once.key_parts(), read_once.is_absolute());
}

/// A record of the store, as it is and with its checksums put right, so that what is behind them
/// is reached.
fn record(data: &[u8]) {
    let _ = decode_record(data);
    let mut repaired = data.to_vec();
    repair(&mut repaired);
    let outcome = decode_record(&repaired);
    // Or the format has changed, and this no longer reaches anything.
    let stopped = matches!(
        outcome,
        Err(RecordError::Magic | RecordError::Version(_) | RecordError::Checksum)
    );
    assert!(!stopped || data.len() < HEADER);
}

const MAGIC: &[u8; 8] = b"WCCREC04";
/// Magic, key and checksum.
const HEADER: usize = 48;
/// Length, identity and checksum, before each variant's body.
const BEFORE_BODY: usize = 20;

/// See the grammar in `crates/cache/src/record.rs`.
fn repair(record: &mut [u8]) {
    let Some((header, mut variants)) = record.split_at_mut_checked(HEADER) else {
        return;
    };
    header[..8].copy_from_slice(MAGIC);
    let checksum = xxh3_64(&header[..40]);
    header[40..].copy_from_slice(&checksum.to_le_bytes());
    while let Some((head, rest)) = variants.split_at_mut_checked(BEFORE_BODY) {
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        // A length that leaves the record is cut, as long as there is one variant to read.
        let length = (length as usize).min(rest.len());
        head[..4].copy_from_slice(&(length as u32).to_le_bytes());
        let (body, after) = rest.split_at_mut(length);
        let mut hasher = Xxh3::new();
        hasher.update(&head[4..12]);
        hasher.update(body);
        let checksum = hasher.digest();
        head[12..].copy_from_slice(&checksum.to_le_bytes());
        variants = after;
    }
}

/// What the preloaded library wrote down.
fn watch_log(data: &[u8]) {
    if let Ok(observed) = warpcc_watch::read_log(data, "/bin/sh".as_ref(), &|_| false) {
        assert!(!observed.processes.is_empty());
    }
}

/// Fat binaries and cubins, every image looked into. The input is tried as it is, as the images of
/// a container, and as the payload of one.
fn fatbin(data: &[u8]) {
    look_into(data, Format::Fatbin);
    let mut images = Vec::from(*b"\x50\xed\x55\xba\x01\0\x10\0");
    images.extend((data.len() as u64).to_le_bytes());
    images.extend(data);
    look_into(&images, Format::Fatbin);
    let mut container = Vec::from(*b"\x50\xed\x55\xba\x01\0\x10\0");
    let padded = data.len().next_multiple_of(8);
    container.extend((padded as u64 + 64).to_le_bytes());
    let mut header = [0; 64];
    header[0] = if data.starts_with(b"\x7fELF") { 2 } else { 1 };
    header[4] = 64;
    header[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
    container.extend(header);
    container.extend(data);
    container.resize(16 + 64 + padded, 0);
    look_into(&container, Format::Fatbin);
}

/// Files that hold fat binaries, by what their first bytes say; and thinning them. The input is
/// also tried behind an ELF header whose tables begin with it, as an object and as a library.
fn fatbin_host(data: &[u8]) {
    if let Some(format) = Format::detect(data) {
        look_into(data, format);
        thin_out(data, format);
    }
    for kind in [1_u8, 3] {
        let mut elf = vec![0; ELF_HEADER];
        elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        elf[0x10] = kind;
        elf[0x12] = 62; // x86-64
        elf[0x14] = 1;
        elf[0x20..0x22].copy_from_slice(&SEGMENTS_AT.to_le_bytes());
        elf[0x28] = ELF_HEADER as u8; // e_shoff
        elf[0x34] = ELF_HEADER as u8;
        elf[0x36] = 56; // a segment
        elf[0x38] = SEGMENTS as u8;
        elf[0x3a] = 64; // a section
        elf[0x3c] = SECTIONS as u8;
        elf[0x3e] = 1; // the section of names
        elf.extend_from_slice(data);
        look_into(&elf, Format::Elf);
        thin_out(&elf, Format::Elf);
    }
}

/// An ELF header's size, and how many sections and segments the seeds have, in this order.
const ELF_HEADER: usize = 64;
const SECTIONS: usize = 6;
const SEGMENTS: usize = 2;
const SEGMENTS_AT: u16 = (ELF_HEADER + SECTIONS * 64) as u16;

fn thin_out(data: &[u8], format: Format) {
    let keep: Keep = "sm_90+ptx".parse().expect("a list");
    if let Ok(thinned) = warpcc_fatbin::thin_bytes(data, format, &keep, None, &LIMITS) {
        assert!(thinned.bytes.len() <= data.len());
        assert!(thinned.images.1 <= thinned.images.0);
        let _ = warpcc_fatbin::read(&thinned.bytes, format, &LIMITS);
    }
}

const LIMITS: ReadLimits = ReadLimits {
    image: 1 << 20,
    member: 1 << 20,
};

fn look_into(data: &[u8], format: Format) {
    let found = warpcc_fatbin::read(data, format, &LIMITS);
    for container in &found.containers {
        assert!(container.offset + container.size <= data.len() as u64);
        for image in &container.images {
            let inside = image.inside(&LIMITS);
            let quick = image.toolkit(&LIMITS);
            if let Ok(inside) = inside {
                assert!(inside.size <= LIMITS.image.max(data.len() as u64));
                for function in &inside.functions {
                    let _ = warpcc_fatbin::demangle(&function.name);
                }
            }
            let _ = quick;
        }
    }
}
