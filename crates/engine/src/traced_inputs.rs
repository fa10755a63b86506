//! Collects from the watch logs what the processes of a run saw, without the run's own files.

mod log;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use warpcc_cache::{ExpectedFile, Fact, InputManifest, InputManifestBuilder, guards};
use warpcc_watch::PathText;

use crate::conditions::EnvironmentQueries;
use crate::known_programs::KnownPrograms;

/// Everything that one or several steps saw.
#[derive(Debug, Clone, Default)]
pub struct TracedInputs {
    /// Files that were read, run or loaded, with the state of each at that time.
    pub read: BTreeMap<PathText, ExpectedFile>,
    /// Paths that were looked for and did not exist.
    pub missing: BTreeSet<PathText>,
    /// Paths that were looked at without being opened.
    pub found: BTreeSet<PathText>,
    /// Other facts about paths, with the answers that the run got.
    pub facts: BTreeMap<(PathText, Fact), Vec<u8>>,
    /// Requests to the environment: variables, programs, the working directory.
    pub asked: EnvironmentQueries,
    /// Whether a compiler expanded `__DATE__`, `__TIME__` or `__TIMESTAMP__`.
    pub expanded_date: bool,
    /// Times of files that are part of results (see [`crate::mtimes`]).
    pub times: Vec<u8>,
    /// Why these observations are incomplete.
    pub untracked: Option<String>,
    /// An obstacle that a program met only because it ran under warpcc, such as a full disk: nvcc has to do the call.
    pub hindered: Option<String>,
    /// A name in the private folder that a tool chose itself: next to an output, or in the folder for temporary files. With
    /// nvcc it would be in the user's folder, and the tool's use of it may change what the call does.
    pub side_file: Option<String>,
}

/// How a run used a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathUse {
    /// It read the file.
    Read,
    /// It checked whether the path exists, or where it leads.
    Look,
}

impl TracedInputs {
    fn fact(&mut self, path: &Path, fact: Fact, text: Option<PathBuf>) {
        let Some(text) = text else { return };
        let text = text.into_os_string().into_encoded_bytes();
        self.facts.insert((path.into(), fact), text);
    }

    /// Whether all programs that ran are compilers. Any other program may have used its arguments in any way.
    pub fn is_of_compilers(&self, known: &KnownPrograms<'_>) -> bool {
        let mut facts = self.facts.keys();
        facts.all(|(path, fact)| *fact != Fact::Executable || known.is_compiler(path))
    }

    /// Adds a file that counts, with its expected state.
    pub fn expect(&mut self, path: &Path, expected: ExpectedFile) {
        let known = match self.read.get_mut(path.as_os_str()) {
            Some(known) => known,
            None => self.read.entry(path.into()).or_default(),
        };
        match known.and(expected) {
            Some(both) => *known = both,
            None if guards::is_off("identity-at-open") => {}
            None => {
                let why = || format!("{} changed while it was in use", path.display());
                self.untracked.get_or_insert_with(why);
            }
        }
    }

    /// The dependencies of a result from the cache: what the run that made it saw.
    pub fn of_hit(manifest: &InputManifest, asked: EnvironmentQueries, times: Vec<u8>) -> Self {
        let mut seen = Self {
            asked,
            times,
            ..Self::default()
        };
        if guards::is_off("what-hits-saw") {
            return Self::default();
        }
        for file in manifest.files() {
            let expected = ExpectedFile {
                signature: None,
                content: Some(file.content),
            };
            seen.read.insert(file.path.into(), expected);
        }
        for directory in manifest.directories() {
            let absent = directory.absent.iter();
            seen.missing
                .extend(absent.map(|name| directory.path.join(name).into()));
        }
        // Which files and folders are equal is determined anew for the call as a whole.
        for (path, fact, text) in manifest
            .facts()
            .filter(|(_, fact, _)| !fact.is_found_anew())
        {
            seen.fact(&path, fact, Some(text));
        }
        seen
    }

