//! Makes an [`InputManifest`] from what a run read and looked for, unless something changed while it ran.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::io::Errno;

use crate::guards;

use super::check::NOBODYS;
use super::code::LONGEST_TEXT;
use super::hash::{ContentHashes, HashFault, Inspect};
use super::known_contents::hash_all;
use super::links::Links;
use super::signature::{self, Base, Signature, TICK_NS};
use super::time_comparison::TimeComparison;
use super::unsettled::Unsettled;
use super::{Fact, FactEntry, FileEntry, InputManifest, absent_names, equals, path_of};

/// Collects what a run saw of the file system.
#[derive(Clone, Debug)]
pub struct InputManifestBuilder {
    started: SystemTime,
    base: PathBuf,
    /// The keys are texts, not paths: paths compare and hash component by component, which for thousands of them costs more
    /// than hashing the files.
    read: HashMap<OsString, ExpectedFile>,
    absent: HashSet<OsString>,
    /// Of these, the names that may be those of folders.
    no_files: HashSet<OsString>,
    /// Whether an option tells a compiler to compare two files' times.
    option_compares_times: bool,
    /// Each fact with its text, if the run got one.
    facts: BTreeMap<(PathBuf, Option<Fact>), Option<Vec<u8>>>,
}

/// The state of a file on which an input manifest depends. With neither field set it is the current state, provided that the
/// file did not change since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedFile {
    /// Its signature when the run opened it.
    pub signature: Option<Signature>,
    /// The BLAKE3 of its content.
    pub content: Option<[u8; 32]>,
}

impl ExpectedFile {
    /// The combined state of two readers of one file; `None` if they saw different contents.
    #[must_use]
    pub fn and(self, other: ExpectedFile) -> Option<ExpectedFile> {
        let agree = |same: bool| same.then_some(());
        if let (Some(a), Some(b)) = (self.signature, other.signature) {
            agree(a == b)?;
        }
        if let (Some(a), Some(b)) = (self.content, other.content) {
            agree(a == b)?;
        }
        Some(ExpectedFile {
            signature: self.signature.or(other.signature),
            content: self.content.or(other.content),
        })
    }
}

impl InputManifestBuilder {
    /// Starts a manifest for a run that began at `started`, before it read anything. Relative paths are relative to this
    /// process's directory.
    pub fn new(started: SystemTime) -> InputManifestBuilder {
        InputManifestBuilder {
            started,
            base: PathBuf::new(),
            read: HashMap::new(),
            absent: HashSet::new(),
            no_files: HashSet::new(),
            option_compares_times: false,
            facts: BTreeMap::new(),
        }
    }

    /// Takes relative paths as relative to `base`.
    #[must_use]
    pub fn relative_to(mut self, base: &Path) -> InputManifestBuilder {
        base.clone_into(&mut self.base);
        self
    }

    /// Adds a file that was read.
    pub fn read(&mut self, path: &Path) {
        self.read_as(path, ExpectedFile::default());
    }

    /// Adds a file that was read, with its state at that time. A state that is already known is kept.
    pub fn read_as(&mut self, path: &Path, expected: ExpectedFile) {
        match self.read.get_mut(path.as_os_str()) {
            None => {
                self.read.insert(path.as_os_str().to_owned(), expected);
            }
            Some(known) => *known = known.and(expected).unwrap_or(*known),
        }
    }

    /// Adds a command line. Its options may contain text that a compiler reads, as `-D` does.
    pub fn command(&mut self, line: &str) {
        self.option_compares_times |= TimeComparison::new().is_in(line.as_bytes());
    }

    /// Adds a path at which there was nothing.
    pub fn absent(&mut self, path: &Path) {
        // A path with a NUL inside can never exist.
        if guards::is_off("missing-names") {
            return;
        }
        let possible = !path.as_os_str().is_empty() && !path.as_os_str().as_bytes().contains(&0);
        if possible && !self.absent.contains(path.as_os_str()) {
            self.absent.insert(path.as_os_str().to_owned());
        }
    }

    /// Adds a path at which no file was found, for a look that passes folders by: a folder may be there.
    pub fn no_file(&mut self, path: &Path) {
        if !self.absent.contains(path.as_os_str()) {
            self.absent(path);
            self.no_files.insert(path.as_os_str().to_owned());
        }
    }

