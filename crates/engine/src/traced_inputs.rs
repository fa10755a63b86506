//! Reads what the processes of a run saw from the watch logs, without the run's own files.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use warpcc_cache::{ExpectedFile, Fact, InputManifest, InputManifestBuilder, Signature, guards};
use warpcc_watch::{Identity, Observed, PathText};

use crate::compiler_cache::is_compiler_cache;
use crate::conditions::{self, Asked};
use crate::private_names;
use crate::room;
use crate::scene::Scene;

/// Everything that one or several steps saw.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Read, run or loaded, with each file's state at that time.
    pub read: BTreeMap<PathText, ExpectedFile>,
    /// Looked for in vain.
    pub missing: BTreeSet<PathText>,
    /// Looked at without being opened.
    pub found: BTreeSet<PathText>,
    /// Other facts about paths, with the answers that the run got.
    pub facts: BTreeMap<(PathText, Fact), Vec<u8>>,
    /// Requests to the environment: variables, programs, the working directory.
    pub asked: Asked,
    /// A compiler expanded `__DATE__`, `__TIME__` or `__TIMESTAMP__`.
    pub expanded_date: bool,
    /// Times of files that are part of results (see [`crate::mtimes`]).
    pub times: Vec<u8>,
    /// Why these observations are incomplete.
    pub untracked: Option<String>,
    /// An obstacle that a program met only because it ran under warpcc, such as a full disk: nvcc has to do the call.
    pub hindered: Option<String>,
    /// A name in the private folder that a tool made up: next to an output, or in the folder for temporary files. With
    /// nvcc it would be in the user's folder, and what the tool does there is part of its work.
    pub side_file: Option<String>,
}

/// How a run came by a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathUse {
    /// It read the file.
    Read,
    /// It looked whether it is there, or where it leads.
    Look,
}

impl Seen {
    /// From a log, without the run's own files: those under the private folder, the watch library, those that the
    /// processes wrote themselves, and those of the plan.
    pub fn from_log(observed: Observed, scene: &Scene<'_>) -> Self {
        let side_file = private_names::find(&observed, scene);
        let mut seen = Self {
            untracked: observed
                .untracked
                .clone()
                .filter(|_| !guards::is_off("unseen-programs"))
                .or_else(|| side_file.clone())
                .or_else(|| side_effect(&observed, scene)),
            hindered: room::hindrance(&observed),
            expanded_date: observed.asked_time,
            side_file,
            ..Self::default()
        };
        seen.take_asked(&observed, scene);
        seen.found.extend(devices_written(&observed, scene));
        let by_strangers = observed.found_by_strangers.contains(OsStr::new("."));
        let is_searched = looks_below_dot(observed.read.keys())
            || looks_below_dot(&observed.missing)
            || looks_below_dot(&observed.found);
        let written = &observed.written;
        let foreign = |path: &Path| !(scene.is_own(path) || written.contains_key(path.as_os_str()));
        for (path, identity) in &observed.read {
            if foreign(path) {
                seen.take_read(path, identity);
            }
        }
        seen.take_programs(&observed, &foreign);
        for (path, told) in &observed.looked {
            // An opened file counts by its content.
            let opened = observed.read.contains_key(path) || observed.libraries.contains_key(path);
            if foreign(path) && !opened {
                let text = Fact::size_and_time(told.size, told.mtime_ns);
                seen.facts.insert((path.clone(), Fact::SizeAndTime), text);
            }
        }
        for (path, identity) in &observed.libraries {
            if **path != *scene.library {
                seen.take_read(path, identity);
            }
        }
        for (path, executable) in &observed.called {
            if foreign(path) && **path != **executable && !is_plain(path) {
                seen.fact(path, Fact::Resolved, path.canonicalize().ok());
            }
        }
        for (fact, texts) in [
            (Fact::Link, observed.links),
            (Fact::Resolved, observed.resolved),
        ] {
            for (path, text) in texts {
                // `/proc/self/exe` is the program, whose path was resolved when it was started.
                if foreign(&path) && !is_of_process(&path) {
                    seen.fact(&path, fact, Some(text));
                }
            }
        }
        for path in observed.nothing.iter().filter(|path| foreign(path)) {
            seen.facts.insert((path.clone(), Fact::Nothing), Vec::new());
        }
        for path in observed.listed.iter().filter(|path| foreign(path)) {
            // The names, where they stay; the manifest tells.
            seen.facts.insert((path.clone(), Fact::Names), Vec::new());
        }
        let owned = |paths: BTreeSet<PathText>| paths.into_iter().filter(|p| foreign(p)).collect();
        seen.missing = owned(observed.missing);
        seen.found.append(&mut owned(observed.found));
        // `.` is always there. Shells and LLVM compare it with `PWD` to know what the folder is called; who takes it for
        // a folder of headers looks for names in it.
        if by_strangers || !is_searched {
            seen.found.remove(OsStr::new("."));
        }
        seen
    }

