//! A step on another machine: what it needs is packed, what it wrote is put where the tool here would have written it, and
//! the result is stored under the step's own key.
//!
//! Everything of ours has one unmistakable name there ([`MARK`]). A result that holds it holds a path of that machine:
//! unless we know what stands there in a local run, the result is thrown away and the step runs here.
//!
//! [`placement`] says where a step ends sooner; [`action`] packs, with [`host`], [`clang`] and [`link`] for the tools that find files for themselves.

mod action;
mod clang;
mod host;
mod link;
pub mod placement;
mod warning_history;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use action::Packed;
use placement::{Choice, choose};
use warpcc_budget::PoolSlot;
use warpcc_cache::command::Done;
use warpcc_cache::{Digest, KeyVariants};
use warpcc_plan::{Arg, FileKind, Step, Tool};

use crate::admission;
use crate::artifact::replace;
use crate::conditions;
use crate::event::{Finished, Outcome};
use crate::executor::{Executor, Job};
use crate::key::packs_directory;
use crate::module_id::MAKES_MODULE_ID;
use crate::shared_libraries::{Loaded, loaded_by};
use crate::slot_wait::Turn;
use crate::task::{Located, Worker};
use crate::traced_inputs::Seen;

/// The folder of everything that is the plan's, in the command's folder there.
const MARK: &str = "__warpcc_away__";

/// The private folder there.
const KEEP: &str = "__warpcc_away__/keep/";

/// The end of a module id that holds cudafe++'s process id, as CUDA 13 writes it for a source that defines nothing. In a
/// cluster's sandboxes every process has the same one.
const NAMELESS: &[u8] = b"ba747b4a_";

/// A slot that is not there by now is not free.
const AT_ONCE: Duration = Duration::from_millis(100);

/// A step that waits for a slot here thinks again so often.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// How often a step that is away is thought of.
const GLANCE: Duration = Duration::from_millis(100);

/// Before this nobody is late.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a run knows of the steps that are away.
#[derive(Default)]
pub struct Elsewhere {
    loaded: Mutex<BTreeMap<PathBuf, Arc<OnceLock<Option<Loaded>>>>>,
}

