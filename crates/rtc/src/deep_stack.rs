//! Runs the compiler on a thread with a deep stack, and leaves that thread behind when a limit is reached.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::call_limits::CallLimits;
use crate::nvrtc::{CompileOutput, NvrtcError};

/// Templates nest deeply, and so does a compiler's stack; a thread of Rust's has 2 MiB.
pub(crate) const STACK: usize = 64 << 20;

/// How often a thread that waits for the compiler checks the limits.
const PAUSE: Duration = Duration::from_millis(20);

/// How long the compiler has to notice that it should stop. It checks at irregular times: 13.5 was seen to go on for 40 s.
const GRACE: Duration = Duration::from_millis(200);

/// Runs the compiler on a thread of its own. If a limit is reached and the compiler does not stop, the thread is left
/// behind: it ends when the compiler notices, and its result is dropped.
pub(crate) fn on_a_deep_stack<W>(work: W, limits: &CallLimits) -> Result<CompileOutput, NvrtcError>
where
    W: FnOnce() -> Result<CompileOutput, NvrtcError> + Send + 'static,
{
    let cell = Arc::new(Mutex::new(Some(work)));
    let take = |cell: &Mutex<Option<W>>| cell.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (tell, answer) = mpsc::channel();
    let theirs = cell.clone();
    let thread = std::thread::Builder::new()
        .name("warpcc-rtc".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            if let Some(work) = take(&theirs) {
                // The receiver may have stopped waiting.
                drop(tell.send(catch_unwind(AssertUnwindSafe(work))));
            }
        });
    if thread.is_err() {
        // No thread can be started: the work runs on the caller's.
        if let Some(work) = take(&cell) {
            return work();
        }
    }
    let mut over = None;
    loop {
        let heard = match limits.any() {
            true => answer.recv_timeout(PAUSE),
            false => answer.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match heard {
            Ok(Ok(made)) => return made,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(NvrtcError::Call {
                    call: "a thread for the compiler",
                    code: "it ended without an answer".to_owned(),
                });
            }
            Err(RecvTimeoutError::Timeout) => {
                if limits.check("").is_err()
                    && over.get_or_insert_with(Instant::now).elapsed() > GRACE
                {
                    return Err(NvrtcError::Stopped);
                }
            }
        }
    }
}
