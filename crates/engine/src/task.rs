//! One task from ready to done: key, look up, run, keep.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use warpcc_cache::{
    Difference, DiskStore, Hashing, Inspect, Key, Level, Lookup, Output, Packing, foreign, guards,
};
use warpcc_plan::{Arg, FileId, FileKind, Part, Program, Step, TaskGraph, Tool, depfile, overlap};

use crate::artifact::Artifacts;
use crate::away::Elsewhere;
use crate::beside::Beside;
use crate::conditions::{self, Conditions};
use crate::dates;
use crate::event::{Finished, Outcome};
use crate::key;
use crate::observe::{Scene, Seen};
use crate::process::{self, Ended};
use crate::relocate;
use crate::run::Setting;
use crate::times;
use crate::turn::Turn;

/// Changes when what a step record means changes.
const DOMAIN: &str = "warpcc step 3";

/// The host compiler's or fatbinary's text is not what the split expects.
pub const NOT_SPLICED: &str = "the fat binary does not fit into the assembly";

/// What every task of a run shares.
pub struct Worker<'a> {
    pub graph: &'a TaskGraph,
    pub setting: &'a Setting<'a>,
    pub artifacts: &'a Artifacts<'a>,
    pub clock: Instant,
    pub tools: Tools,
    pub elsewhere: Elsewhere,
    pub beside: Beside,
}

/// What the tools of this run contain, each hashed by one thread although several ask at once: the first
/// build of an empty cache starts a cicc for every architecture.
#[derive(Default)]
pub struct Tools(Mutex<BTreeMap<PathBuf, Arc<OnceLock<Content>>>>);

/// The BLAKE3 of a file, none where it cannot be read.
type Content = Option<[u8; 32]>;

impl Tools {
    fn content(&self, store: &DiskStore, path: &Path) -> Content {
        let cell = {
            let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(cells.entry(path.to_owned()).or_default())
        };
        *cell.get_or_init(|| store.tool_content(path).ok())
    }
}

/// A program found, with what its key needs.
pub struct Located {
    /// Its file.
    pub path: PathBuf,
    /// What it is called as.
    pub name: String,
}

/// A step: its number and itself.
type Asking<'s> = (usize, &'s Step);