impl Worker<'_> {
    /// Has `step` run on another machine, if one takes it and it ends sooner there. Nothing when it is
    /// to run here; `turn` then holds the slot, if there was one.
    ///
    /// # Errors
    /// As a run here.
    pub fn elsewhere(
        &self,
        index: usize,
        step: &Step,
        program: &Located,
        keys: Option<&KeyVariants>,
        priority_ms: u64,
        turn: &mut Turn,
    ) -> io::Result<Option<(Finished, Seen)>> {
        let Some(executor) = self.options.executor.filter(|e| e.takes(step.tool)) else {
            return Ok(None);
        };
        if !self.may_leave(step) || self.is_likely_to_talk(step) {
            return Ok(None);
        }
        let Some(_slot) = self.leave(index, step, program, priority_ms, executor, turn)? else {
            return Ok(None);
        };
        if self.options.children.is_closed() {
            return Err(io::Error::other("interrupted"));
        }
        let began = SystemTime::now();
        for &id in &step.reads {
            self.artifacts.materialise(id)?;
        }
        self.show_real_names(step)?;
        let folder = self.options.scratch.join(format!("away-{index}"));
        // Whatever hinders packing hinders nothing here.
        let packed = fs::create_dir_all(&folder)
            .ok()
            .and_then(|()| self.pack(index, step, program, &folder));
        let Some(packed) = packed else {
            drop(fs::remove_dir_all(&folder));
            return Ok(None);
        };
        let Packed {
            command,
            mut seen,
            names,
        } = packed;
        // Nobody watches there: the variables that this tool is known to ask for count.
        let asked = conditions::seen_in(step.tool).iter();
        seen.asked.variables.extend(asked.map(OsString::from));
        let job = Job {
            tool: step.tool,
            command,
            folder: &folder,
        };
        let race = self.race(index, step, program, keys, priority_ms, executor, &job)?;
        let done = match race {
            Race::Here(done) => return Ok(Some(*done)),
            Race::Nobody => None,
            Race::There(done) => {
                let streams = self.take_in(step, &done, &names);
                streams.map(|streams| (done, streams))
            }
        };
        drop(fs::remove_dir_all(&folder));
        let Some((done, (stdout, stderr))) = done else {
            return Ok(None);
        };
        let mut finished = Finished::new(index, Outcome::Ran);
        finished.away = true;
        finished.waited = turn.waited;
        finished.user = done.busy;
        finished.stdout = self.options.work_dir().real_message(&stdout);
        finished.stderr = self.options.work_dir().real_message(&stderr);
        self.keep_if_wanted(step, keys, &mut finished, &seen, began);
        Ok(Some((finished, seen)))
    }

    /// Waits until the step may run on this machine, or would end sooner on another one: then it gives the slot there.
    fn leave(
        &self,
        index: usize,
        step: &Step,
        program: &Located,
        priority_ms: u64,
        executor: &dyn Executor,
        turn: &mut Turn,
    ) -> io::Result<Option<PoolSlot>> {
        if executor.is_preferred() {
            return Ok(executor.slots().take());
        }
        let Some(admission) = self.options.admission else {
            return Ok(None);
        };
        if !admission.board().is_shared() {
            // Nobody sees what waits: a slot that is not there at once is not free.
            let at_once = self.take_turn_within(index, step, priority_ms, turn, Some(AT_ONCE));
            return match at_once {
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    Ok(executor.slots().take())
                }
                other => other.map(|()| None),
            };
        }
        let bytes: u64 = step.reads.iter().map(|&id| self.artifacts.size(id)).sum();
        let name = admission::name_of(step, self.graph);
        let expected = admission.expect(&name, admission::kind_of(step.tool), bytes);
        let ends_sooner_there = || {
            let here = admission.here(priority_ms);
            if here.idle > 0 || !executor.takes(step.tool) {
                return false;
            }
            let digest = self.lasting_digest(&program.path);
            digest.is_some_and(|digest| {
                let mut there = executor.outlook(&digest);
                if executor.has(step.tool) {
                    there.tool_bytes = 0;
                }
                choose(expected.millis, bytes, &here, &there) == Choice::There
            })
        };
        loop {
            if ends_sooner_there()
                && let Some(slot) = executor.slots().take()
            {
                return Ok(Some(slot));
            }
            match self.take_turn_within(index, step, priority_ms, turn, Some(LOOK_AGAIN)) {
                Ok(()) => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
                Err(error) => return Err(error),
            }
            if self.options.children.is_closed() {
                return Err(io::Error::other("interrupted"));
            }
        }
    }

    /// Whether the step's result is the same from everywhere. Debug information holds folders of the machine.
    fn may_leave(&self, step: &Step) -> bool {
        let takes_part = match step.tool {
            Tool::Ptxas
            | Tool::Cicc
            | Tool::Fatbinary
            | Tool::CudaFe
            | Tool::Nvlink
            | Tool::HostCompile
            | Tool::HostAssembly => true,
            // The assembler's own part is shorter than the way of its text.
            Tool::Preprocess
            | Tool::EarlyStub
            | Tool::Assemble
            | Tool::HostLink
            | Tool::Archive
            | Tool::FilterDependencies => false,
        };
        let makes_id = |arg: &Arg| arg.as_text() == Some(MAKES_MODULE_ID);
        // In LTO and OptiX code nobody sees an id that was made with a process id.
        let hides_id = packs_directory(step, self.graph) && step.args.iter().any(makes_id);
        takes_part
            && !self.graph.private.is_empty()
            && !step.has_debug_information()
            && !hides_id
            // A library that somebody puts into every process belongs to this machine.
            && self.options.variable("LD_PRELOAD").is_none_or(|v| v.is_empty())
    }

    fn loaded(&self, program: &Path) -> Option<Loaded> {
        let cell = {
            let known = self.elsewhere.loaded.lock();
            let mut known = known.unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(program.to_owned()).or_default())
        };
        let options = self.options;
        let ask = || {
            loaded_by(
                program,
                options.environment,
                options.directory,
                options.children,
            )
        };
        cell.get_or_init(ask).clone()
    }

    /// Of a file that does not change from run to run.
    fn lasting_digest(&self, file: &Path) -> Option<Digest> {
        match self.options.store {
            Some(store) => store.file_digest(file).ok(),
            None => Digest::of_file(file).ok(),
        }
    }

    /// Has the job done there, and here as well when it is late and a slot is free.
    #[expect(
        clippy::too_many_arguments,
        reason = "what a run here needs, and a run there"
    )]
    fn race(
        &self,
        index: usize,
        step: &Step,
        program: &Located,
        keys: Option<&KeyVariants>,
        priority_ms: u64,
        executor: &dyn Executor,
        job: &Job<'_>,
    ) -> io::Result<Race> {
        let overdue = self.options.admission.map_or(PATIENCE, |admission| {
            let (name, kind) = (
                admission::name_of(step, self.graph),
                admission::kind_of(step.tool),
            );
            let expected = admission.expect(&name, kind, 0).millis;
            PATIENCE.max(Duration::from_millis(expected.saturating_mul(2)))
        });
        let unwanted = AtomicBool::new(false);
        let clock = Instant::now();
        thread::scope(|scope| {
            let (send, receive) = mpsc::channel();
            let unwanted = &unwanted;
            let there = move || {
                let done = self.options.children.waiting(index, |cancel| {
                    let is_unwanted = || cancel.is_cancelled() || unwanted.load(Ordering::SeqCst);
                    executor.execute(job, &is_unwanted)
                });
                // Perhaps nobody waits any more.
                let _ = send.send(done.clone());
                // A local run that is still at it was for nothing.
                if done.as_ref().is_some_and(|done| done.code == 0)
                    && !unwanted.load(Ordering::SeqCst)
                {
                    self.options.children.kill(|task| task == index);
                }
            };
            if thread::Builder::new().spawn_scoped(scope, there).is_err() {
                return Ok(Race::Nobody);
            }
            loop {
                match receive.recv_timeout(GLANCE) {
                    Ok(Some(done)) => return Ok(Race::There(done)),
                    Ok(None) | Err(RecvTimeoutError::Disconnected) => {
                        if self.options.children.is_closed() {
                            return Err(io::Error::other("interrupted"));
                        }
                        return Ok(Race::Nobody);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                }
                let idle = self.options.admission.map_or(0, |a| a.idle_slots());
                if clock.elapsed() < overdue || idle == 0 {
                    continue;
                }
                let mut turn = Turn::default();
                let at_once =
                    self.take_turn_within(index, step, priority_ms, &mut turn, Some(AT_ONCE));
                if at_once.is_err() || turn.pass.is_none() {
                    continue;
                }
                let here = self.here(index, step, program, keys, turn);
                if let Ok(Some(done)) = receive.try_recv()
                    && done.code == 0
                    && here.is_err()
                {
                    return Ok(Race::There(done));
                }
                unwanted.store(true, Ordering::SeqCst);
                return here.map(|done| Race::Here(Box::new(done)));
            }
        })
    }

    /// Puts what was written there where the tool here would have written it, and gives what it said. Nothing where a
    /// run here might differ.
    fn take_in(
        &self,
        step: &Step,
        done: &Done,
        names: &[(String, String)],
    ) -> Option<(Vec<u8>, Vec<u8>)> {
        // What failed there is tried here before anybody is told.
        if done.code != 0 || done.outputs.len() != step.writes.len() {
            return None;
        }
        // gcc shows the source's lines with what it says, and they are not there.
        let is_host = matches!(step.tool, Tool::HostCompile | Tool::HostAssembly);
        let talked = !(done.stdout.is_empty() && done.stderr.is_empty());
        self.learn_talk(step, talked);
        if is_host && talked {
            return None;
        }
        // On a terminal it would have looked otherwise.
        if self.options.terminal.is_some() && !done.stderr.is_empty() {
            return None;
        }
        let private = self.graph.private.as_bytes();
        let as_here = |bytes: &[u8]| {
            let mut text = bytes.to_vec();
            for (there, here) in names {
                text = replace(&text, there.as_bytes(), here.as_bytes());
            }
            let text = replace(&text, KEEP.as_bytes(), private);
            memchr::memmem::find(&text, MARK.as_bytes())
                .is_none()
                .then_some(text)
        };
        let streams = (as_here(&done.stdout)?, as_here(&done.stderr)?);
        let mut ready = Vec::with_capacity(step.writes.len());
        for (&id, from) in step.writes.iter().zip(&done.outputs) {
            let file = self.graph.file(id);
            let Some(from) = from else {
                // With -optix-ir cicc is told of a module id file and makes none.
                if step.tool == Tool::Cicc && file.path.ends_with(".module_id") {
                    continue;
                }
                return None;
            };
            let mut bytes = fs::read(from).ok()?;
            if !names.is_empty() && memchr::memmem::find(&bytes, MARK.as_bytes()).is_some() {
                for (there, here) in names {
                    bytes = replace(&bytes, there.as_bytes(), here.as_bytes());
                }
                fs::write(from, &bytes).ok()?;
            }
            if memchr::memmem::find(&bytes, MARK.as_bytes()).is_some() {
                // The stub names itself; nothing else does.
                let is_stub = file.kind == FileKind::Temp && file.path.ends_with(".stub.c");
                let text = as_here(&bytes).filter(|_| is_stub)?;
                fs::write(from, text).ok()?;
            }
            if file.path.ends_with(".module_id") && memchr::memmem::find(&bytes, NAMELESS).is_some()
            {
                return None;
            }
            ready.push((id, from));
        }
        // Below mapped folders a front end runs once more with an id that is the same everywhere: here.
        if !self.options.path_map.is_empty() && matches!(step.tool, Tool::CudaFe | Tool::Cicc) {
            let written = |id| ready.iter().find(|(of, _)| *of == id);
            let written = |id| written(id).map(|(_, from)| from.as_path());
            if self.lasting_module_id(step, &written).is_some() {
                return None;
            }
        }
        for (id, from) in ready {
            let to = self.options.directory.join(self.artifacts.path(id));
            if fs::rename(from, &to).is_err() {
                fs::copy(from, &to).ok()?;
            }
            self.artifacts.written(id);
        }
        Some(streams)
    }
}

/// Who was first.
enum Race {
    /// This machine.
    Here(Box<(Finished, Seen)>),
    /// The other one.
    There(Done),
    /// The other one gave up.
    Nobody,
}
