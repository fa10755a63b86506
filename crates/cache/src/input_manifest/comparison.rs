//! Compares everything in a manifest with the file system: files first, then directories, links and other facts, then
//! contents.

use std::ffi::CStr;
use std::ops::Range;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::guards;

use super::check::DIRECTORY_SLACK_NS;
use super::difference::Difference;
use super::equals::Equals;
use super::hash::{ContentHashes, HashFault, Hashed};
use super::known_contents::hash_all;
use super::links::Links;
use super::signature::{self, Base, Signature, TICK_NS, means_absent};
use super::trust::Trust;
use super::{DirectoryEntry, Fact, InputManifest, NameSeen, as_path, path_of};

/// Below this many files, starting a thread costs more than it saves.
const WORTH_A_THREAD: usize = 512;

/// Whether to stop at the first difference.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    First,
    All,
}

/// A comparison in progress, and its results so far.
pub(super) struct Checking<'a> {
    manifest: &'a InputManifest,
    base: Base,
    until: Until,
    pub(super) contents: Option<&'a dyn ContentHashes>,
    pub(super) differences: Vec<Difference>,
    news: News,
    pub(super) hashed: usize,
    pub(super) names_looked_at: usize,
    trust: Trust,
    /// For each file, whether the last name of its path is no link.
    plain: Vec<bool>,
}

/// Changed signatures, by index, of files and directories that are otherwise the same.
#[derive(Default)]
pub(super) struct News {
    files: Vec<(usize, Signature)>,
    /// Each with whether it is settled.
    directories: Vec<(usize, Signature, bool)>,
}

impl News {
    /// The manifest with these signatures.
    pub(super) fn applied_to(self, manifest: &InputManifest) -> InputManifest {
        let mut refreshed = manifest.clone();
        for (index, signature) in self.files {
            refreshed.files[index].signature = signature;
        }
        for (index, signature, settled) in self.directories {
            let directory = &mut refreshed.directories[index];
            (directory.signature, directory.settled) = (signature, settled);
        }
        refreshed
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.directories.is_empty()
    }
}

/// The result of a first look at the files.
#[derive(Default)]
struct Looks {
    /// The files whose signature changed, in order.
    others: Vec<(usize, Result<Signature, Errno>)>,
    /// For each file, whether its last name is not a link.
    plain: Vec<bool>,
}

