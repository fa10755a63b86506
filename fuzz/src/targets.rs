//! What is fuzzed: every reader of what nvcc, a user, a disk or another process wrote.
//!
//! A target fails by panicking: for itself, or because something that must hold does not.

use warpcc_cache::{RecordError, decode_record};
use warpcc_plan::{FileKind, Invocation, TaskGraph, Transcript, words};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The target of that name.
pub fn find(name: &str) -> Option<fn(&[u8])> {
    Some(match name {
        "transcript" => transcript,
        "words" => split,
        "invocation" => invocation,
        "record" => record,
        "watch-log" => watch_log,
        _ => return None,
    })
}

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
    let read = |name: &str| (name != "missing").then(|| file.clone());
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
    let stopped = matches!(outcome, Err(RecordError::Magic | RecordError::Checksum));
    assert!(!stopped || data.len() < HEADER);
}

const MAGIC: &[u8; 8] = b"WCCREC01";
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
    if let Ok(observed) = warpcc_watch::read_log(data) {
        assert!(!observed.processes.is_empty());
    }
}