impl Worker<'_> {
    /// Does the task.
    ///
    /// # Errors
    /// Not a tool's failure, but ours: a file that cannot be read or written, a program that
    /// cannot be started.
    pub fn work(&self, index: usize, priority_ms: u64) -> io::Result<(Finished, Seen)> {
        let step = &self.graph.steps[index];
        let started = self.clock.elapsed();
        let mut done = if step.program == Program::Internal {
            self.filter_dependencies(index, step)?
        } else {
            self.command(index, step, priority_ms)?
        };
        done.0.started = started;
        done.0.finished = self.clock.elapsed();
        done.0.files = step
            .writes
            .iter()
            .map(|&id| {
                (
                    id.0 as usize,
                    fs::metadata(self.artifacts.path(id)).ok().map(|m| m.len()),
                )
            })
            .collect();
        Ok(done)
    }

    fn command(&self, index: usize, step: &Step, priority_ms: u64) -> io::Result<(Finished, Seen)> {
        let program = self.locate(step)?;
        let (finished, mut seen) = self.find_or_make(index, step, &program, priority_ms)?;
        // The step's key has the program's file and content: only the record of the call needs to know how it was found.
        self.stand_on_program(step, &program, &mut seen);
        Ok((finished, seen))
    }

    fn find_or_make(
        &self,
        index: usize,
        step: &Step,
        program: &Located,
        priority_ms: u64,
    ) -> io::Result<(Finished, Seen)> {
        let key = self.key(step, program);
        if let Some(key) = key.as_ref().filter(|_| self.setting.reads_cache)
            && let Some(hit) = self.look_up_anywhere(index, step, key)
        {
            return Ok(hit);
        }
        let mut turn = Turn::default();
        let done = self.elsewhere(index, step, program, key.as_ref(), priority_ms, &mut turn)?;
        if let Some((mut finished, seen)) = done {
            if let Some(key) = key.filter(|_| finished.away) {
                finished.brought = vec![key, self.bound(&key)];
            }
            return Ok((finished, seen));
        }
        if turn.pass.is_none() {
            self.take_turn(index, step, priority_ms, &mut turn)?;
        }
        self.here(index, step, program, key.as_ref(), turn)
    }

    /// Does the step on this machine, its turn having come.
    pub fn here(
        &self,
        index: usize,
        step: &Step,
        program: &Located,
        key: Option<&Key>,
        mut turn: Turn,
    ) -> io::Result<(Finished, Seen)> {
        for &id in &step.reads {
            self.artifacts.materialise(id)?;
        }
        self.show_real_names(step)?;
        let spliced = match step.tool {
            Tool::Assemble => Some(self.splice(step)?),
            _ => None,
        };
        let (mut began, mut clock) = (SystemTime::now(), Instant::now());
        let (mut ended, mut seen) = self.run(index, step, program, spliced.as_ref(), &mut turn)?;
        while self.turn_again(index, &ended, &mut turn)? {
            (began, clock) = (SystemTime::now(), Instant::now());
            (ended, seen) = self.run(index, step, program, spliced.as_ref(), &mut turn)?;
        }
        self.settle_names(index, step, program, &mut ended, &mut turn)?;
        self.learn(step, &ended, clock.elapsed(), &mut turn);
        drop(turn.pass.take());
        if let Some(signal) = ended.signal {
            return Err(io::Error::other(format!("ended by signal {signal}")));
        }
        let mut finished = Finished::new(
            index,
            if ended.code == 0 {
                Outcome::Ran
            } else {
                Outcome::Failed(ended.code)
            },
        );
        finished.user = ended.user;
        finished.system = ended.system;
        finished.peak_kib = ended.peak_kib;
        finished.waited = turn.waited;
        finished.waited_for = turn.waited_for;
        finished.begun_again = turn.begun_again;
        finished.stdout = ended.stdout;
        finished.stderr = ended.stderr;
        if ended.code == 0 {
            self.learn_talk(step, !finished.stderr.is_empty());
            for &id in &step.writes {
                self.artifacts.written(id);
            }
            if step.tool == Tool::EarlyStub {
                self.finish_early_stub(index, step)?;
                // The real cicc says the same once more.
                finished.stdout.clear();
                finished.stderr.clear();
            }
            seen.times = self.times(step, &seen);
            self.keep_if_wanted(step, key, &mut finished, &seen, began);
        }
        Ok((finished, seen))
    }

    /// Stores the result of a success, where results are stored.
    pub fn keep_if_wanted(
        &self,
        step: &Step,
        key: Option<&Key>,
        finished: &mut Finished,
        seen: &Seen,
        began: SystemTime,
    ) {
        let Some(key) = key.filter(|_| self.setting.writes_cache) else {
            return;
        };
        let kept = self.holds_a_folder(step).and_then(|bound| {
            finished.bound = bound;
            let key = if bound { self.bound(key) } else { *key };
            self.keep(step, &key, finished, seen, began)
        });
        finished.not_stored = kept.err().map(|e| e.to_string());
    }

    fn locate(&self, step: &Step) -> io::Result<Located> {
        let path = self.setting.variable("PATH");
        let find = |name: &str| {
            process::find_compiler(name, path, self.setting.directory).ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotFound, format!("{name} is not in PATH"))
            })
        };
        match &step.program {
            Program::Named(name) => Ok(Located {
                path: find(name)?,
                name: name.clone(),
            }),
            Program::AskCompiler { compiler, name } => {
                let order = process::Order {
                    program: &find(compiler)?,
                    name: compiler,
                    args: &[OsString::from(format!("-print-prog-name={name}"))],
                    environment: self.setting.environment,
                    directory: self.setting.directory,
                    terminal: None,
                    claim: None,
                };
                let ended = self.setting.children.run(usize::MAX, &order)?;
                let name = String::from_utf8_lossy(&ended.stdout).trim().to_owned();
                Ok(Located {
                    path: find(&name)?,
                    name,
                })
            }
            Program::Internal => Err(io::Error::other("not a program")),
        }
    }

    /// The step's key, if its result can be kept at all.
    fn key(&self, step: &Step, program: &Located) -> Option<Key> {
        let store = self.setting.store?;
        let cacheable = matches!(
            step.tool,
            Tool::CudaFe
                | Tool::Cicc
                | Tool::Ptxas
                | Tool::Fatbinary
                | Tool::Nvlink
                | Tool::HostCompile
                | Tool::HostAssembly
                | Tool::Assemble
        );
        if !cacheable {
            return None;
        }
        let tool = self.tools.content(store, &program.path)?;
        let mut sink = Hashing::new(DOMAIN);
        key::describe(
            step,
            self.graph,
            self.artifacts,
            (&program.path, &tool),
            self.setting,
            &mut sink,
        )
        .ok()?;
        Some(sink.finish())
    }

    /// Looks for a result that is good in every folder, then for one that is good in this.
    fn look_up_anywhere(&self, index: usize, step: &Step, key: &Key) -> Option<(Finished, Seen)> {
        let found = self.look_up((index, step), key);
        if found.is_some() || self.setting.roots.is_empty() {
            return found;
        }
        let (mut finished, seen) = self.look_up((index, step), &self.bound(key))?;
        finished.bound = true;
        Some((finished, seen))
    }

    fn bound(&self, key: &Key) -> Key {
        let directory = self.setting.directory.as_os_str().as_encoded_bytes();
        self.setting.roots.bound(key, directory)
    }

    /// Looks here, and where there is nothing, has others asked and looks here again.
    fn look_up(&self, task: Asking<'_>, key: &Key) -> Option<(Finished, Seen)> {
        if let Some(hit) = self.look_up_here(task, key) {
            return Some(hit);
        }
        let (upstream, store) = (self.setting.upstream?, self.setting.store?);
        let mut keys = vec![*key];
        keys.extend(self.setting.terminal.map(|terminal| terminal.key(key)));
        let vet = |outcome: &mut warpcc_cache::Outcome| self.accepts(task.1, outcome);
        let brought = upstream.fetch(store, Level::Steps, &keys, self.setting.directory, &vet);
        let (mut finished, seen) = brought.then(|| self.look_up_here(task, key))??;
        finished.brought = keys;
        Some((finished, seen))
    }

    /// Whether a result from elsewhere has what the step writes, each file once, and no other; what it says is made fit to
    /// be shown.
    fn accepts(&self, step: &Step, outcome: &mut warpcc_cache::Outcome) -> bool {
        let outputs = &outcome.outputs;
        let role_of = |place: usize| place.to_string();
        let has = |place: usize| {
            let role = role_of(place);
            outputs.iter().filter(|output| output.role == role).count() == 1
        };
        let may_lack = |id: FileId| self.may_be_missing(step, id);
        let each_once = |(place, &id): (usize, &FileId)| has(place) || may_lack(id);
        let suits = |output: &Output| {
            let is_one = (0..step.writes.len()).any(|place| output.role == role_of(place));
            is_one && !output.executable && output.digest.size <= foreign::LARGEST_PART
        };
        let is_whole = outputs.len() <= step.writes.len()
            && outputs.iter().all(suits)
            && step.writes.iter().enumerate().all(each_once);
        outcome.stdout = self.artifacts.shown(&outcome.stdout);
        outcome.stderr = self.artifacts.shown(&outcome.stderr);
        is_whole
    }

    /// cicc is told of a module id file and makes none with -optix-ir.
    fn may_be_missing(&self, step: &Step, id: FileId) -> bool {
        step.tool == Tool::Cicc && self.graph.file(id).path.ends_with(".module_id")
    }

    /// Takes what says nothing, or says it as the terminal there is would show it.
    fn look_up_here(&self, task: Asking<'_>, key: &Key) -> Option<(Finished, Seen)> {
        let Some(terminal) = self.setting.terminal else {
            return self.look_up_under(key, task, |_| true);
        };
        self.look_up_under(key, task, |outcome| outcome.stderr.is_empty())
            .or_else(|| self.look_up_under(&terminal.key(key), task, |_| true))
    }

    fn look_up_under(
        &self,
        key: &Key,
        (index, step): Asking<'_>,
        suits: impl Fn(&warpcc_cache::Outcome) -> bool,
    ) -> Option<(Finished, Seen)> {
        let store = self.setting.store?;
        let directory = self.setting.directory;
        let holds = |outcome: &warpcc_cache::Outcome| -> Result<(), Option<Difference>> {
            let conditions = Conditions::decode(&outcome.extra).filter(|_| suits(outcome));
            let conditions = conditions.ok_or(None)?;
            match guards::is_off("conditions-of-steps") {
                true => Ok(()),
                false => conditions.hold(self.setting.place()),
            }
        };
        let found = store.look_up_if(Level::Steps, key, directory, &holds, |_| {});
        let Lookup::Hit(outcome, witness) = found else {
            return None;
        };
        let conditions = Conditions::decode(&outcome.extra)?;
        // All outputs or none: a blob that was evicted makes the whole step a miss.
        let mut outputs: Vec<(&Output, _)> = Vec::with_capacity(outcome.outputs.len());
        for output in &outcome.outputs {
            let id = output
                .role
                .parse::<usize>()
                .ok()
                .and_then(|i| step.writes.get(i))?;
            if !store.has(&output.digest) {
                return None;
            }
            outputs.push((output, *id));
        }
        for (output, id) in &outputs {
            self.artifacts.stored(*id, output.digest, output.executable);
            if self.graph.file(*id).kind == FileKind::Output
                && self.artifacts.materialise(*id).is_err()
            {
                return None;
            }
        }
        let mut finished = Finished::new(index, Outcome::Hit);
        finished.saved = Duration::from_micros(outcome.micros);
        let real = |text: &[u8]| {
            self.setting
                .roots
                .real_text(&self.artifacts.with_folder(text))
        };
        finished.stdout = real(&outcome.stdout);
        finished.stderr = real(&outcome.stderr);
        let times = self.setting.roots.real_text(&conditions.times);
        let mut seen = Seen::of_hit(&witness, conditions.asked(), times);
        self.stand_on_own_files(step, &mut seen);
        Some((finished, seen))
    }

    /// Runs the step's command with what is watched of it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn run(
        &self,
        index: usize,
        step: &Step,
        program: &Located,
        spliced: Option<&(FileId, PathBuf)>,
        turn: &mut Turn,
    ) -> io::Result<(Ended, Seen)> {
        let args: Vec<OsString> = step
            .args
            .iter()
            .map(|arg| {
                let mut text = OsString::new();
                for part in &arg.0 {
                    match part {
                        Part::Text(t) => text.push(t),
                        Part::File(id) => text.push(match spliced {
                            Some((assembly, path)) if assembly == id => path,
                            _ => self.artifacts.path(*id),
                        }),
                    }
                }
                text
            })
            .collect();
        let args: Vec<OsString> = relocate::host_arguments(step, self.graph, self.setting.roots)
            .into_iter()
            .chain(args)
            .collect();
        let directory = relocate::directory(step, self.artifacts, self.setting);
        let log = self.setting.scratch.join(format!("watch-{index}"));
        let watching = self.setting.watch.and_then(|library| {
            warpcc_watch::environment(library, &log, self.setting.variable("LD_PRELOAD")).ok()
        });
        let mut environment = self.setting.environment.to_vec();
        if let Some(extra) = &watching {
            environment.retain(|(n, _)| !extra.iter().any(|(e, _)| e == n));
            environment.extend(extra.iter().cloned());
        }
        let order = process::Order {
            program: &program.path,
            name: &program.name,
            args: &args,
            environment: &environment,
            directory,
            terminal: self.setting.terminal,
            claim: turn.pass.as_mut().map(|pass| &*pass.claim()),
        };
        let ended = self.setting.children.run(index, &order)?;
        let seen = if watching.is_some() {
            let mut seen = self.read_log(&log, (index, step), &program.path);
            if directory != self.setting.directory {
                seen = seen.inside(directory);
            }
            seen
        } else {
            Seen::unwatched("the watch library cannot be used here")
        };
        Ok((ended, seen))
    }

    /// Before the host compiler: the sources under the names that people know.
    pub fn show_real_names(&self, step: &Step) -> io::Result<()> {
        let compiles = matches!(step.tool, Tool::HostCompile | Tool::HostAssembly);
        if self.setting.roots.is_empty() || !compiles {
            return Ok(());
        }
        for &id in &step.reads {
            let writer = self.graph.file(id).writer.map(|w| &self.graph.steps[w]);
            if writer.is_some_and(|w| w.tool == Tool::CudaFe) {
                relocate::restore_names(self.artifacts.path(id), self.setting)?;
            }
        }
        Ok(())
    }

    /// After a run with roots: real names in messages, fixed ones in what was preprocessed, and a module id that the
    /// next run makes too.
    fn settle_names(
        &self,
        index: usize,
        step: &Step,
        program: &Located,
        ended: &mut Ended,
        turn: &mut Turn,
    ) -> io::Result<()> {
        let roots = self.setting.roots;
        if roots.is_empty() {
            return Ok(());
        }
        if ended.code == 0 && step.tool == Tool::Preprocess {
            for &id in &step.writes {
                relocate::rename_preprocessed(self.artifacts.path(id), self.graph, self.setting)?;
            }
        }
        if ended.code == 0 && matches!(step.tool, Tool::CudaFe | Tool::Cicc) {
            self.give_lasting_module_id(index, step, program, ended, turn)?;
        }
        let host = matches!(step.tool, Tool::Preprocess | Tool::HostCompile);
        if ended.code != 0 && host && relocate::knows_no_map(&ended.stderr, roots) {
            return Err(io::Error::other(relocate::NO_PREFIX_MAP));
        }
        ended.stdout = relocate::real_message(&ended.stdout, self.setting);
        ended.stderr = relocate::real_message(&ended.stderr, self.setting);
        Ok(())
    }

    /// Runs a front end again with an id that does not hold its process id. It saw the same and says the same.
    fn give_lasting_module_id(
        &self,
        index: usize,
        step: &Step,
        program: &Located,
        ended: &mut Ended,
        turn: &mut Turn,
    ) -> io::Result<()> {
        let written = |id: FileId| Some(self.artifacts.path(id));
        let Some((file, lasting)) = self.lasting_module_id(step, &written) else {
            return Ok(());
        };
        fs::write(self.artifacts.path(file), lasting)?;
        let mut reads_it = step.clone();
        reads_it
            .args
            .retain(|arg| arg.as_text() != Some(relocate::MAKES_MODULE_ID));
        let (second, seen) = self.run(index, &reads_it, program, None, turn)?;
        if second.code != 0 || second.signal.is_some() || seen.blind.is_some() {
            return Err(io::Error::other(
                "a front end fails with a module id that it is given",
            ));
        }
        ended.user += second.user;
        ended.system += second.system;
        Ok(())
    }

    /// The file of a module id, and what it is to hold in the place of an id with a process id in it; `written` says where a
    /// result is now.
    pub fn lasting_module_id<'p>(
        &self,
        step: &Step,
        written: &dyn Fn(FileId) -> Option<&'p Path>,
    ) -> Option<(FileId, String)> {
        let is_id = |id: &FileId| self.graph.file(*id).path.ends_with(".module_id");
        let file = step.writes.iter().copied().find(is_id)?;
        let others = step.writes.iter().copied().filter(|&id| id != file);
        let known = written(file).and_then(|path| fs::read_to_string(path).ok());
        let id = known.or_else(|| {
            others
                .filter_map(|id| fs::read(written(id)?).ok())
                .find_map(|code| relocate::module_id_in(&code))
        })?;
        let lasting = relocate::lasting_module_id(&id, step, self.artifacts)?;
        Some((file, lasting))
    }

    /// Whether a result has a folder's name in it that should not count, or may have where it cannot be seen.
    fn holds_a_folder(&self, step: &Step) -> io::Result<bool> {
        let roots = self.setting.roots;
        if roots.is_empty() {
            return Ok(false);
        }
        let mut is_text = true;
        for &id in &step.writes {
            match fs::read(self.artifacts.path(id)) {
                Ok(bytes) if roots.stand_in(&self.artifacts.without_folder(&bytes)) => {
                    return Ok(true);
                }
                Ok(bytes) => is_text &= std::str::from_utf8(&bytes).is_ok(),
                // cicc is told of a module id file and makes none with -optix-ir.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        // LTO and OptiX code is packed: the directory in it cannot be seen, nor an id that cicc made with a process id.
        let makes_id = |arg: &Arg| arg.as_text() == Some(relocate::MAKES_MODULE_ID);
        let moved = relocate::directory(step, self.artifacts, self.setting) == Path::new("/");
        Ok(step.tool == Tool::Cicc && !is_text && (!moved || step.args.iter().any(makes_id)))
    }

    /// The early stub as the real cicc would have written it.
    fn finish_early_stub(&self, index: usize, step: &Step) -> io::Result<()> {
        let actual =
            self.graph.assumed.iter().find(
                |a| matches!(a.expected, overlap::Expected::SameAs(_, early) if early == index),
            );
        match (actual, step.writes.first()) {
            (Some(assumed), Some(&early)) => self.artifacts.rename_inside(early, assumed.file),
            _ => Err(io::Error::other("a stub that nobody asked for")),
        }
    }

    /// Writes the assembly with the fat binary in it.
    fn splice(&self, step: &Step) -> io::Result<(FileId, PathBuf)> {
        let [assembly, fatbin] = step.reads[..] else {
            return Err(io::Error::other(NOT_SPLICED));
        };
        let text = fs::read(self.artifacts.path(assembly))?;
        let numbers = fs::read(self.artifacts.path(fatbin))?;
        let whole =
            overlap::splice(&text, &numbers).ok_or_else(|| io::Error::other(NOT_SPLICED))?;
        let path = self.artifacts.path(assembly).with_extension("whole.s");
        fs::write(&path, whole)?;
        Ok((assembly, path))
    }

    fn read_log(&self, log: &Path, (index, step): Asking<'_>, program: &Path) -> Seen {
        let Ok(bytes) = fs::read(log) else {
            return Seen::unwatched("a process could not be watched");
        };
        let _ = fs::remove_file(log);
        let known = |executable: &Path| conditions::asks_by_name(executable, false);
        let Ok(observed) = warpcc_watch::read_log(&bytes, program, &known) else {
            return Seen::unwatched("a watch log is torn");
        };
        if observed.processes.is_empty() {
            return Seen::unwatched("a process could not be watched");
        }
        let own: Vec<&OsStr> = step
            .reads
            .iter()
            .chain(&step.writes)
            .filter(|&&id| self.graph.file(id).kind != FileKind::External)
            .flat_map(|&id| {
                [
                    self.artifacts.path(id).as_os_str(),
                    OsStr::new(&self.graph.file(id).path),
                ]
            })
            .collect();
        let is_own = |path: &Path| {
            let absolute = |o: &&OsStr| self.setting.directory.join(o) == path;
            own.contains(&path.as_os_str()) || (path.is_absolute() && own.iter().any(absolute))
        };
        let scene = Scene {
            scratch: self.setting.scratch,
            directory: self.setting.directory,
            library: self.setting.watch.unwrap_or(Path::new("")),
            path: self.setting.variable("PATH"),
            own: &is_own,
        };
        self.beside.note(index, &observed, &scene);
        Seen::from_log(observed, &scene)
    }

    /// Stores the result under `key`.
    fn keep(
        &self,
        step: &Step,
        key: &Key,
        finished: &Finished,
        seen: &Seen,
        began: SystemTime,
    ) -> io::Result<()> {
        let Some(store) = self.setting.store else {
            return Ok(());
        };
        if self.setting.children.is_closed() {
            return Err(io::Error::other("interrupted"));
        }
        if let Some(why) = &seen.blind {
            return Err(io::Error::other(why.clone()));
        }
        // The host compiler expands macros itself where the source is the user's: `.cpp`.
        let is_compiled = step.tool == Tool::HostCompile && !guards::is_off("dates");
        let mut args = step.args.iter().filter_map(Arg::as_text);
        let mut is_dated = is_compiled && args.any(|arg| dates::are_named_in(arg.as_bytes()));
        let mut inspect = |_: &Path, text: &[u8]| is_dated |= dates::are_named_in(text);
        let inspect: Option<Inspect<'_>> = match is_compiled {
            true => Some(&mut inspect),
            false => None,
        };
        let witness = seen
            .witness(began, |_, _| false)
            .relative_to(self.setting.directory)
            .finish_knowing(store, inspect)
            .map_err(io::Error::other)?;
        if is_dated {
            return Err(io::Error::other("a date macro"));
        }
        let mut outputs = Vec::with_capacity(step.writes.len());
        for (place, &id) in step.writes.iter().enumerate() {
            let path = self.artifacts.path(id);
            if self.may_be_missing(step, id) && !path.exists() {
                continue;
            }
            outputs.push(Output {
                role: place.to_string(),
                digest: self.artifacts.save(id, Packing::Zstd)?,
                executable: process::is_executable(path),
            });
        }
        let fixed = |text: &[u8]| {
            self.setting
                .roots
                .fix_text(&self.artifacts.without_folder(text))
        };
        let outcome = warpcc_cache::Outcome {
            outputs,
            stdout: fixed(&finished.stdout),
            stderr: fixed(&finished.stderr),
            extra: Conditions::of(&seen.asked, &seen.times, self.setting.place()).encode(),
            micros: u64::try_from((finished.user + finished.system).as_micros())
                .unwrap_or(u64::MAX),
        };
        let shown = self.setting.terminal.filter(|_| !outcome.stderr.is_empty());
        let key = shown.map_or(*key, |terminal| terminal.key(key));
        store
            .store(Level::Steps, &key, &witness, &outcome)
            .map_err(io::Error::other)?;
        if let Some(upstream) = self.setting.upstream {
            upstream.offer(store, Level::Steps, &key);
        }
        Ok(())
    }

    /// The times of the files that `step` looked at to write their times into its result.
    fn times(&self, step: &Step, seen: &Seen) -> Vec<u8> {
        if !step.has_debug_information() {
            return Vec::new();
        }
        match step.tool {
            // ptxas of 13.0 looks at every file that a .file directive names.
            Tool::Ptxas => times::of_files(&seen.found, self.setting.directory),
            Tool::Cicc => {
                let ptx = step.writes.iter().map(|&id| self.artifacts.path(id));
                let ptx = ptx.filter(|path| path.extension().is_some_and(|e| e == "ptx"));
                ptx.filter_map(|path| fs::read(path).ok())
                    .flat_map(|text| times::of_ptx(&text, self.setting.directory))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    fn filter_dependencies(&self, index: usize, step: &Step) -> io::Result<(Finished, Seen)> {
        let rule = self
            .setting
            .rule
            .as_ref()
            .ok_or_else(|| io::Error::other("a dependency file nobody asked for"))?;
        let mut texts = Vec::new();
        for &id in &step.reads {
            self.artifacts.materialise(id)?;
            let path = self.artifacts.path(id);
            let markers = relocate::markers_beside(path);
            texts.push(if self.setting.roots.is_empty() {
                fs::read(path)?
            } else {
                fs::read(markers)?
            });
        }
        let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        for &id in &step.writes {
            fs::write(self.artifacts.path(id), depfile::rule(rule, &texts))?;
            self.artifacts.written(id);
        }
        Ok((Finished::new(index, Outcome::Ran), Seen::default()))
    }
}