impl<'a> Checking<'a> {
    pub(super) fn new(manifest: &'a InputManifest, base: &Path, until: Until) -> Checking<'a> {
        Checking {
            manifest,
            base: Base::open(base),
            until,
            contents: None,
            differences: Vec::new(),
            news: News::default(),
            hashed: 0,
            names_looked_at: 0,
            trust: Trust::default(),
            plain: Vec::new(),
        }
    }

    /// The cheapest comparisons come first: sizes, then names, then contents.
    pub(super) fn compare(&mut self) {
        let touched = self.stat_files();
        if self.done() {
            return;
        }
        self.look_at_directories();
        if self.done() {
            return;
        }
        let mut links = Links::default();
        self.look_at_resolved(&mut links);
        if self.done() {
            return;
        }
        self.look_at_facts(&mut links);
        if self.done() {
            return;
        }
        self.hash_files(&touched);
    }

    /// The first difference, if there is one. Otherwise the new signatures; `None` if there are none.
    pub(super) fn verdict(mut self) -> Result<Option<News>, Difference> {
        match self.differences.pop() {
            Some(difference) => Err(difference),
            None => Ok((self.hashed > 0 || !self.news.is_empty()).then_some(self.news)),
        }
    }

    fn done(&self) -> bool {
        self.until == Until::First && !self.differences.is_empty()
    }

    /// The files whose signatures differ although their sizes agree.
    fn stat_files(&mut self) -> Vec<usize> {
        let mut touched = Vec::new();
        let looks = self.look_at_files();
        self.plain = looks.plain;
        for (index, now) in looks.others {
            let file = &self.manifest.files[index];
            let path = self.manifest.text_at(file.path);
            match now {
                Ok(now) if now.is_file() && now.size == file.signature.size => touched.push(index),
                Ok(now) if now.is_file() => self.changed(path),
                Ok(_) | Err(_) => self.missing(path),
            }
            if self.done() {
                break;
            }
        }
        touched
    }

    /// Looks at every file. If there are many, two threads look at half each.
    fn look_at_files(&self) -> Looks {
        let (manifest, base) = (self.manifest, &self.base);
        let look = |range: Range<usize>| {
            let mut looks = Looks::default();
            for index in range {
                let file = &manifest.files[index];
                let now = base.sign(manifest.text_at(file.path));
                looks.plain.push(matches!(now, Ok((_, false))));
                let now = now.map(|(now, _)| now);
                if now != Ok(file.signature) {
                    looks.others.push((index, now));
                }
            }
            looks
        };
        let count = manifest.files.len();
        if count < WORTH_A_THREAD {
            return look(0..count);
        }
        std::thread::scope(|scope| {
            let half = || look(count / 2..count);
            let other = std::thread::Builder::new().spawn_scoped(scope, half);
            let mut all = look(0..count / 2);
            // If a thread cannot be started, fewer share the work.
            let rest = other.ok().and_then(|t| t.join().ok());
            let rest = rest.unwrap_or_else(half);
            all.plain.extend(rest.plain);
            all.others.extend(rest.others);
            all
        })
    }

    fn look_at_directories(&mut self) {
        for index in 0..self.manifest.directories.len() {
            let directory = &self.manifest.directories[index];
            let path = self.manifest.text_at(directory.path);
            if directory.settled
                && self
                    .base
                    .sign(path)
                    .is_ok_and(|(now, _)| now == directory.signature)
            {
                continue;
            }
            self.look_at_names(index, directory, path);
            if self.done() {
                return;
            }
        }
    }

    /// Compares the resolved paths of files with the recorded ones.
    fn look_at_resolved(&mut self, links: &mut Links) {
        let manifest = self.manifest;
        let plain = std::mem::take(&mut self.plain);
        for (file, plain) in manifest.files.iter().zip(plain) {
            let Some(resolved) = file.resolved else {
                continue;
            };
            let (path, recorded) = (manifest.bytes_at(file.path), manifest.bytes_at(resolved));
            let holds = if path.first() != Some(&b'/') {
                let path = manifest.text_at(file.path);
                let now = Fact::Resolved.text_now(&self.base, path, c"", links);
                now.map(|now| now == recorded)
            } else if plain {
                links.plain_leads_to(path, recorded)
            } else {
                links.resolve(path).map(|now| now == recorded)
            };
            match holds {
                Ok(true) => {}
                Ok(false) => self.changed(manifest.text_at(file.path)),
                Err(_) => self.missing(manifest.text_at(file.path)),
            }
            if self.done() {
                return;
            }
        }
    }

    fn look_at_facts(&mut self, links: &mut Links) {
        let manifest = self.manifest;
        let mut equals = Equals::default();
        for entry in &manifest.facts {
            let (path, recorded) = (manifest.text_at(entry.path), manifest.text_at(entry.text));
            let now = if entry.fact.is_about_equals() {
                equals.text_now(entry.fact, &self.base, path, recorded)
            } else {
                entry.fact.text_now(&self.base, path, recorded, links)
            };
            let holds = now.map(|now| now == recorded.to_bytes());
            match holds {
                Ok(true) => {}
                Ok(false) => self.changed(path),
                Err(_) if entry.fact == Fact::Nothing => self.appeared(c".", path),
                Err(Errno::ACCESS) if entry.fact == Fact::Executable => self.changed(path),
                Err(_) => self.missing(path),
            }
            if self.done() {
                return;
            }
        }
        if let Some(path) = equals.other_than_recorded() {
            self.changed(path);
        }
    }

    fn look_at_names(&mut self, index: usize, directory: &DirectoryEntry, path: &CStr) {
        let now = signature::now();
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let (inside, signature, remembered) = match self.base.open_at(path, flags) {
            Ok(open) => match Signature::of_open(&open) {
                Ok(signature) => {
                    let remembered = self.trust.of_names(&signature, &open);
                    (Base::Open(open), signature, remembered)
                }
                Err(_) => return self.appeared(path, c""),
            },
            // A missing directory contains nothing. Its old signature makes every later check look again.
            Err(error) if means_absent(error) => return,
            Err(_) => return self.appeared(path, c""),
        };
        let names = &self.manifest.names[directory.names.clone()];
        self.names_looked_at += names.len();
        let mut missing_folder: &[u8] = b"";
        let mut first_folder = Vec::new();
        // A name behind a link, or in a folder that exists now, can appear without a change of this directory.
        let mut shows_here = true;
        for name in names {
            let text = self.manifest.text_at(name.at);
            // Hundreds of names share a first folder that does not exist: one look answers for all.
            if let Some(slash) = text.to_bytes().iter().position(|byte| *byte == b'/') {
                let folder = &text.to_bytes()[..slash];
                if !folder.is_empty() && folder == missing_folder {
                    continue;
                }
                first_folder.clear();
                first_folder.extend_from_slice(folder);
                first_folder.push(0);
                let folder_text = CStr::from_bytes_until_nul(&first_folder).unwrap_or_default();
                if !folder.is_empty() && inside.stat_link(folder_text) == Err(Errno::NOENT) {
                    missing_folder = folder;
                    continue;
                }
                shows_here = false;
            }
            let found = match inside.stat_link(text) {
                Ok(found) if found.is_link() => {
                    shows_here = false;
                    inside.stat(text)
                }
                found => found,
            };
            match found {
                Err(error) if means_absent(error) => {}
                Ok(found) if found.is_directory() && name.seen == NameSeen::Folder => {}
                Ok(_) | Err(_) => self.appeared(path, text),
            }
            if self.done() {
                return;
            }
        }
        let settled = signature.is_older_than(now, DIRECTORY_SLACK_NS, now);
        let remembered = remembered.filter(|_| settled && shows_here);
        let (signature, settled) = (remembered.unwrap_or(signature), remembered.is_some());
        if (signature, settled) != (directory.signature, directory.settled) {
            self.news.directories.push((index, signature, settled));
        }
    }

    fn hash_files(&mut self, touched: &[usize]) {
        if touched.is_empty() {
            return;
        }
        self.hashed = touched.len();
        let manifest = self.manifest;
        let path_at = |index: &usize| manifest.text_at(manifest.files[*index].path);
        let now = signature::now();
        let paths: Vec<&CStr> = touched.iter().map(path_at).collect();
        let hashed = hash_all(&self.base, &paths, None, self.contents);
        for ((index, path), hashed) in touched.iter().zip(paths).zip(hashed) {
            match hashed {
                Ok(Hashed {
                    signature,
                    content,
                    remembered,
                    is_plain: _,
                    compares_times: _,
                }) if content == manifest.files[*index].content
                    || guards::is_off("second-look") =>
                {
                    let settled = signature.is_older_than(now, TICK_NS, now);
                    if let Some(remembered) = remembered.filter(|_| settled) {
                        self.news.files.push((*index, remembered));
                    }
                }
                Ok(_) | Err(HashFault::Changed) => self.changed(path),
                Err(HashFault::NotAFile | HashFault::Unreadable(_)) => self.missing(path),
            }
            if self.done() {
                return;
            }
        }
    }

    fn changed(&mut self, path: &CStr) {
        let path = path_of(path);
        self.differences.push(Difference::FileChanged { path });
    }

    fn missing(&mut self, path: &CStr) {
        let path = path_of(path);
        self.differences.push(Difference::FileMissing { path });
    }

    fn appeared(&mut self, directory: &CStr, name: &CStr) {
        let path = match directory.to_bytes() {
            // A plain name is shown as the run named it.
            b"." => path_of(name),
            _ => as_path(directory).join(as_path(name)),
        };
        self.differences.push(Difference::FileAppeared { path });
    }
}