    /// The programs that ran, and those that may be run.
    fn take_programs(&mut self, observed: &Observed, foreign: &dyn Fn(&Path) -> bool) {
        for executable in &observed.processes {
            if !guards::is_off("programs-run") {
                self.read.entry(executable.clone()).or_default();
            }
        }
        let run = observed.processes.iter().chain(observed.called.keys());
        for program in run.chain(&observed.executable) {
            if foreign(program) {
                self.facts
                    .insert((program.clone(), Fact::Executable), Vec::new());
            }
        }
    }

    fn fact(&mut self, path: &Path, fact: Fact, text: Option<PathBuf>) {
        let Some(text) = text else { return };
        let text = text.into_os_string().into_encoded_bytes();
        self.facts.insert((path.into(), fact), text);
    }

    fn take_read(&mut self, path: &Path, identity: &Identity) {
        const KIND: u32 = 0o170_000;
        const FILE: u32 = 0o100_000;
        const FOLDER: u32 = 0o040_000;
        match identity.mode & KIND {
            FILE => {
                let signature = Signature {
                    dev: identity.device,
                    ino: identity.inode,
                    size: identity.size,
                    mtime_ns: identity.mtime_ns,
                    ctime_ns: identity.ctime_ns,
                    kind: FILE,
                };
                let expected = ExpectedFile {
                    signature: Some(signature),
                    content: None,
                };
                self.expect(path, expected);
            }
            // gcc and cc1plus open folders like files; what is in them counts, not they.
            FOLDER => drop(self.found.insert(path.into())),
            // The open gave no file to ask.
            0 => self.expect(path, ExpectedFile::default()),
            // Today; a link to it may lead to a file tomorrow.
            _ if is_harmless_device(identity.special) => {
                self.found.insert(path.into());
                self.fact(path, Fact::Resolved, path.canonicalize().ok());
            }
            _ if guards::is_off("special-files") => {}
            _ => {
                let why = || format!("{} was read, and is not a regular file", path.display());
                self.untracked.get_or_insert_with(why);
            }
        }
    }

    /// Whether no program ran but compilers. Any other may have made anything of the words it was given.
    pub fn is_of_compilers(&self) -> bool {
        let mut facts = self.facts.keys();
        facts.all(|(path, fact)| *fact != Fact::Executable || conditions::is_compiler(path))
    }

    /// A file that counts, as what is expected of it.
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

