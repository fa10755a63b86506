//! Waits for a task's slot, holds the slot while the tool runs, and gives it up for others when memory runs short.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use warpcc_budget::costs::Measured;
use warpcc_plan::Step;

use crate::admission::{self, Applicant, Pass};
use crate::context::RunContext;
use crate::event::WaitedFor;
use crate::process::{EndReason, Ended};

/// How often a tool runs again, alone on the machine, after it failed for lack of memory or processes.
const TRIES_ALONE: u32 = 2;

/// A task's slot and tokens, and how long it waited for them.
#[derive(Default)]
pub struct SlotWait {
    /// The right to run; `None` where slots are not limited.
    pub pass: Option<Pass>,
    /// How long it waited.
    pub waited: Duration,
    /// The cause of most of that time.
    pub waited_for: WaitedFor,
    /// How often it was ended to make room, and started again.
    pub retries: u32,
    for_memory: Duration,
    alone: u32,
    input_bytes: u64,
    name: String,
}

/// Waits until `step` may run.
///
/// # Errors
/// The build ended meanwhile.
pub fn wait_for_slot(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    priority_ms: u64,
    wait: &mut SlotWait,
) -> io::Result<()> {
    wait_for_slot_within(run, index, step, priority_ms, wait, None)
}

/// Waits until `step` may run, at most for `patience`.
///
/// # Errors
/// The task got no slot in that time (`TimedOut`), or the build ended meanwhile.
pub fn wait_for_slot_within(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    priority_ms: u64,
    wait: &mut SlotWait,
    patience: Option<Duration>,
) -> io::Result<()> {
    let Some(admission) = run.options.admission else {
        return Ok(());
    };
    wait.name = admission::name_of(step, run.graph);
    let inputs = step.reads.iter().map(|&id| run.artifacts.size(id));
    wait.input_bytes = inputs.sum();
    let entry = Applicant {
        name: &wait.name,
        kind: admission::kind_of(step.tool),
        slots: 1,
        input_bytes: wait.input_bytes,
        priority_ms,
        label: &admission::label_of(step, run.graph),
        tag: index as u64,
    };
    let clock = Instant::now();
    let impatient = AtomicBool::new(false);
    let pass = run
        .options
        .children
        .waiting(index, |cancel| match patience {
            None => admission.enter(&entry, cancel),
            Some(patience) => thread::scope(|scope| {
                let (entered, waits) = mpsc::channel::<()>();
                let impatient = &impatient;
                let give_up = move || {
                    if waits.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                        impatient.store(true, Ordering::SeqCst);
                        cancel.cancel();
                    }
                };
                // Without this thread the wait would have no end.
                if thread::Builder::new().spawn_scoped(scope, give_up).is_err() {
                    return Err(warpcc_budget::Cancelled);
                }
                let pass = admission.enter(&entry, cancel);
                drop(entered);
                pass
            }),
        })
        .map_err(|cancelled| match impatient.load(Ordering::SeqCst) {
            true => io::ErrorKind::TimedOut.into(),
            false => admission::cancelled(cancelled),
        })?;
    wait.waited += clock.elapsed();
    wait.for_memory += pass.for_memory();
    wait.waited_for = if pass.for_token > wait.waited / 2 {
        WaitedFor::Token
    } else if wait.for_memory > wait.waited / 2 {
        WaitedFor::Memory
    } else {
        WaitedFor::Slot
    };
    wait.pass = Some(pass);
    Ok(())
}

/// Whether the tool must run once more. If so, this waits until it may.
///
/// # Errors
/// The build ended meanwhile.
pub fn wait_again(
    run: &RunContext<'_>,
    index: usize,
    ended: &Ended,
    wait: &mut SlotWait,
) -> io::Result<bool> {
    let Some(pass) = &mut wait.pass else {
        return Ok(false);
    };
    let made_room = ended.by_us == Some(EndReason::Memory);
    let starved = ended.by_us.is_none()
        && (was_killed(ended) || could_not_fork(ended))
        && wait.alone < TRIES_ALONE;
    if run.options.children.is_closed() || !(made_room || starved) {
        return Ok(false);
    }
    let clock = Instant::now();
    let waited = run.options.children.waiting(index, |cancel| {
        if made_room {
            pass.claim().requeue(ended.peak_kib, cancel)
        } else {
            wait.alone += 1;
            pass.claim().requeue_alone(cancel)
        }
    });
    wait.waited += clock.elapsed();
    wait.for_memory += clock.elapsed();
    if wait.for_memory > wait.waited / 2 {
        wait.waited_for = WaitedFor::Memory;
    }
    wait.retries += 1;
    waited.map_err(admission::cancelled)?;
    Ok(true)
}

/// Records the cost of the step.
pub fn learn(
    run: &RunContext<'_>,
    step: &Step,
    ended: &Ended,
    took: Duration,
    wait: &mut SlotWait,
) {
    if let (Some(admission), Some(pass), 0) = (run.options.admission, &mut wait.pass, ended.code) {
        let measured = Measured {
            input_bytes: wait.input_bytes,
            millis: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            peak_kib: ended.peak_kib.max(pass.claim().peak_kib()),
        };
        admission.learn(&wait.name, admission::kind_of(step.tool), measured);
    }
}

/// Whether the tool, or a process that it started, was ended by a SIGKILL that warpcc did not send: the kernel sends it if
/// memory is limited.
fn was_killed(ended: &Ended) -> bool {
    const SIGKILL: i32 = 9;
    // A shell returns the signal as its status. The gcc driver reports it for cc1plus, in the language of `LC_MESSAGES`; in
    // a language that is not recognised here, the failure stands.
    ended.signal == Some(SIGKILL)
        || ended.code == 128 + SIGKILL
        || memchr::memmem::find(&ended.stderr, b"Killed signal terminated program").is_some()
}

/// Whether the tool failed because the limit of processes was reached (`RLIMIT_NPROC`, `pids.max`): `EAGAIN` of fork(2), as
/// gcc, the shell and strerror(3) print it in the language of `LC_MESSAGES`.
fn could_not_fork(ended: &Ended) -> bool {
    // Such a message ends its line. A compiler's message that quotes a source with these words goes on, or names a file.
    let says = |line: &[u8]| {
        line.ends_with(b": Cannot fork")
            || line.ends_with(b"fork: Resource temporarily unavailable")
    };
    ended.code != 0 && ended.stderr.split(|&byte| byte == b'\n').any(says)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shot_compiler_is_told_from_a_failing_one() {
        let ended = |signal, code, stderr: &str| Ended {
            signal,
            code,
            stderr: stderr.into(),
            ..Ended::default()
        };
        assert!(was_killed(&ended(Some(9), 137, "")));
        assert!(was_killed(&ended(None, 137, "")));
        let gcc = "g++: fatal error: Killed signal terminated program cc1plus\n";
        assert!(was_killed(&ended(None, 1, gcc)));
        assert!(!was_killed(&ended(None, 1, "a.cu(3): error\n")));
        assert!(!was_killed(&ended(Some(11), 139, "")));
        let full =
            "gcc: fatal error: cannot execute 'cc1plus': vfork: Resource temporarily unavailable\n";
        assert!(could_not_fork(&ended(None, 1, full)));
        assert!(could_not_fork(&ended(None, 2, "sh: 1: Cannot fork\n")));
        assert!(!could_not_fork(&ended(None, 1, "fork.cu(3): error\n")));
        let quoted = "a.cu(3): error: \"sh: Cannot fork\" is not a number\n";
        assert!(!could_not_fork(&ended(None, 1, quoted)));
    }
}
