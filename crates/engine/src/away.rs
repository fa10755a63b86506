//! A step on another machine: what it needs is packed, what it wrote is put where the tool here would have written it, and
//! the result is stored under the step's own key.
//!
//! Everything of ours has one unmistakable name there ([`MARK`]). A result that holds it holds a path of that machine:
//! unless we know what stands there in a local run, the result is thrown away and the step runs here.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use warpcc_cache::{Digest, Key};
use warpcc_plan::{FileId, FileKind, Part, Step, Tool};

use crate::admission;
use crate::artifact::replace;
use crate::event::{Finished, Outcome};
use crate::executor::{Done, Executor, Input, Job};
use crate::key::LANGUAGE_VARIABLES;
use crate::loader::{Loaded, loaded_by};
use crate::observe::Seen;
use crate::task::{Located, Worker};
use crate::turn::Turn;

/// The folder of everything that is the plan's, in the command's folder there.
const MARK: &str = "__warpcc_away__";

/// The private folder there.
const KEEP: &str = "__warpcc_away__/keep/";

/// The end of a module id that holds cudafe++'s process id, as CUDA 13 writes it for a source that defines nothing. In a
/// cluster's sandboxes every process has the same one.
const NAMELESS: &[u8] = b"ba747b4a_";

/// A slot that is not there by now is not free.
const AT_ONCE: Duration = Duration::from_millis(10);

/// How often a step that is away is thought of.
const GLANCE: Duration = Duration::from_millis(100);

/// Before this nobody is late.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a run knows of the steps that are away.
#[derive(Default)]
pub struct Elsewhere {
    steps: AtomicUsize,
    loaded: Mutex<BTreeMap<PathBuf, Arc<OnceLock<Option<Loaded>>>>>,
}

/// A slot there.
struct Slot<'a>(&'a AtomicUsize);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Elsewhere {
    fn slot(&self, slots: usize) -> Option<Slot<'_>> {
        let taken = |steps| (steps < slots).then_some(steps + 1);
        let got = self
            .steps
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, taken);
        got.is_ok().then_some(Slot(&self.steps))
    }
}

/// What is sent, and what a local run of it would have seen.
struct Packed {
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    inputs: Vec<Input>,
    outputs: Vec<String>,
    seen: Seen,
}

