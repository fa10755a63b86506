//! Compiles small kernels in several processes, because NVRTC's threads wait for each other.
//!
//! The calling process looks kernels up, takes locks, waits for its share of the machine and keeps results, as it does
//! for kernels that its own threads compile. Only NVRTC's part of the work is given to another process. So such a
//! process can be killed at any time: the kernel is then compiled here.

mod command;
mod message;
mod process;
mod serve;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::call_limits::CallLimits;
use crate::job_texts::JobTexts;
use crate::nvrtc::{CompileOutput, LoadedBuild, NvrtcError};
use process::{Trouble, Worker};

pub use command::WorkerCommand;
pub use serve::serve_compilations;

/// The kernels that must be left for each process, so that it is worth its start. A start takes 20 ms of a processor, the
/// first kernel 10 ms more than others, and a small kernel 20 ms (Python, NVRTC 13.0 and 13.5).
const WORTH: usize = 2;

/// The processes of one call.
pub(crate) struct Workers<'w> {
    /// How they are started, and the NVRTC that they must load; `None` if there are to be none.
    how: Option<(&'w WorkerCommand, &'w LoadedBuild)>,
    state: Mutex<State>,
    remark: &'w (dyn Fn(String) + Sync),
}

#[derive(Default)]
struct State {
    idle: Vec<Worker>,
    started: usize,
    /// How many threads of this process compile.
    here: usize,
    /// One has failed: no more are started.
    failed: bool,
}

/// Where one kernel is compiled.
pub(crate) struct Place<'w, 'p> {
    workers: &'p Workers<'w>,
    worker: Option<Worker>,
    /// Whether it is counted as a thread of this process.
    here: bool,
}

impl<'w> Workers<'w> {
    pub(crate) fn new(
        command: Option<&'w WorkerCommand>,
        build: Option<&'w LoadedBuild>,
        remark: &'w (dyn Fn(String) + Sync),
    ) -> Self {
        Self {
            how: command.zip(build),
            state: Mutex::default(),
            remark,
        }
    }

    /// A place for one kernel, with about `left` others still to compile. One thread of this process compiles all the
    /// time, and others only if no process is free or worth its start.
    pub(crate) fn find_place(&self, left: usize, limits: &CallLimits) -> Place<'w, '_> {
        let here = |mut state: MutexGuard<'_, State>| {
            state.here += 1;
            self.place(None)
        };
        let mut state = self.state();
        let Some((command, build)) = self.how else {
            return here(state);
        };
        if state.here == 0 {
            return here(state);
        }
        if let Some(worker) = state.idle.pop() {
            return self.place(Some(worker));
        }
        if state.failed || left < WORTH * (state.started + 1) {
            return here(state);
        }
        state.started += 1;
        drop(state);
        match Worker::start(command, build, limits) {
            Ok(worker) => self.place(Some(worker)),
            Err(trouble) => {
                self.give_up(trouble);
                here(self.state())
            }
        }
    }

    /// Starts no more processes, and says why.
    fn give_up(&self, trouble: Trouble) {
        let first = !std::mem::replace(&mut self.state().failed, true);
        if let (true, Trouble::Failed(why)) = (first, trouble) {
            (self.remark)(format!(
                "a process that compiles failed ({why}); this process compiles its kernels, and starts no other"
            ));
        }
    }

    fn place(&self, worker: Option<Worker>) -> Place<'w, '_> {
        Place {
            workers: self,
            here: worker.is_none(),
            worker,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place<'_, '_> {
    /// Has the texts compiled by another process. `None` if this process is to compile them.
    pub(crate) fn run(
        &mut self,
        directory: Option<&Path>,
        texts: &JobTexts,
        limits: &CallLimits,
    ) -> Option<Result<CompileOutput, NvrtcError>> {
        // A process that has not answered is of no more use, whatever happens here.
        let mut worker = self.worker.take()?;
        match worker.run(directory, texts, limits) {
            Ok(answer) => {
                self.worker = Some(worker);
                answer
            }
            Err(trouble) => {
                drop(worker);
                self.workers.state().here += 1;
                self.here = true;
                let is_limit = matches!(trouble, Trouble::Limit);
                self.workers.give_up(trouble);
                is_limit.then_some(Err(NvrtcError::Stopped))
            }
        }
    }
}

impl Drop for Place<'_, '_> {
    fn drop(&mut self) {
        let mut state = self.workers.state();
        state.idle.extend(self.worker.take());
        state.here -= usize::from(self.here);
    }
}

impl Drop for Workers<'_> {
    fn drop(&mut self) {
        // All end at the same time, and then each is waited for.
        self.state().idle.iter_mut().for_each(Worker::kill);
    }
}
