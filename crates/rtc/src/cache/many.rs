//! Many images at once: several threads, no more of them compiling than the machine has room for, in all processes together.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use warpcc_budget::{Board, BoardPlace, BudgetLimits, ClaimRequest, CommandKind};

use crate::call_limits::{CallLimits, Cancel};
use crate::environment::RUNTIME_DIR;
use crate::error::Error;
use crate::found::Found;
use crate::request::CompileRequest;
use crate::workers::{WorkerCommand, Workers};

use super::{Image, KernelCache, Turn};

/// Memory that NVRTC needs for a kernel, in KiB. On the high side: a whole process took 406 MiB for a kernel that includes CUB,
/// and 99 for a small one (NVRTC 13.5).
const MEMORY_KIB: u64 = 400 * 1024;
/// How late a cancellation is noticed.
const PAUSE: Duration = Duration::from_millis(20);

/// How [`KernelCache::get_many`] works.
#[derive(Debug, Clone, Default)]
pub struct ManyOptions {
    /// The most threads; 0 for as many as the machine has processors.
    pub threads: usize,
    /// Where processes agree on their shares of the machine: by default with every warpcc of this user, in the folder that
    /// `WARPCC_RUNTIME_DIR` names, if it is set.
    pub budget: BoardPlace,
    /// How to start processes that compile beside this one: with many small kernels that is faster, because NVRTC's threads
    /// wait for each other. `None`: only threads of this process compile.
    pub workers: Option<WorkerCommand>,
}

/// One image of many is done.
#[derive(Debug)]
pub struct Progress<'a> {
    /// How many are done now, this one included.
    pub done: usize,
    /// How many were asked for.
    pub total: usize,
    /// The position of this one in what was asked for.
    pub index: usize,
    /// Its name.
    pub name: &'a str,
    /// The image, or why there is none.
    pub result: &'a Result<Image, Error>,
    /// How long it took, waiting included.
    pub took: Duration,
}

impl KernelCache {
    /// The images of all `requests`, in their order, each as [`KernelCache::get`] would give it. They are looked up and
    /// compiled by several threads. A compilation waits for its share of the machine, which this process and all other
    /// processes of the user have together. `progress` is called by the calling thread, once for each image; if it returns
    /// false, the rest is cancelled. Several processes that ask for the same requests begin at different places, so that each
    /// compiles some of them and finds the others.
    ///
    /// With [`ManyOptions::workers`], NVRTC runs in other processes too, if enough kernels have to be compiled. They end with
    /// this call. If one fails, its kernel is compiled here, and [`KernelCache::remarks`] says so.
    pub fn get_many(
        &self,
        requests: &[CompileRequest],
        options: &ManyOptions,
        limits: &CallLimits,
        mut progress: impl FnMut(&Progress<'_>) -> bool,
    ) -> Vec<Result<Image, Error>> {
        let total = requests.len();
        let mut results: Vec<Option<Result<Image, Error>>> = vec![None; total];
        let remark = |remark| self.remark_on_workers(remark);
        let command = options.workers.as_ref();
        let workers = Workers::new(command, self.compiler.loaded(), &remark);
        let place = self.place(options);
        let share = Share::open(&place, options, limits, total, &workers);
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..share.threads {
                let (sender, share) = (sender.clone(), &share);
                let work = move || {
                    while let Some(index) = share.next_index() {
                        let start = Instant::now();
                        let result = self.get_shared(&requests[index], share);
                        // The caller listens until all are done.
                        drop(sender.send((index, result, start.elapsed())));
                    }
                };
                // The calling thread does the work of threads that cannot be started.
                let named = std::thread::Builder::new().name("warpcc-rtc-many".to_owned());
                drop(named.spawn_scoped(scope, work));
            }
            drop(sender);
            let mut done = 0;
            loop {
                match receiver.recv_timeout(PAUSE) {
                    Ok((index, result, took)) => {
                        done += 1;
                        let told = Progress {
                            done,
                            total,
                            index,
                            name: &requests[index].name,
                            result: &result,
                            took,
                        };
                        if !share.is_cancelled() && !progress(&told) {
                            share.cancel();
                        }
                        results[index] = Some(result);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if limits.check("many kernels").is_err() {
                    share.cancel();
                }
            }
        });
        let missing = results.into_iter().zip(requests);
        missing
            .map(|(result, request)| result.unwrap_or_else(|| self.get_shared(request, &share)))
            .collect()
    }

    fn place(&self, options: &ManyOptions) -> BoardPlace {
        let named = self.environment.own_path(RUNTIME_DIR);
        match (&options.budget, named.filter(|path| path.is_absolute())) {
            (BoardPlace::OfUser, Some(path)) => BoardPlace::At(path),
            (place, _) => place.clone(),
        }
    }

    fn get_shared(&self, request: &CompileRequest, share: &Share<'_>) -> Result<Image, Error> {
        self.get_admitted(request, &share.limits, &|| {
            share.missed.fetch_add(1, Ordering::Relaxed);
            let ask = ClaimRequest {
                kind: CommandKind::Rtc,
                slots: 1,
                memory_kib: MEMORY_KIB,
                priority_ms: CommandKind::Rtc.usual_millis(),
                expected_ms: CommandKind::Rtc.usual_millis(),
                build: u64::from(std::process::id()),
                label: request.name.to_string(),
                tag: 0,
            };
            let claim = share.board.claim(&ask, &share.waiting);
            let claim = claim.map_err(|_| Error::Cancelled {
                what: request.name.to_string(),
            })?;
            let place = share.workers.find_place(share.left(), &share.limits);
            Ok(Turn {
                place: Some(place),
                _claim: Some(claim),
            })
        })
    }
}

/// What the threads of one call share.
struct Share<'w> {
    workers: &'w Workers<'w>,
    board: Board,
    /// Ends waiting for the board.
    waiting: warpcc_budget::Cancel,
    /// The caller's deadline, and a cancellation that needs no function of the caller's.
    limits: CallLimits,
    cancelled: Cancel,
    threads: usize,
    first: usize,
    total: usize,
    /// How many requests were begun.
    begun: AtomicUsize,
    /// How many of those had to be compiled.
    missed: AtomicUsize,
}

