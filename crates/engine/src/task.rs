//! One task from ready to done: key, look up, run, keep.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Instant, SystemTime};

use warpcc_cache::{DiskStore, Hashing, KeyVariants};
use warpcc_plan::{FileId, FileKind, Part, Program, Step, TaskGraph, Tool, depfile, overlap};
use warpcc_watch::PathText;

use crate::artifact::Artifacts;
use crate::beside::Beside;
use crate::event::{Finished, Outcome};
use crate::key;
use crate::lookup::key_variants;
use crate::module_id;
use crate::mtimes;
use crate::prefix_map;
use crate::process::{self, Ended};
use crate::relocate;
use crate::remote_exec::Elsewhere;
use crate::room;
use crate::run::RunOptions;
use crate::slot_wait::Turn;
use crate::traced_inputs::{Scene, Seen};
use crate::{compiler_cache, conditions};

/// Changes when what a step record means changes.
const DOMAIN: &str = "warpcc step 4";

/// The host compiler's or fatbinary's text is not what the split expects.
pub const NOT_SPLICED: &str = "the fat binary does not fit into the assembly";

/// What every task of a run shares.
pub struct Worker<'a> {
    pub graph: &'a TaskGraph,
    pub options: &'a RunOptions<'a>,
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
    /// The name that it was looked for by.
    pub name: String,
    /// What it is called as, its first argument.
    pub called: String,
}

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

    /// Removes the user's old files that a failing step would have removed under nvcc.
    pub fn take_away_outputs(&self, index: usize) {
        let step = self.graph.steps.get(index);
        let writes = step.into_iter().flat_map(|step| &step.writes);
        let outputs = writes.filter(|&&id| self.graph.file(id).kind == FileKind::Output);
        for &id in outputs.filter(|&&id| self.beside.has_removed(index, self.artifacts.path(id))) {
            (self.options.remove)(&self.graph.file(id).path);
        }
    }

    fn command(&self, index: usize, step: &Step, priority_ms: u64) -> io::Result<(Finished, Seen)> {
        let program = self.locate(step)?;
        for path in &step.removes {
            (self.options.remove)(path);
        }
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
        let keys = self.keys(step, program);
        if let Some(keys) = keys.as_ref().filter(|_| self.options.reads_cache)
            && let Some(hit) = self.look_up(index, step, keys)
        {
            return Ok(hit);
        }
        let mut turn = Turn::default();
        let done = self.elsewhere(index, step, program, keys.as_ref(), priority_ms, &mut turn)?;
        if let Some((mut finished, seen)) = done {
            if let Some(keys) = keys.filter(|_| finished.away) {
                finished.brought = keys.keys();
            }
            return Ok((finished, seen));
        }
        if turn.pass.is_none() {
            self.take_turn(index, step, priority_ms, &mut turn)?;
        }
        self.here(index, step, program, keys.as_ref(), turn)
    }

    /// Does the step on this machine, its turn having come.
    pub fn here(
        &self,
        index: usize,
        step: &Step,
        program: &Located,
        keys: Option<&KeyVariants>,
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
        finished.retries = turn.retries;
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
            let keys = keys.filter(|keys| self.read_what_is_in(keys, index, step, program));
            self.keep_if_wanted(step, keys, &mut finished, &seen, began);
        }
        Ok((finished, seen))
    }

    /// Whether a step that has run read the files that are in its key. One that worked on an assumption may have read the
    /// corrected file: it is not ended before that is written.
    fn read_what_is_in(
        &self,
        keys: &KeyVariants,
        index: usize,
        step: &Step,
        program: &Located,
    ) -> bool {
        let mut assumed = self.graph.assumed.iter().filter_map(|a| a.redo);
        !assumed.any(|(redone, _)| redone == index)
            || self.keys(step, program).as_ref() == Some(keys)
    }

    fn locate(&self, step: &Step) -> io::Result<Located> {
        let path = self.options.variable("PATH");
        let find = |name: &str| {
            let directory = self.options.directory;
            let found = compiler_cache::find_compiler(name, path, directory);
            let path = found.ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotFound, format!("{name} is not in PATH"))
            })?;
            let usual = process::find_program(name, self.options.variable("PATH"), directory);
            let gives_way = usual.as_ref() != Some(&path);
            if gives_way && compiler_cache::chooses_another(self.options.environment) {
                return Err(io::Error::other(compiler_cache::CHOOSES));
            }
            // A compiler looks for its own programs from the name that it is called by, through PATH; a compiler cache,
            // which stands there in its place, would call it by its whole path.
            let called = match gives_way {
                true => path.to_string_lossy().into_owned(),
                false => name.to_owned(),
            };
            Ok::<_, io::Error>(Located {
                path,
                name: name.to_owned(),
                called,
            })
        };
        match &step.program {
            Program::Named(name) => find(name),
            Program::AskCompiler { compiler, name } => {
                let compiler = find(compiler)?;
                let order = process::Order {
                    program: &compiler.path,
                    name: &compiler.called,
                    args: &[OsString::from(format!("-print-prog-name={name}"))],
                    environment: self.options.environment,
                    directory: self.options.directory,
                    terminal: None,
                    claim: None,
                };
                let ended = self.options.children.run(usize::MAX, &order)?;
                find(String::from_utf8_lossy(&ended.stdout).trim())
            }
            Program::Internal => Err(io::Error::other("not a program")),
        }
    }

    /// The step's keys, if its result can be kept at all.
    fn keys(&self, step: &Step, program: &Located) -> Option<KeyVariants> {
        let store = self.options.store?;
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
        // A date in it would be found by nobody.
        if !cacheable || step.preprocesses_unseen(self.graph) {
            return None;
        }
        let tool = self.tools.content(store, &program.path)?;
        let mut sink = Hashing::new(DOMAIN);
        key::describe(
            step,
            self.graph,
            self.artifacts,
            (&program.path, &tool),
            self.options,
            &mut sink,
        )
        .ok()?;
        Some(key_variants(
            sink.finish(),
            self.options.work_dir(),
            self.options.terminal,
        ))
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
        let args: Vec<OsString> =
            prefix_map::host_arguments(step, self.graph, self.options.path_map)
                .into_iter()
                .chain(args)
                .collect();
        let directory = relocate::directory(step, self.artifacts, self.options);
        let log = self.options.scratch.join(format!("watch-{index}"));
        let watching = self.options.watch.and_then(|library| {
            warpcc_watch::environment(library, &log, self.options.variable("LD_PRELOAD")).ok()
        });
        let mut environment = self.options.environment.to_vec();
        if let Some(extra) = &watching {
            environment.retain(|(n, _)| !extra.iter().any(|(e, _)| e == n));
            environment.extend(extra.iter().cloned());
        }
        let order = process::Order {
            program: &program.path,
            name: &program.called,
            args: &args,
            environment: &environment,
            directory,
            terminal: self.options.terminal,
            claim: turn.pass.as_mut().map(|pass| &*pass.claim()),
        };
        let began = SystemTime::now();
        let ended = self.options.children.run(index, &order)?;
        let seen = if watching.is_some() {
            let mut seen = self.read_log(&log, (index, step), &program.path, began);
            if directory != self.options.directory {
                seen = seen.inside(directory);
            }
            seen
        } else {
            Seen::unwatched("the watch library cannot be used here")
        };
        if let Some(why) = &seen.hindered {
            return Err(io::Error::other(why.clone()));
        }
        let fails = ended.code != 0 && ended.by_us.is_none();
        if room::is_full(self.options.scratch) || (fails && room::lacks_processes()) {
            return Err(io::Error::other(room::NO_ROOM));
        }
        Ok((ended, seen))
    }

    /// Before the host compiler: the sources under the names that people know.
    pub fn show_real_names(&self, step: &Step) -> io::Result<()> {
        let compiles = matches!(step.tool, Tool::HostCompile | Tool::HostAssembly);
        if self.options.path_map.is_empty() || !compiles {
            return Ok(());
        }
        for &id in &step.reads {
            let writer = self.graph.file(id).writer.map(|w| &self.graph.steps[w]);
            if writer.is_some_and(|w| w.tool == Tool::CudaFe) {
                relocate::restore_names(self.artifacts.path(id), self.options)?;
            }
        }
        Ok(())
    }

    /// After a run with a path map: real names in messages, fixed ones in what was preprocessed, and a module id that the
    /// next run makes too.
    fn settle_names(
        &self,
        index: usize,
        step: &Step,
        program: &Located,
        ended: &mut Ended,
        turn: &mut Turn,
    ) -> io::Result<()> {
        let path_map = self.options.path_map;
        if path_map.is_empty() {
            return Ok(());
        }
        if ended.code == 0 && step.tool == Tool::Preprocess {
            for &id in &step.writes {
                relocate::rename_preprocessed(self.artifacts.path(id), self.graph, self.options)?;
            }
        }
        if ended.code == 0 && matches!(step.tool, Tool::CudaFe | Tool::Cicc) {
            self.give_lasting_module_id(index, step, program, ended, turn)?;
        }
        let host = matches!(step.tool, Tool::Preprocess | Tool::HostCompile);
        if ended.code != 0 && host && prefix_map::knows_no_map(&ended.stderr, path_map) {
            return Err(io::Error::other(prefix_map::NO_PREFIX_MAP));
        }
        ended.stdout = self.options.work_dir().real_message(&ended.stdout);
        ended.stderr = self.options.work_dir().real_message(&ended.stderr);
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
            .retain(|arg| arg.as_text() != Some(module_id::MAKES_MODULE_ID));
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
                .find_map(|code| module_id::module_id_in(&code))
        })?;
        let lasting = module_id::lasting_module_id(&id, step, self.artifacts)?;
        Some((file, lasting))
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

    fn read_log(
        &self,
        log: &Path,
        (index, step): (usize, &Step),
        program: &Path,
        began: SystemTime,
    ) -> Seen {
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
        let files = step.reads.iter().chain(&step.writes);
        let planned = files.filter(|&&id| self.graph.file(id).kind != FileKind::External);
        let own: BTreeSet<PathText> = planned
            .flat_map(|&id| {
                [
                    self.artifacts.path(id),
                    Path::new(&self.graph.file(id).path),
                ]
            })
            .flat_map(|path| [path.into(), self.options.directory.join(path).into()])
            .collect();
        // What a front end leaves besides the early stub, nobody takes.
        let is_early = step.tool == Tool::EarlyStub;
        let is_own = |path: &Path| {
            if is_early && path.starts_with(self.options.scratch) {
                return true;
            }
            own.contains(path.as_os_str())
        };
        let writes = step.writes.iter().map(|&id| self.artifacts.path(id));
        let scene = Scene {
            writes: &writes.collect::<Vec<_>>(),
            scratch: self.options.scratch,
            directory: self.options.directory,
            library: self.options.watch.unwrap_or(Path::new("")),
            path: self.options.path,
            began,
            own: &is_own,
        };
        self.beside.note(index, &observed, &scene);
        Seen::from_log(observed, &scene)
    }

    /// The times of the files that `step` looked at to write their times into its result.
    fn times(&self, step: &Step, seen: &Seen) -> Vec<u8> {
        if !step.has_debug_information() {
            return Vec::new();
        }
        match step.tool {
            // ptxas of 13.0 looks at every file that a .file directive names.
            Tool::Ptxas => mtimes::of_files(&seen.found, self.options.directory),
            Tool::Cicc => {
                let ptx = step.writes.iter().map(|&id| self.artifacts.path(id));
                let ptx = ptx.filter(|path| path.extension().is_some_and(|e| e == "ptx"));
                ptx.filter_map(|path| fs::read(path).ok())
                    .flat_map(|text| mtimes::of_ptx(&text, self.options.directory))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    fn filter_dependencies(&self, index: usize, step: &Step) -> io::Result<(Finished, Seen)> {
        let rule = self
            .options
            .rule
            .as_ref()
            .ok_or_else(|| io::Error::other("a dependency file nobody asked for"))?;
        let mut texts = Vec::new();
        for &id in &step.reads {
            self.artifacts.materialise(id)?;
            let path = self.artifacts.path(id);
            let markers = relocate::markers_beside(path);
            texts.push(if self.options.path_map.is_empty() {
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
