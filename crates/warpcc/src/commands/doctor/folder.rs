//! Checks the cache's folder: whether it can be written, whether renaming works, its file system, and the free space.

use std::fs;
use std::io;
use std::path::Path;

use warpcc_cache::OpenError;
use warpcc_report::doctor::Finding;

use super::finding::{error_of, fine, note, warning};
use crate::config::{Config, format_bytes};
use crate::store;

/// Whether the cache can be opened at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usable {
    Yes,
    No,
}

/// With less free space than this, builds fail with or without a cache.
const SCARCE: u64 = 256 << 20;

pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) -> Usable {
    let folder = &config.dir.value;
    let shown = folder.display();
    let elsewhere = "name another folder: WARPCC_DIR=/a/folder/of/yours";
    if folder.exists() && !folder.is_dir() {
        findings.push(error_of(
            format!(
                "the cache folder {shown} is not a folder ({})",
                config.dir.source
            ),
            "nothing is cached",
            &format!("remove that file, or {elsewhere}"),
        ));
        return Usable::No;
    }
    whose(config, findings);
    if let Err(error) = write_and_rename(folder) {
        let what = format!("the cache folder {shown} cannot be written: {error}");
        findings.push(if config.readonly.value {
            note(what, "readonly is set, so nothing would be stored", "")
        } else {
            error_of(
                what,
                "nothing is cached: every call is built again",
                &format!("correct its owner and mode, or {elsewhere}"),
            )
        });
    } else {
        findings.push(fine(format!("the cache folder {shown} can be written")));
    }
    match rustix::fs::statfs(folder) {
        Err(error) => findings.push(note(
            format!("the file system of {shown} cannot be examined: {error}"),
            "",
            "",
        )),
        Ok(found) => {
            #[expect(
                clippy::unnecessary_cast,
                reason = "the width of these fields differs between architectures"
            )]
            let (kind, blocks, size) = (
                found.f_type as u64 & 0xffff_ffff,
                found.f_bavail as u64,
                found.f_bsize as u64,
            );
            if let Some((name, why)) = unsuited(kind) {
                findings.push(warning(
                    format!("the cache folder {shown} is on {name}"),
                    why,
                    "WARPCC_DIR=/a/folder/on/a/local/disk",
                ));
            }
            space(config, blocks.saturating_mul(size), findings);
        }
    }
    if folder.is_dir() {
        Usable::Yes
    } else {
        Usable::No
    }
}

/// Finds out which other users can read and write the folder. This is done before the cache is opened, because that changes the folder's mode.
fn whose(config: &Config, findings: &mut Vec<Finding>) {
    let shown = config.dir.value.display();
    if config.shared.value {
        findings.push(note(
            format!(
                "the cache folder {shown} is shared ({})",
                config.shared.source
            ),
            "anyone who can write there decides what your builds produce",
            "share only with people whose code you would run, or remove `shared` from the settings",
        ));
        return;
    }
    match store::try_open(config) {
        Err(error @ OpenError::Foreign { .. }) => findings.push(error_of(
            error.to_string(),
            "nothing is cached",
            "WARPCC_DIR=/a/folder/of/yours",
        )),
        // Other findings report this.
        Err(_) => {}
        Ok(store) if store.was_closed() => findings.push(warning(
            format!("other users could write to the cache folder {shown}, and now cannot"),
            "entries that they may have put there would be used",
            "warpcc cache clear",
        )),
        Ok(_) => findings.push(fine(format!(
            "only you can write to the cache folder {shown}"
        ))),
    }
}

/// Replaces a file by renaming a new one over it, as the store does for every entry.
fn write_and_rename(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let name = |what: &str| folder.join(format!(".doctor-{}-{what}", std::process::id()));
    let (new, old) = (name("new"), name("old"));
    let tried = fs::write(&old, "old")
        .and_then(|()| fs::write(&new, "new"))
        .and_then(|()| fs::rename(&new, &old))
        .and_then(|()| fs::read(&old));
    for left in [new, old] {
        drop(fs::remove_file(left));
    }
    match tried?.as_slice() {
        b"new" => Ok(()),
        _ => Err(io::Error::other(
            "a renamed file is not visible there at once",
        )),
    }
}

/// File systems by the number that statfs gives, and what is wrong with them.
fn unsuited(kind: u64) -> Option<(&'static str, &'static str)> {
    let network =
        "each look-up asks a server: hits take longer, and locks may not hold between machines";
    Some(match kind {
        0x6969 => ("a network share (NFS)", network),
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => ("a network share (SMB)", network),
        0x00c3_6400 => ("a network share (Ceph)", network),
        0x0bd0_0bd0 => ("a network share (Lustre)", network),
        0x5346_414f => ("a network share (AFS)", network),
        0x0102_1997 => (
            "a folder shared with a host (9p)",
            "each look-up leaves the virtual machine: hits take many times as long",
        ),
        0x6573_5546 => (
            "FUSE",
            "each look-up goes through another process, and its locks may not work",
        ),
        0x794c_7630 => (
            "a container's own layer (overlay)",
            "it is deleted with the container; keep the cache on a volume",
        ),
        _ => return None,
    })
}

fn space(config: &Config, free: u64, findings: &mut Vec<Finding>) {
    let held = store::open_quietly(config)
        .and_then(|store| store.size().ok())
        .map_or(0, |(bytes, _)| bytes);
    let room = free.saturating_add(held);
    let fix = format!(
        "make room, or set WARPCC_MAX_SIZE={}M, then `warpcc cache gc`",
        (room / 2) >> 20
    );
    if free < SCARCE {
        findings.push(error_of(
            format!("only {} are free where the cache is", format_bytes(free)),
            "results cannot be stored",
            &fix,
        ));
        return;
    }
    match config.max_size.value.bytes() {
        Some(limit) if limit > room => findings.push(warning(
            format!(
                "the cache may grow to {}, and {} are free",
                format_bytes(limit),
                format_bytes(free)
            ),
            "the disk fills up before the cache removes anything",
            &fix,
        )),
        None => findings.push(note(
            format!(
                "the cache has no limit, and {} are free",
                format_bytes(free)
            ),
            "nothing is ever removed",
            "WARPCC_MAX_SIZE=20G",
        )),
        Some(limit) => findings.push(fine(format!(
            "the cache holds {} of {}, and {} are free",
            format_bytes(held),
            format_bytes(limit),
            format_bytes(free)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_tried_and_left_as_it_was() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        write_and_rename(&folder.path().join("new/one"))?;
        assert_eq!(fs::read_dir(folder.path().join("new/one"))?.count(), 0);
        assert!(write_and_rename(Path::new("/proc/none")).is_err());
        Ok(())
    }

    #[test]
    fn file_systems_are_known_by_their_number() {
        assert!(unsuited(0x6969).is_some_and(|(name, _)| name.contains("NFS")));
        assert_eq!(unsuited(0xef53), None);
    }
}