impl Worker<'_> {
    /// Has `step` run on another machine, if one takes it and none of this machine's slots is free. Nothing when it is
    /// to run here; `turn` then holds the slot, if there was one.
    ///
    /// # Errors
    /// As a run here.
    pub fn elsewhere(
        &self,
        index: usize,
        step: &Step,
        program: &Located,
        key: Option<&Key>,
        priority_ms: u64,
        turn: &mut Turn,
    ) -> io::Result<Option<(Finished, Seen)>> {
        let Some(executor) = self.setting.executor.filter(|e| e.takes(step.tool)) else {
            return Ok(None);
        };
        if !self.may_leave(step) {
            return Ok(None);
        }
        let Some(_slot) = self.elsewhere.slot(executor.slots()) else {
            return Ok(None);
        };
        if !executor.is_preferred() {
            let at_once = self.take_turn_within(index, step, priority_ms, turn, Some(AT_ONCE));
            if at_once.is_ok() {
                return Ok(None);
            }
        }
        *turn = Turn::default();
        if self.setting.children.is_closed() {
            return Err(io::Error::other("interrupted"));
        }
        let began = SystemTime::now();
        for &id in &step.reads {
            self.artifacts.materialise(id)?;
        }
        let folder = self.setting.scratch.join(format!("away-{index}"));
        // Whatever hinders packing hinders nothing here.
        let packed = fs::create_dir_all(&folder)
            .ok()
            .and_then(|()| self.pack(step, program));
        let Some(packed) = packed else {
            return Ok(None);
        };
        let job = Job {
            tool: step.tool,
            arguments: packed.arguments,
            environment: packed.environment,
            inputs: packed.inputs,
            outputs: packed.outputs,
            folder: &folder,
        };
        let race = self.race(index, step, program, key, priority_ms, executor, &job)?;
        let done = match race {
            Race::Here(done) => return Ok(Some(*done)),
            Race::Nobody => None,
            Race::There(done) => self.take_in(step, &done).map(|streams| (done, streams)),
        };
        drop(fs::remove_dir_all(&folder));
        let Some((done, (stdout, stderr))) = done else {
            return Ok(None);
        };
        let mut finished = Finished::new(index, Outcome::Ran);
        finished.away = true;
        finished.user = done.busy;
        finished.stdout = stdout;
        finished.stderr = stderr;
        self.keep_if_wanted(step, key, &mut finished, &packed.seen, began);
        Ok(Some((finished, packed.seen)))
    }

    /// Whether the step's result is the same from everywhere. Debug information holds folders of the machine.
    fn may_leave(&self, step: &Step) -> bool {
        let takes_part = match step.tool {
            Tool::Ptxas | Tool::Cicc | Tool::Fatbinary | Tool::CudaFe => true,
            Tool::Preprocess
            | Tool::EarlyStub
            | Tool::Nvlink
            | Tool::HostCompile
            | Tool::HostAssembly
            | Tool::Assemble
            | Tool::HostLink
            | Tool::Archive
            | Tool::FilterDependencies => false,
        };
        takes_part
            && !self.graph.private.is_empty()
            && !step.has_debug_information()
            // A library that somebody puts into every process belongs to this machine.
            && self.setting.variable("LD_PRELOAD").is_none_or(|v| v.is_empty())
    }

    /// Where a file of the plan is there.
    fn place(&self, id: FileId) -> Option<String> {
        let here = self.artifacts.path(id).to_str()?;
        Some(match here.strip_prefix(&self.graph.private) {
            Some(rest) => format!("{KEEP}{rest}"),
            None => format!("{MARK}/{}/{}", id.0, self.graph.file(id).name()),
        })
    }

    fn pack(&self, step: &Step, program: &Located) -> Option<Packed> {
        let loaded = self.loaded(&program.path)?;
        let mut seen = Seen::default();
        let mut inputs = Vec::new();
        let mut add = |path: String, file: &Path, executable: bool| -> Option<()> {
            inputs.push(Input {
                path,
                digest: self.lasting_digest(file)?,
                file: file.to_owned(),
                executable,
            });
            Some(())
        };
        let name = program.path.file_name()?.to_str()?;
        let tool = format!("tc/bin/{name}");
        // The loader goes along, so that the libraries do: then what a result depends on is the same as here.
        add("tc/ld.so".to_owned(), &loaded.loader, true)?;
        seen.read.insert(loaded.loader.clone());
        add(tool.clone(), &program.path, true)?;
        seen.read.insert(program.path.clone());
        for (name, path) in &loaded.libraries {
            add(format!("tc/lib/{name}"), path, true)?;
            seen.read.insert(path.clone());
        }
        let mut environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        for name in LANGUAGE_VARIABLES {
            if let Some(value) = self.setting.variable(name) {
                environment.push(((*name).to_owned(), value.to_str()?.to_owned()));
            }
        }
        if step.tool == Tool::Cicc {
            let folder = Path::new(self.setting.variable("NVVMIR_LIBRARY_DIR")?);
            let library = folder.join("libdevice.10.bc");
            add("tc/libdevice/libdevice.10.bc".to_owned(), &library, false)?;
            seen.read.insert(library);
            environment.push(("NVVMIR_LIBRARY_DIR".to_owned(), "tc/libdevice".to_owned()));
        }
        for &id in &step.reads {
            let file = self.artifacts.path(id);
            inputs.push(Input {
                path: self.place(id)?,
                digest: self.artifacts.digest(id).ok()?,
                file: self.setting.directory.join(file),
                executable: false,
            });
            if self.graph.file(id).kind == FileKind::External {
                seen.read.insert(file.to_owned());
            }
        }
        let mut arguments: Vec<String> = [
            "tc/ld.so",
            "--inhibit-cache",
            "--library-path",
            "tc/lib",
            &tool,
        ]
        .map(str::to_owned)
        .into();
        for arg in &step.args {
            let mut text = String::new();
            for part in &arg.0 {
                match part {
                    Part::Text(part) => text.push_str(part),
                    Part::File(id) => text.push_str(&self.place(*id)?),
                }
            }
            arguments.push(text);
        }
        let outputs = step.writes.iter().map(|&id| self.place(id));
        Some(Packed {
            arguments,
            environment,
            outputs: outputs.collect::<Option<_>>()?,
            inputs,
            seen,
        })
    }

    fn loaded(&self, program: &Path) -> Option<Loaded> {
        let cell = {
            let known = self.elsewhere.loaded.lock();
            let mut known = known.unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(program.to_owned()).or_default())
        };
        let setting = self.setting;
        let ask = || {
            loaded_by(
                program,
                setting.environment,
                setting.directory,
                setting.children,
            )
        };
        cell.get_or_init(ask).clone()
    }

    /// Of a file that does not change from run to run.
    fn lasting_digest(&self, file: &Path) -> Option<Digest> {
        match self.setting.store {
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
        key: Option<&Key>,
        priority_ms: u64,
        executor: &dyn Executor,
        job: &Job<'_>,
    ) -> io::Result<Race> {
        let overdue = self.setting.admission.map_or(PATIENCE, |admission| {
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
                let done = self.setting.children.waiting(index, |cancel| {
                    let is_unwanted = || cancel.is_cancelled() || unwanted.load(Ordering::SeqCst);
                    executor.execute(job, &is_unwanted)
                });
                // Perhaps nobody waits any more.
                let _ = send.send(done.clone());
                // A local run that is still at it was for nothing.
                if done.as_ref().is_some_and(|done| done.code == 0)
                    && !unwanted.load(Ordering::SeqCst)
                {
                    self.setting.children.kill(|task| task == index);
                }
            };
            if thread::Builder::new().spawn_scoped(scope, there).is_err() {
                return Ok(Race::Nobody);
            }
            loop {
                match receive.recv_timeout(GLANCE) {
                    Ok(Some(done)) => return Ok(Race::There(done)),
                    Ok(None) | Err(RecvTimeoutError::Disconnected) => {
                        if self.setting.children.is_closed() {
                            return Err(io::Error::other("interrupted"));
                        }
                        return Ok(Race::Nobody);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                }
                let idle = self.setting.admission.map_or(0, |a| a.idle_slots());
                if clock.elapsed() < overdue || idle == 0 {
                    continue;
                }
                let mut turn = Turn::default();
                let at_once =
                    self.take_turn_within(index, step, priority_ms, &mut turn, Some(AT_ONCE));
                if at_once.is_err() || turn.pass.is_none() {
                    continue;
                }
                let here = self.here(index, step, program, key, turn);
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
    fn take_in(&self, step: &Step, done: &Done) -> Option<(Vec<u8>, Vec<u8>)> {
        // What failed there is tried here before anybody is told.
        if done.code != 0 || done.outputs.len() != step.writes.len() {
            return None;
        }
        // On a terminal it would have looked otherwise.
        if self.setting.terminal.is_some() && !done.stderr.is_empty() {
            return None;
        }
        let private = self.graph.private.as_bytes();
        let as_here = |bytes: &[u8]| {
            let text = replace(bytes, KEEP.as_bytes(), private);
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
            let bytes = fs::read(from).ok()?;
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
        for (id, from) in ready {
            let to = self.setting.directory.join(self.artifacts.path(id));
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