    /// Adds a path that was looked at and exists: a file, a folder, or something else.
    pub fn present(&mut self, path: &Path) {
        if guards::is_off("kinds") {
            return;
        }
        self.facts.insert((path.to_owned(), None), None);
    }

    /// Adds a fact about a path, with its text if the run got one.
    pub fn fact(&mut self, path: &Path, fact: Fact, text: Option<&[u8]>) {
        if guards::is_off(fact.guard()) {
            return;
        }
        let text = text.map(<[u8]>::to_vec);
        self.facts.insert((path.to_owned(), Some(fact)), text);
    }

    /// Hashes every file and looks at every absent name.
    pub fn finish(self) -> Result<InputManifest, Unsettled> {
        self.finish_inner(None, None)
    }

    /// Like [`InputManifestBuilder::finish`], and shows each file's path and content once while it is in memory. Calls may
    /// come from several threads, one at a time, in any order.
    pub fn finish_with(
        self,
        inspect: &mut (dyn FnMut(&Path, &[u8]) + Send),
    ) -> Result<InputManifest, Unsettled> {
        self.finish_inner(Some(inspect), None)
    }

    /// Like [`InputManifestBuilder::finish_with`], with programs' hashes taken from and added to `contents`. Programs are
    /// not inspected.
    pub fn finish_knowing(
        self,
        contents: &dyn ContentHashes,
        inspect: Option<Inspect<'_>>,
    ) -> Result<InputManifest, Unsettled> {
        self.finish_inner(inspect, Some(contents))
    }

    fn finish_inner(
        mut self,
        inspect: Option<Inspect<'_>>,
        contents: Option<&dyn ContentHashes>,
    ) -> Result<InputManifest, Unsettled> {
        if self.option_compares_times {
            return Err(Unsettled::OptionComparesTimes);
        }
        let base = Base::open(&self.base);
        let mut manifest = InputManifest::default();
        let plain = self.add_files(&base, &mut manifest, inspect, contents)?;
        let refused = absent_names::add(&self.absent, &self.no_files, &base, &mut manifest)?;
        for path in refused {
            let known = self.facts.contains_key(&(path.clone(), Some(Fact::Access)));
            if !known {
                self.fact(&path, Fact::Access, None);
            }
        }
        self.add_facts(&base, &plain, &mut manifest)?;
        if manifest.text.len() >= LONGEST_TEXT {
            return Err(Unsettled::TooMuch);
        }
        Ok(manifest)
    }

    /// Returns for each file whether the last name of its path is known to be no link.
    fn add_files(
        &self,
        base: &Base,
        manifest: &mut InputManifest,
        inspect: Option<Inspect<'_>>,
        contents: Option<&dyn ContentHashes>,
    ) -> Result<Vec<bool>, Unsettled> {
        let read = sorted(self.read.keys());
        let mut starts = Vec::with_capacity(read.len());
        for path in &read {
            let bytes = path.as_os_str().as_bytes();
            if bytes.contains(&0) {
                return Err(Unsettled::Vanished {
                    path: path.to_path_buf(),
                });
            }
            starts.push(manifest.push_text(bytes));
        }
        let paths: Vec<_> = starts.iter().map(|at| manifest.text_at(*at)).collect();
        let hashed = hash_all(base, &paths, inspect, contents);
        let mut plain = Vec::with_capacity(read.len());
        let started = signature::nanoseconds(self.started);
        let now = signature::now();
        for ((path, at), hashed) in read.iter().zip(starts).zip(hashed) {
            let named = || path.to_path_buf();
            let hashed = hashed.map_err(|fault| match fault {
                HashFault::Changed => Unsettled::ChangedDuring { path: named() },
                HashFault::NotAFile => Unsettled::NotAFile { path: named() },
                HashFault::Unreadable(Errno::NOENT | Errno::NOTDIR) => {
                    Unsettled::Vanished { path: named() }
                }
                HashFault::Unreadable(error) => Unsettled::Unreadable {
                    path: named(),
                    source: error.into(),
                },
            })?;
            let expected = self.read.get(path.as_os_str()).copied();
            let is_it = expected.unwrap_or_default().and(ExpectedFile {
                signature: Some(hashed.signature),
                content: Some(hashed.content),
            });
            let is_it = is_it.is_some() || guards::is_off("identity-at-open");
            let is_older = hashed.signature.is_older_than(started, TICK_NS, now);
            if !(is_it && (is_older || guards::is_off("changed-during"))) {
                return Err(Unsettled::ChangedDuring { path: named() });
            }
            if hashed.compares_times {
                return Err(Unsettled::ComparesTimes { path: named() });
            }
            plain.push(hashed.is_plain);
            let nobodys = Signature {
                size: hashed.signature.size,
                ..NOBODYS
            };
            let signature = hashed.remembered.unwrap_or(nobodys);
            manifest.files.push(FileEntry {
                path: at,
                signature,
                content: hashed.content,
                resolved: None,
            });
        }
        Ok(plain)
    }