impl<'w> Share<'w> {
    fn open(
        place: &BoardPlace,
        options: &ManyOptions,
        limits: &CallLimits,
        total: usize,
        workers: &'w Workers<'w>,
    ) -> Self {
        let budget = BudgetLimits::detect();
        let most = match options.threads {
            0 => budget.slots as usize,
            threads => threads,
        };
        let cancel = Cancel::new();
        // Neighbours have neighbouring numbers: these spread them.
        let spread = (u64::from(std::process::id())).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        Self {
            workers,
            board: Board::open(place, budget),
            waiting: warpcc_budget::Cancel::new(),
            limits: CallLimits {
                deadline: limits.deadline,
                cancel: Some(cancel.clone()),
            },
            cancelled: cancel,
            threads: most.clamp(1, total.max(1)),
            first: spread as usize % total.max(1),
            total,
            begun: AtomicUsize::new(0),
            missed: AtomicUsize::new(0),
        }
    }

    /// The position of the next request, until there is none.
    fn next_index(&self) -> Option<usize> {
        let turn = self.begun.fetch_add(1, Ordering::Relaxed);
        (turn < self.total).then(|| (self.first + turn) % self.total)
    }

    /// How many requests that were not begun will have to be compiled, if they are like those before.
    fn left(&self) -> usize {
        let begun = self
            .begun
            .load(Ordering::Relaxed)
            .clamp(1, self.total.max(1));
        let missed = self.missed.load(Ordering::Relaxed).min(begun);
        self.total.saturating_sub(begun) * missed / begun
    }

    fn cancel(&self) {
        self.waiting.cancel();
        self.cancelled.cancel();
    }

    fn is_cancelled(&self) -> bool {
        self.waiting.is_cancelled()
    }
}

impl Progress<'_> {
    /// Where the image was found; `None` if there is none.
    pub fn found(&self) -> Option<Found> {
        self.result.as_ref().ok().map(|image| image.found)
    }
}