    fn take_asked(&mut self, observed: &Observed, scene: &Scene<'_>) {
        self.asked.limits.extend(&observed.limits);
        for names in observed.variables.values() {
            self.asked.variables.extend(names.iter().cloned());
        }
        let strangers = observed.called.iter().filter(|(_, program)| {
            let has_environ = observed.have_environ.contains(*program);
            !conditions::asks_by_name(program, has_environ)
        });
        for (path, _) in strangers {
            self.asked.whole = true;
            self.mention(path);
        }
        let by_name = observed.variables.iter();
        let by_name = by_name.filter(|(_, names)| names.contains(OsStr::new("PWD")));
        let mut askers = by_name.map(|(p, _)| p).chain(&observed.asked_directory);
        self.asked.directory = askers.any(|program| {
            !conditions::is_nvidias(program, observed.have_environ.contains(program))
        });
        for path in &observed.texts {
            let path = PathText::from(scene.directory.join(path));
            // A program that it started has a log of its own.
            if !observed.called.contains_key(path.as_os_str()) {
                self.mention(&path);
            }
        }
        // A shell that mentions `PWD` takes the directory from it, where `PWD` leads to the directory.
        self.asked.directory |= self.asked.mentioned.contains("PWD");
        let folders: BTreeSet<PathBuf> = std::env::split_paths(scene.path.unwrap_or_default())
            .map(|folder| scene.directory.join(folder))
            .collect();
        let looked_at = observed.missing.iter().chain(&observed.found);
        for path in looked_at.chain(observed.read.keys()) {
            let inside = path.parent().is_some_and(|parent| folders.contains(parent));
            if let Some(name) = path.file_name().filter(|_| inside) {
                self.asked.programs.insert(name.to_owned());
            }
        }
    }

    /// Notes which volatile variables a program's text mentions.
    fn mention(&mut self, text: &Path) {
        const LONGEST: u64 = 16 << 20;
        let short = fs::metadata(text).is_ok_and(|found| found.is_file() && found.len() < LONGEST);
        let names = |text: &[u8]| conditions::mentioned(text).map(str::to_owned).collect();
        let names: Vec<String> = match fs::read(text) {
            Ok(text) if short => names(&text),
            // A text that cannot be searched may mention all of them.
            _ => conditions::VOLATILE
                .iter()
                .copied()
                .map(str::to_owned)
                .collect(),
        };
        self.asked.mentioned.extend(names);
    }

    /// The dependencies of a result from the cache: what the run that made it saw.
    pub fn of_hit(manifest: &InputManifest, asked: Asked, times: Vec<u8>) -> Self {
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
        // Which files and folders are equal is found out anew, among all of the call.
        for (path, fact, text) in manifest
            .facts()
            .filter(|(_, fact, _)| !fact.is_found_anew())
        {
            seen.fact(&path, fact, Some(text));
        }
        seen
    }

    /// The same, with relative paths resolved for a run in `directory`.
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

    /// Adds what another saw.
    pub fn merge(&mut self, other: &Self) {
        for (path, expected) in &other.read {
            self.expect(path, *expected);
        }
        for (known, theirs) in [
            (&mut self.missing, &other.missing),
            (&mut self.found, &other.found),
        ] {
            // Most of what one step looks for, others looked for too.
            let new = theirs.difference(known).cloned().collect::<Vec<_>>();
            known.extend(new);
        }
        for (key, text) in &other.facts {
            let Some(known) = self.facts.get_mut(key) else {
                self.facts.insert(key.clone(), text.clone());
                continue;
            };
            if known.is_empty() {
                known.clone_from(text);
            } else if known != text && !text.is_empty() {
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

    /// Notes that a tool made something of a private name: the result is nvcc's to make.
    pub fn set_side_file(&mut self, why: &str) {
        for reason in [&mut self.untracked, &mut self.side_file] {
            reason.get_or_insert_with(|| why.to_owned());
        }
    }

    /// A run that was not watched.
    pub fn unwatched(why: &str) -> Self {
        Self {
            untracked: Some(why.to_owned()),
            ..Self::default()
        }
    }

    /// An input manifest of all this but what is `own`, for a run that began at `began`.
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
            // Names of a folder are read when the manifest is made; other texts were told.
            let told = match fact {
                Fact::Link | Fact::Resolved | Fact::SizeAndTime => Some(&text[..]),
                Fact::Names if !text.is_empty() => Some(&text[..]),
                _ => None,
            };
            builder.fact(path, *fact, told);
        }
        builder
    }
}

/// Whether any of these paths begins with `./`.
fn looks_below_dot<'p>(paths: impl IntoIterator<Item = &'p PathText>) -> bool {
    let mut paths = paths.into_iter();
    paths.any(|path| path.as_os_str().as_bytes().starts_with(b"./"))
}