    /// The same observations, with relative paths resolved for a run in `directory`.
    #[must_use]
    pub fn inside(mut self, directory: &Path) -> Self {
        for paths in [&mut self.missing, &mut self.found] {
            *paths = paths
                .iter()
                .map(|path| directory.join(path).into())
                .collect();
        }
        let read = std::mem::take(&mut self.read).into_iter();
        self.read = read.map(|(p, e)| (directory.join(p).into(), e)).collect();
        let facts = std::mem::take(&mut self.facts).into_iter();
        self.facts = facts
            .map(|((p, fact), text)| ((directory.join(p).into(), fact), text))
            .collect();
        self
    }

    /// Adds the observations of another step.
    pub fn merge(&mut self, other: &Self) {
        for (path, expected) in &other.read {
            self.expect(path, *expected);
        }
        for (known, theirs) in [
            (&mut self.missing, &other.missing),
            (&mut self.found, &other.found),
        ] {
            // Most paths that one step looks for, other steps looked for too.
            let new = theirs.difference(known).cloned().collect::<Vec<_>>();
            known.extend(new);
        }
        for (key, text) in &other.facts {
            let Some(known) = self.facts.get_mut(key) else {
                self.facts.insert(key.clone(), text.clone());
                continue;
            };
            // The text from a log is the beginning of that from a manifest.
            let goes_on = key.1 == Fact::Access && text.starts_with(known);
            let is_begin = key.1 == Fact::Access && known.starts_with(text);
            if known.is_empty() || goes_on {
                known.clone_from(text);
            } else if !is_begin && known != text && !text.is_empty() {
                let why = || format!("{} changed while it was in use", key.0.display());
                self.untracked.get_or_insert_with(why);
            }
        }
        self.asked.merge(&other.asked);
        self.expanded_date |= other.expanded_date;
        self.times.extend_from_slice(&other.times);
        for (known, theirs) in [
            (&mut self.untracked, &other.untracked),
            (&mut self.side_file, &other.side_file),
        ] {
            if known.is_none() {
                known.clone_from(theirs);
            }
        }
    }

    /// Notes that a tool used a private name: only nvcc can make the result.
    pub fn set_side_file(&mut self, why: &str) {
        for reason in [&mut self.untracked, &mut self.side_file] {
            reason.get_or_insert_with(|| why.to_owned());
        }
    }

    /// The observations of a run that was not watched: none, for the reason `why`.
    pub fn unwatched(why: &str) -> Self {
        Self {
            untracked: Some(why.to_owned()),
            ..Self::default()
        }
    }

    /// An input manifest of these observations, without the paths that are `own`, for a run that began at `began`.
    pub fn manifest(
        &self,
        began: SystemTime,
        own: impl Fn(&Path, PathUse) -> bool,
    ) -> InputManifestBuilder {
        let mut builder = InputManifestBuilder::new(began);
        for (path, expected) in self
            .read
            .iter()
            .filter(|(path, _)| !own(path, PathUse::Read))
        {
            builder.read_as(path, *expected);
        }
        let looked_at = |path: &Path| !own(path, PathUse::Look);
        for path in self.missing.iter().filter(|path| looked_at(path)) {
            builder.absent(path);
        }
        for path in self.found.iter().filter(|path| looked_at(path)) {
            builder.present(path);
        }
        for ((path, fact), text) in self.facts.iter().filter(|((path, _), _)| looked_at(path)) {
            // The names in a folder and what is refused are read when the manifest is made; other texts are known.
            let known_text = match fact {
                Fact::Link | Fact::Resolved | Fact::SizeAndTime | Fact::KernelText => {
                    Some(&text[..])
                }
                Fact::Names | Fact::Access if !text.is_empty() => Some(&text[..]),
                _ => None,
            };
            builder.fact(path, *fact, known_text);
        }
        builder
    }
}
