//! Records which paths lead to the same file or folder, and which files with equal contents were changed in the same second.
//!
//! For `#pragma once`, gcc takes two files for one if size, content and the second of their last change are equal; clang, if
//! they are one file with two names. Both search a folder only once if the include path names it twice, and do not look for
//! a header under the second name. So a link that leads elsewhere can change a result, although every file that was read,
//! and every name that was not found, stays the same.
//!
//! Equal paths have a fact ([`Fact::Same`]). Folders that were looked at, and files with equal contents, differ if they have
//! no such fact, and must stay different.

use std::collections::HashMap;
use std::ffi::CStr;

use rustix::io::Errno;

use super::signature::Base;
use super::{Fact, FactEntry, InputManifest, Signature, Span, Unsettled, path_of};
use crate::guards;

/// Device and inode.
type Identity = (u64, u64);

fn identity(signature: &Signature) -> Identity {
    (signature.dev, signature.ino)
}

/// The second of a file's last change, which is all that gcc compares.
fn second(signature: &Signature) -> i64 {
    signature.mtime_ns.div_euclid(1_000_000_000)
}

/// Adds the facts of all files and folders that are in the manifest so far.
pub(super) fn add(base: &Base, manifest: &mut InputManifest) -> Result<(), Unsettled> {
    if guards::is_off("equal-files") {
        return Ok(());
    }
    let mut found = Vec::new();
    for files in files_of_one_content(manifest) {
        relate_files(base, manifest, &files, &mut found)?;
    }
    let mut folders: HashMap<Identity, Span> = HashMap::new();
    let is_folder = |entry: &&FactEntry| entry.fact == Fact::Folder;
    for folder in manifest.facts.iter().filter(is_folder) {
        let path = folder.path;
        let first = *folders
            .entry(identity(&stat(base, manifest, path)?))
            .or_insert(path);
        if manifest.bytes_at(first) != manifest.bytes_at(path) {
            found.push(same(path, first));
        }
    }
    manifest.facts.append(&mut found);
    Ok(())
}

/// Empty files are left out: it does not matter whether one counts twice.
fn files_of_one_content(manifest: &InputManifest) -> Vec<Vec<Span>> {
    let mut alike: HashMap<[u8; 32], Vec<Span>> = HashMap::new();
    for file in manifest.files.iter().filter(|f| f.signature.size > 0) {
        alike.entry(file.content).or_default().push(file.path);
    }
    let mut alike: Vec<_> = alike.into_values().filter(|f| f.len() > 1).collect();
    alike.sort_unstable_by_key(|files| files[0].at);
    alike
}

fn relate_files(
    base: &Base,
    manifest: &InputManifest,
    files: &[Span],
    found: &mut Vec<FactEntry>,
) -> Result<(), Unsettled> {
    let mut names: HashMap<Identity, Span> = HashMap::new();
    // The first file of each second.
    let mut seconds: Vec<(i64, Span)> = Vec::new();
    for path in files.iter().copied() {
        let now = stat(base, manifest, path)?;
        if let Some(first) = names.get(&identity(&now)) {
            found.push(same(path, *first));
            continue;
        }
        names.insert(identity(&now), path);
        let entry = |fact: Fact, text: Span| FactEntry { path, fact, text };
        let alike = seconds.iter().find(|(known, _)| *known == second(&now));
        if let Some((_, first)) = alike {
            found.push(entry(Fact::SameTime, *first));
        } else {
            let others = seconds.iter();
            found.extend(others.map(|(_, first)| entry(Fact::OtherTime, *first)));
            seconds.push((second(&now), path));
        }
    }
    Ok(())
}

fn same(path: Span, text: Span) -> FactEntry {
    let fact = Fact::Same;
    FactEntry { path, fact, text }
}

fn stat(base: &Base, manifest: &InputManifest, path: Span) -> Result<Signature, Unsettled> {
    let path = manifest.text_at(path);
    let vanished = |_| Unsettled::Vanished {
        path: path_of(path),
    };
    base.stat(path).map_err(vanished)
}

/// The current identities of folders, and of files with equal contents, while a manifest's facts are checked.
#[derive(Default)]
pub(super) struct Equals<'m> {
    seen: Vec<(&'m CStr, Identity)>,
    /// Paths, each with the first name of its file or folder, if that has several names.
    first: Vec<(&'m CStr, &'m CStr)>,
}

impl<'m> Equals<'m> {
    /// See [`Fact::text_now`].
    pub(super) fn text_now(
        &mut self,
        fact: Fact,
        base: &Base,
        path: &'m CStr,
        recorded: &'m CStr,
    ) -> Result<Vec<u8>, Errno> {
        let now = base.stat(path)?;
        self.seen.push((path, identity(&now)));
        if fact == Fact::Folder {
            return now.is_directory().then(Vec::new).ok_or(Errno::NOENT);
        }
        let other = base.stat(recorded)?;
        self.seen.push((recorded, identity(&other)));
        if fact == Fact::Same {
            self.first.push((path, recorded));
            let is_same = identity(&now) == identity(&other);
            let text = is_same.then(|| recorded.to_bytes().to_vec());
            return Ok(text.unwrap_or_default());
        }
        let holds = (second(&now) == second(&other)) == (fact == Fact::SameTime);
        let text = holds.then(|| recorded.to_bytes().to_vec());
        Ok(text.unwrap_or_default())
    }

    /// A path that now leads to the same as another, although it did not before. Every hit checks this for dozens of paths,
    /// so only files and folders with several names are compared.
    pub(super) fn other_than_recorded(&mut self) -> Option<&'m CStr> {
        self.first.sort_unstable();
        self.seen.sort_unstable_by_key(|(_, identity)| *identity);
        let mut pairs = self.seen.windows(2);
        let are_one = |two: &&[(&CStr, Identity)]| {
            two[0].1 != two[1].1 || self.first_name(two[0].0) == self.first_name(two[1].0)
        };
        pairs.find(|two| !are_one(two)).map(|two| two[1].0)
    }

    /// The list is sorted.
    fn first_name(&self, path: &'m CStr) -> &'m CStr {
        let at = self.first.binary_search_by_key(&path, |(other, _)| *other);
        at.map_or(path, |at| self.first[at].1)
    }
}