/// A tick of the kernel's file clock, at the slowest.
const TICK: Duration = Duration::from_millis(10);

/// A file that a run wrote or removed besides its outputs: a result that hits would not bring it back.
fn side_effect(observed: &Observed, scene: &Scene<'_>) -> Option<String> {
    if guards::is_off("side-outputs") {
        return None;
    }
    let there = |path: &Path| fs::symlink_metadata(scene.directory.join(path)).is_ok();
    // ccache, which nvcc's dry run asks for the compiler's properties, keeps files of its own.
    let is_caches = |path: &Path| {
        let writer = observed.writers.get(path.as_os_str());
        writer.is_some_and(|program| is_compiler_cache(program))
    };
    // The file existed before the run began: the run read old content, then replaced it.
    let was_there = |identity: &Identity| {
        let began = scene.began.duration_since(SystemTime::UNIX_EPOCH);
        let before = began.unwrap_or_default().saturating_sub(TICK).as_nanos();
        identity.mode != 0 && i128::from(identity.ctime_ns) < before as i128
    };
    let rewritten = observed.read.iter().find(|(path, identity)| {
        observed.written.contains_key(path.as_os_str())
            && was_there(identity)
            && !(scene.is_own(path) || is_caches(path))
    });
    let whole = |path: &Path| scene.directory.join(path);
    if let Some((path, _)) = rewritten {
        return Some(format!(
            "{} is both read and written",
            whole(path).display()
        ));
    }
    for (path, identity) in &observed.written {
        let special = is_special(identity);
        // A link of the user's may lead to a file the next time.
        if scene.is_own(path)
            || is_caches(path)
            || (special && is_harmless_device(identity.special) && is_plain(path))
        {
            continue;
        }
        if special || there(path) {
            return Some(format!("{} is written too", whole(path).display()));
        }
    }
    let removed = |path: &&PathText| {
        !(scene.is_own(path) || is_caches(path) || observed.written.contains_key(path.as_os_str()))
    };
    let removed = observed.removed.iter().find(removed);
    removed.map(|path| format!("{} is removed", whole(path).display()))
}

/// Whether a device is one that says the same to everybody, by its number: `/dev/null`, `/dev/zero`; the terminal, which
/// a shell opens to see whether there is one; random numbers, of which any serve as well as any others.
fn is_harmless_device(special: u64) -> bool {
    const fn device(major: u64, minor: u64) -> u64 {
        major << 8 | minor
    }
    [
        device(1, 3),
        device(1, 5),
        device(1, 8),
        device(1, 9),
        device(5, 0),
    ]
    .contains(&special)
}

/// Whether a path says who the process is and what it has open: another text in each process. The program itself is known
/// since it was started.
fn is_of_process(path: &Path) -> bool {
    let Ok(rest) = path.strip_prefix("/proc") else {
        return false;
    };
    let mut parts = rest.components().map(|part| part.as_os_str());
    let process = parts.next().is_none_or(|first| {
        let number = |text: &OsStr| text.as_bytes().iter().all(u8::is_ascii_digit);
        first == "self" || first == "thread-self" || number(first)
    });
    let what = parts.next();
    process && what.is_none_or(|what| what == "exe" || what == "fd" || what == "task")
}

/// The devices that a run wrote to. The result depends on them: if such a path becomes a regular file, the run would
/// write that file.
fn devices_written(observed: &Observed, scene: &Scene<'_>) -> Vec<PathText> {
    let written = observed.written.iter();
    let devices = written.filter(|(path, identity)| is_special(identity) && !scene.is_own(path));
    devices.map(|(path, _)| path.clone()).collect()
}

fn is_special(identity: &Identity) -> bool {
    identity.mode != 0 && identity.mode & 0o170_000 != 0o100_000
}

/// Whether a path has no links and is written in the shortest way.
fn is_plain(path: &Path) -> bool {
    let real = path.canonicalize();
    real.is_ok_and(|real| real.as_os_str() == path.as_os_str())
}