    fn add_facts(
        &self,
        base: &Base,
        plain: &[bool],
        manifest: &mut InputManifest,
    ) -> Result<(), Unsettled> {
        let mut links = Links::default();
        for (index, is_plain) in plain.iter().enumerate() {
            let path = manifest.files[index].path;
            let key = (path_of(manifest.text_at(path)), Some(Fact::Resolved));
            let known = self.facts.get_key_value(&key);
            // A map of paths would take `a//b` for `a/b`.
            let Some((_, recorded)) = known.filter(|(known, _)| known.0.as_os_str() == key.0)
            else {
                continue;
            };
            let name = key.0.as_os_str().as_bytes();
            let plainly = recorded.as_deref().filter(|recorded| {
                let is_whole = name.first() == Some(&b'/') && !recorded.contains(&0);
                *is_plain && is_whole && links.plain_leads_to(name, recorded) == Ok(true)
            });
            let text = match plainly {
                Some(recorded) => recorded.to_vec(),
                None => {
                    let now =
                        self.fact_now(base, (&key.0, key.1), recorded.as_deref(), &mut links)?;
                    now.1
                }
            };
            let is_path = text == manifest.bytes_at(path);
            let resolved = if is_path {
                path
            } else {
                manifest.push_text(&text)
            };
            manifest.files[index].resolved = Some(resolved);
        }
        for ((path, fact), recorded) in &self.facts {
            let of_file = self.read.contains_key(path.as_os_str());
            if of_file && matches!(fact, None | Some(Fact::Resolved)) {
                continue;
            }
            let (fact, text) =
                self.fact_now(base, (path, *fact), recorded.as_deref(), &mut links)?;
            let name = path.as_os_str().as_bytes();
            let path = manifest.push_text(name);
            let is_path = text == name;
            let text = if is_path {
                path
            } else {
                manifest.push_text(&text)
            };
            manifest.facts.push(FactEntry { path, fact, text });
        }
        equals::add(base, manifest)
    }

    /// A fact with its present text.
    ///
    /// # Errors
    /// The text is not the one that the run got, or it changed meanwhile.
    fn fact_now(
        &self,
        base: &Base,
        (path, fact): (&Path, Option<Fact>),
        recorded: Option<&[u8]>,
        links: &mut Links,
    ) -> Result<(Fact, Vec<u8>), Unsettled> {
        let vanished = || Unsettled::Vanished {
            path: path.to_owned(),
        };
        let changed = || Unsettled::ChangedDuring {
            path: path.to_owned(),
        };
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| vanished())?;
        let fact = match fact {
            Some(fact) => fact,
            None => Fact::of_kind(base, &name).map_err(|_| vanished())?,
        };
        if fact == Fact::Names {
            let signature = base.stat(&name).map_err(|_| vanished())?;
            let started = signature::nanoseconds(self.started);
            if !signature.is_older_than(started, TICK_NS, signature::now()) {
                return Err(changed());
            }
        }
        let text = fact
            .text_now(base, &name, c"", links)
            .map_err(|_| match fact {
                Fact::Nothing => Unsettled::Appeared {
                    path: path.to_owned(),
                },
                _ => vanished(),
            })?;
        let is_it = |recorded: &[u8]| match fact {
            Fact::Access => text.starts_with(recorded),
            _ => recorded == text,
        };
        if recorded.is_some_and(|recorded| !is_it(recorded)) || text.contains(&0) {
            return Err(changed());
        }
        Ok((fact, text))
    }
}

pub(super) fn sorted<'a>(paths: impl IntoIterator<Item = &'a OsString>) -> Vec<&'a Path> {
    let mut paths: Vec<&OsStr> = paths.into_iter().map(OsString::as_os_str).collect();
    paths.sort_unstable();
    paths.into_iter().map(Path::new).collect()
}
