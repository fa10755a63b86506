//! Compares two outputs byte for byte and says where they part. It knows ELF only
//! through readelf, objcopy and objdump, and only to word the message or to set the
//! keep folder's name aside.

use super::snapshot::{Snapshot, SnapshotEntry};
use super::streams::without_folder;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How equal two outputs must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// Every byte.
    Bytes,
    /// Every byte but the keep folder's name in DWARF, where plain nvcc writes its own
    /// random one: all sections but the debug ones by bytes, those by their meaning.
    ButKeepFolder,
}

/// Every way in which `got` is not `want`; empty when they are the same.
/// `scratch` is a folder for the files that the tools need.
pub fn differences(
    want: &Snapshot,
    got: &Snapshot,
    exactness: Exactness,
    scratch: &Path,
) -> Vec<String> {
    let mut found = Vec::new();
    for (name, wanted) in &want.entries {
        match got.entries.get(name) {
            None => found.push(format!("{name}: nvcc made it, warpcc did not")),
            Some(entry) if entry == wanted => {}
            Some(entry) => found.extend(unequal(name, wanted, entry, exactness, scratch)),
        }
    }
    for name in got.entries.keys() {
        if !want.entries.contains_key(name) {
            found.push(format!("{name}: warpcc made it, nvcc did not"));
        }
    }
    found
}

fn unequal(
    name: &str,
    want: &SnapshotEntry,
    got: &SnapshotEntry,
    exactness: Exactness,
    scratch: &Path,
) -> Option<String> {
    let (
        SnapshotEntry::File {
            mode,
            links,
            owner,
            bytes,
        },
        SnapshotEntry::File {
            mode: got_mode,
            links: got_links,
            owner: got_owner,
            bytes: got_bytes,
        },
    ) = (want, got)
    else {
        return Some(format!(
            "{name}: {} from nvcc, {} from warpcc",
            kind(want),
            kind(got)
        ));
    };
    if (links, owner) != (got_links, got_owner) {
        return Some(format!(
            "{name}: {links} names and owner {owner:?} from nvcc, {got_links} and {got_owner:?} from warpcc"
        ));
    }
    if mode != got_mode {
        return Some(format!(
            "{name}: mode {mode:o} from nvcc, {got_mode:o} from warpcc"
        ));
    }
    super::make_dir(scratch);
    let (a, b) = (scratch.join("want"), scratch.join("got"));
    for (path, bytes) in [(&a, bytes), (&b, got_bytes)] {
        fs::write(path, bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    if exactness == Exactness::ButKeepFolder && same_but_debug_paths(&a, &b, scratch) {
        return None;
    }
    let offset = first_difference(bytes, got_bytes);
    Some(format!(
        "{name}: {} bytes from nvcc, {} from warpcc; first difference at {offset:#x}{}\n  nvcc   {}\n  warpcc {}",
        bytes.len(),
        got_bytes.len(),
        section_at(&a, offset).map_or_else(String::new, |s| format!(" in {s}")),
        excerpt(bytes, offset),
        excerpt(got_bytes, offset),
    ))
}

fn kind(entry: &SnapshotEntry) -> String {
    match entry {
        SnapshotEntry::File { .. } => "a file".to_owned(),
        other => format!("{other:?}"),
    }
}

fn first_difference(a: &[u8], b: &[u8]) -> usize {
    a.iter()
        .zip(b)
        .position(|(x, y)| x != y)
        .unwrap_or_else(|| a.len().min(b.len()))
}

/// A few bytes around an offset, readable whether text or binary.
fn excerpt(bytes: &[u8], offset: usize) -> String {
    let start = offset.saturating_sub(24).min(bytes.len());
    let end = offset.saturating_add(40).min(bytes.len());
    bytes[start..end].escape_ascii().to_string()
}

/// The ELF section that holds a file offset, when it is an ELF file.
fn section_at(file: &Path, offset: usize) -> Option<String> {
    let listing = stdout_of("readelf", &["-SW"], file)?;
    listing.lines().find_map(|line| {
        // "  [ 3] .text  PROGBITS  address offset size ..."
        let fields: Vec<&str> = line.split(']').nth(1)?.split_whitespace().collect();
        let start = usize::from_str_radix(fields.get(3)?, 16).ok()?;
        let size = usize::from_str_radix(fields.get(4)?, 16).ok()?;
        (start..start.checked_add(size)?)
            .contains(&offset)
            .then(|| (*fields.first().unwrap_or(&"?")).to_owned())
    })
}

/// Without debug sections byte-identical, and the debug sections say the same once
/// folders of temporary files and offsets into string tables are set aside.
fn same_but_debug_paths(a: &Path, b: &Path, scratch: &Path) -> bool {
    let root = scratch.parent().unwrap_or(scratch);
    let folders = ["keep", "tmp", "cache"].map(|name| root.join(name));
    let text = |file: &Path| {
        let text = String::from_utf8(fs::read(file).ok()?).ok()?;
        Some(meaning(&text, &folders))
    };
    // Preprocessed text (`-cuda`) has the folder in its line markers.
    if let (Some(a), Some(b)) = (text(a), text(b)) {
        return a == b;
    }
    let stripped = |file: &Path, name: &str| {
        let out = scratch.join(name);
        let status = Command::new("objcopy")
            .args(["--strip-debug"])
            .args([file, &out])
            .status();
        status
            .is_ok_and(|s| s.success())
            .then(|| fs::read(&out).ok())?
    };
    let said = |file: &Path| {
        let text = stdout_of(
            "readelf",
            &["-W", "--debug-dump=info,abbrev,decodedline"],
            file,
        )?;
        Some(meaning(&text, &folders))
    };
    let (bare_a, bare_b) = (stripped(a, "want.bare"), stripped(b, "got.bare"));
    bare_a.is_some() && bare_a == bare_b && said(a).is_some() && said(a) == said(b)
}

/// A readelf dump without offsets into string tables and folders of temporary files.
fn meaning(dump: &str, folders: &[PathBuf]) -> Vec<String> {
    dump.lines()
        // The file's own name is the scratch file's.
        .filter(|line| !line.starts_with("File:"))
        .map(|line| {
            let mut line = line.to_owned();
            if let Some(at) = line.find("offset: ")
                && let Some(end) = line[at..].find(')')
            {
                line.replace_range(at..at + end, "");
            }
            folders.iter().fold(line, |line, folder| {
                without_folder(&line, &folder.to_string_lossy())
            })
        })
        .collect()
}

fn stdout_of(tool: &str, args: &[&str], file: &Path) -> Option<String> {
    let output = Command::new(tool).args(args).arg(file).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
