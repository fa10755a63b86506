//! A remote step that is late also runs here: the first result wins.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use warpcc_cache::KeyVariants;
use warpcc_cache::command::Done;
use warpcc_plan::Step;

use crate::admission;
use crate::context::RunContext;
use crate::event::Finished;
use crate::executor::{Executor, RemoteJob};
use crate::local;
use crate::located::Located;
use crate::slot_wait::{self, SlotWait};
use crate::traced_inputs::TracedInputs;

/// How long a slot is waited for. A slot that is not free by then counts as taken.
pub const AT_ONCE: Duration = Duration::from_millis(100);

/// How often a step on another machine is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Before this time no result counts as late.
const PATIENCE: Duration = Duration::from_secs(2);

/// The winner of a race.
pub enum Race {
    /// The run on this machine.
    Local(Box<(Finished, TracedInputs)>),
    /// The run on the other machine.
    Remote(Done),
    /// The other machine gave up.
    Nobody,
}

/// Runs the job there, and here as well if it is late and a slot is free.
#[expect(
    clippy::too_many_arguments,
    reason = "what a run here needs, and a run there"
)]
pub fn race(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    program: &Located,
    keys: Option<&KeyVariants>,
    priority_ms: u64,
    executor: &dyn Executor,
    job: &RemoteJob<'_>,
) -> io::Result<Race> {
    let overdue = run.options.admission.map_or(PATIENCE, |admission| {
        let (name, kind) = (
            admission::name_of(step, run.graph),
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
            let done = run.options.children.waiting(index, |cancel| {
                let is_unwanted = || cancel.is_cancelled() || unwanted.load(Ordering::SeqCst);
                executor.execute(job, &is_unwanted)
            });
            // The receiver may have stopped waiting.
            let _ = send.send(done.clone());
            // A local run that has not ended is not needed any more.
            if done.as_ref().is_some_and(|done| done.code == 0) && !unwanted.load(Ordering::SeqCst)
            {
                run.options.children.kill(|task| task == index);
            }
        };
        if thread::Builder::new().spawn_scoped(scope, there).is_err() {
            return Ok(Race::Nobody);
        }
        loop {
            match receive.recv_timeout(CHECK_INTERVAL) {
                Ok(Some(done)) => return Ok(Race::Remote(done)),
                Ok(None) | Err(RecvTimeoutError::Disconnected) => {
                    if run.options.children.is_closed() {
                        return Err(io::Error::other("interrupted"));
                    }
                    return Ok(Race::Nobody);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let idle = run.options.admission.map_or(0, |a| a.idle_slots());
            if clock.elapsed() < overdue || idle == 0 {
                continue;
            }
            let mut wait = SlotWait::default();
            let at_once = slot_wait::wait_for_slot_within(
                run,
                index,
                step,
                priority_ms,
                &mut wait,
                Some(AT_ONCE),
            );
            if at_once.is_err() || wait.pass.is_none() {
                continue;
            }
            let here = local::run_here(run, index, step, program, keys, wait);
            if let Ok(Some(done)) = receive.try_recv()
                && done.code == 0
                && here.is_err()
            {
                return Ok(Race::Remote(done));
            }
            unwanted.store(true, Ordering::SeqCst);
            return here.map(|done| Race::Local(Box::new(done)));
        }
    })
}
