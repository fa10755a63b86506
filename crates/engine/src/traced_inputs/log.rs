//! Reads the observations of one step from its watch log.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use warpcc_cache::{ExpectedFile, Fact, Signature, guards};
use warpcc_watch::{Identity, Observed, PathText};

use super::TracedInputs;
use crate::compiler_cache::is_compiler_cache;
use crate::conditions::{self, Mentioned};
use crate::known_programs::KnownPrograms;
use crate::other_writes::{devices_written, is_harmless_device, is_plain, side_effect};
use crate::precompiled;
use crate::private_names;
use crate::room;
use crate::scene::Scene;

impl TracedInputs {
    /// Takes the observations from a log, without the run's own files: those under the private folder, the watch library,
    /// those that the processes wrote themselves, and those of the plan.
    pub fn from_log(observed: Observed, scene: &Scene<'_>) -> Self {
        let side_file = private_names::find(&observed, scene);
        let mut seen = Self {
            untracked: observed
                .untracked
                .clone()
                .filter(|_| !guards::is_off("unseen-programs"))
                .or_else(|| side_file.clone())
                .or_else(|| side_effect(&observed, scene))
                .or_else(|| passing(&observed))
                .or_else(|| time_comparison(&observed, scene.known)),
            expanded_date: observed.asked_time,
            side_file,
            ..Self::default()
        };
        seen.take_asked(&observed, scene);
        seen.hindered = room::hindrance(&observed, &seen.asked.limits);
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
        for (path, identity) in &observed.looked {
            // An opened file counts by its content.
            let opened = observed.read.contains_key(path)
                || observed.libraries.contains_key(path)
                || observed.kernel_texts.contains_key(path);
            if foreign(path) && !opened {
                seen.size_and_time(path, identity);
            }
        }
        if precompiled::is_read(&observed, scene.directory) {
            // One that was opened counts with both.
            let compared = observed.looked_by_known.iter();
            for (path, identity) in compared.filter(|(path, _)| foreign(path)) {
                seen.size_and_time(path, identity);
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
        seen.take_facts(&observed, &foreign);
        let owned = |paths: BTreeSet<PathText>| paths.into_iter().filter(|p| foreign(p)).collect();
        seen.missing = owned(observed.missing);
        seen.found.append(&mut owned(observed.found));
        // `.` always exists. Shells and LLVM compare it with `PWD` to find the folder's name. A program for which it is a
        // folder of headers looks for names in it.
        if by_strangers || !is_searched {
            seen.found.remove(OsStr::new("."));
        }
        seen
    }

    /// Adds what links say, where paths lead, what is not there, which permissions there are and which names folders have.
    fn take_facts(&mut self, observed: &Observed, foreign: &dyn Fn(&Path) -> bool) {
        for (fact, texts) in [
            (Fact::Link, &observed.links),
            (Fact::Resolved, &observed.resolved),
        ] {
            for (path, text) in texts {
                // `/proc/self/exe` is the program, whose path was resolved when it was started.
                if foreign(path) && !is_of_process(path) {
                    self.fact(path, fact, Some(text.clone()));
                }
            }
        }
        for (path, text) in &observed.kernel_texts {
            let text = Fact::kernel_text(text.as_os_str().as_bytes());
            self.facts.insert((path.clone(), Fact::KernelText), text);
        }
        for (path, errors) in &observed.permissions {
            if foreign(path) {
                let text = Fact::access_begin(*errors);
                self.facts.insert((path.clone(), Fact::Access), text);
            }
        }
        // The manifest reads what these facts say when it is made.
        for (fact, paths) in [
            (Fact::Nothing, &observed.nothing),
            (Fact::Names, &observed.listed),
        ] {
            let paths = paths.iter().filter(|path| foreign(path));
            self.facts
                .extend(paths.map(|path| ((path.clone(), fact), Vec::new())));
        }
    }

    fn size_and_time(&mut self, path: &PathText, identity: &Identity) {
        let text = Fact::size_and_time(identity.size, identity.mtime_ns);
        self.facts.insert((path.clone(), Fact::SizeAndTime), text);
    }

    /// Adds the programs that ran, and those that may be run.
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
            // gcc and cc1plus open folders like files. The files in a folder count, not the folder.
            FOLDER => drop(self.found.insert(path.into())),
            // The log has no state of the opened file.
            0 => self.expect(path, ExpectedFile::default()),
            // The device is harmless today, but a link to it may lead to a file tomorrow.
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

    fn take_asked(&mut self, observed: &Observed, scene: &Scene<'_>) {
        let mut mentioned = Mentioned::default();
        for names in observed.variables.values() {
            self.asked.variables.extend(names.iter().cloned());
        }
        let strangers = observed.called.iter().filter(|(_, program)| {
            let has_environ = observed.have_environ.contains(*program);
            !scene.known.asks_by_name(program, has_environ)
        });
        for (path, _) in strangers {
            self.asked.whole = true;
            mentioned.extend(conditions::mentioned_by(path));
        }
        // A plugin of a compiler, or a library that the user preloads, is no part of the known program.
        for (program, library) in &observed.libraries_have_environ {
            if !scene.known.has_own_plugins(program) {
                self.asked.whole = true;
                mentioned.extend(conditions::mentioned_by(library));
            }
        }
        let by_name = observed.variables.iter();
        let by_name = by_name.filter(|(_, names)| names.contains(OsStr::new("PWD")));
        let mut askers = by_name.map(|(p, _)| p).chain(&observed.asked_directory);
        self.asked.directory = askers.any(|program| {
            let has_environ = observed.have_environ.contains(program);
            !scene.known.is_nvidias(program, has_environ)
        });
        for path in observed.texts.keys() {
            let path = PathText::from(scene.directory.join(path));
            // A program that was started has a log of its own.
            if !observed.called.contains_key(path.as_os_str()) {
                mentioned.extend(conditions::mentioned_by(&path));
            }
        }
        let scripts = interpreters(observed, scene);
        let by_itself = |fact: u8, program: &PathBuf| {
            let is_forked = **program == *Path::new(Observed::FORKED) && !scripts.is_empty();
            let starts = is_forked || scripts.contains(program) || is_compiler_cache(program);
            conditions::is_of_streams(fact) && !starts
        };
        let facts = observed.limits.iter().filter(|(fact, programs)| {
            mentioned.counts(**fact) || programs.iter().any(|program| by_itself(**fact, program))
        });
        self.asked.limits.extend(facts.map(|(fact, _)| *fact));
        self.asked.mentioned = mentioned.variables;
        let is_named = self.asked.limits.remove(&Observed::NAMED_INPUT);
        if is_named || observed.read_input.is_some() {
            self.asked.limits.insert(Observed::INPUT);
        }
        // A shell that mentions `PWD` takes the directory from it, if `PWD` leads to the directory.
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
}

/// The executables that read the text of a script that was started. They ask about their streams whenever they start, and a
/// program of their own does so for a reason.
fn interpreters(observed: &Observed, scene: &Scene<'_>) -> BTreeSet<PathBuf> {
    let whole = |path: &Path| scene.directory.join(path);
    let is_script = |(path, executable): &(&PathText, &PathBuf)| {
        let real = whole(path).canonicalize();
        real.is_ok_and(|real| real != **executable)
    };
    let scripts = observed.called.iter().filter(is_script);
    let scripts: BTreeSet<PathBuf> = scripts.map(|(path, _)| whole(path)).collect();
    let read = observed.texts.iter();
    let read = read.filter(|(path, _)| scripts.contains(&whole(path)));
    read.flat_map(|(_, readers)| readers.clone()).collect()
}

/// The program whose answers depend on when it runs. A compiler cache dates the lines of its log.
fn passing(observed: &Observed) -> Option<String> {
    let mut programs = observed.asked_passing.iter();
    let program = programs.find(|program| !is_compiler_cache(program))?;
    Some(format!(
        "{} asked for the date, or what is free",
        program.display()
    ))
}

/// The file whose time gcc compared with another's. Neither the comparison nor its result is in the preprocessed text.
fn time_comparison(observed: &Observed, known: &KnownPrograms<'_>) -> Option<String> {
    let mut unread = observed.closed_unread.iter();
    let (program, file) = unread.find(|(program, _)| known.is_gcc_proper(program))?;
    Some(format!(
        "{} compared the time of {} with another's, as #pragma GCC dependency asks",
        program.display(),
        file.display()
    ))
}

/// Whether any of these paths begins with `./`.
fn looks_below_dot<'p>(paths: impl IntoIterator<Item = &'p PathText>) -> bool {
    let mut paths = paths.into_iter();
    paths.any(|path| path.as_os_str().as_bytes().starts_with(b"./"))
}

/// Whether a path describes the process itself and its open files, so that its text differs in each process. The program is
/// known since it was started.
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
