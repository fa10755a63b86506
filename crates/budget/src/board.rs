//! The door to the budget: opened once per process, shared by its threads, and never in the way.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::ancestry;
use crate::decide::Memory;
use crate::file::{BoardFile, LockTimeout};
use crate::folder::{Folder, Place};
use crate::limits::Limits;
use crate::local::Local;
use crate::memory::Meter;
use crate::own::Own;
use crate::proc;
use crate::record::{Record, State};
use crate::seat;
use crate::snapshot::Snapshot;
use crate::table::Table;
use crate::warning::{Warning, Warnings};

/// A reading of the machine's memory is good for this long.
const FRESH: Duration = Duration::from_millis(20);

/// The budget that all processes of a user share. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Board(pub(crate) Arc<Inner>);

/// What the threads of a process share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub limits: Limits,
    pub local: Local,
    pub warnings: Warnings,
    meter: Arc<Meter>,
    place: Place,
    shared: Mutex<Option<Arc<Shared>>>,
    /// The claims of this process, each with the board it is on: one that was removed under them, or its successor.
    own: Mutex<Vec<(Arc<Shared>, Arc<Own>)>>,
}

/// The part that is on a board.
#[derive(Debug)]
pub(crate) struct Shared {
    pub folder: Folder,
    pub file: BoardFile,
    pub me: Me,
    reserve_kib: u64,
    meter: Arc<Meter>,
    memory: Mutex<Option<(Instant, Memory)>>,
    sender: UnixDatagram,
    ancestors: OnceLock<Vec<(u32, u64)>>,
}

/// This process, as others see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Me {
    pub pid: u32,
    pub start: u64,
}

/// Nanoseconds since boot, sleep included: the same for all processes, and set by nobody.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    (time.tv_sec as u64)
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec as u64)
}

impl Board {
    /// Opens the budget at `place`. This does not fail: where there can be no shared budget, it is
    /// this process's own, and [`Board::warnings`] has the reason.
    pub fn open(place: &Place, limits: Limits) -> Self {
        Self::with_meter(place, limits, Meter::new())
    }

    /// As [`Board::open`], with another file in the place of `/proc/meminfo` and no cgroups: for
    /// tests of what happens when memory is short.
    #[doc(hidden)]
    pub fn open_with_meminfo(place: &Place, limits: Limits, meminfo: &Path) -> Self {
        Self::with_meter(place, limits, Meter::of_file(meminfo))
    }

    fn with_meter(place: &Place, limits: Limits, meter: Meter) -> Self {
        let inner = Inner {
            limits: limits.sane(),
            local: Local::default(),
            warnings: Warnings::default(),
            meter: Arc::new(meter),
            place: place.clone(),
            shared: Mutex::new(None),
            own: Mutex::new(Vec::new()),
        };
        let shared = inner.connect();
        *inner.shared.lock().unwrap_or_else(PoisonError::into_inner) = shared;
        Self(Arc::new(inner))
    }

    /// What this process may use.
    pub fn limits(&self) -> Limits {
        self.0.limits
    }

    /// Whether the budget is shared with other processes.
    pub fn is_shared(&self) -> bool {
        self.0.shared().is_some()
    }

    /// What went wrong since this was last asked.
    pub fn warnings(&self) -> Vec<Warning> {
        self.0.warnings.take()
    }

    /// All claims of the user, for those who look on. Empty without a shared budget.
    pub fn snapshot(&self) -> Snapshot {
        self.0
            .shared()
            .and_then(|shared| Snapshot::take(&shared).ok())
            .unwrap_or_default()
    }
}

impl Inner {
    fn connect(&self) -> Option<Arc<Shared>> {
        if self.place == Place::Nowhere {
            return None;
        }
        let opened = Folder::find(&self.place).and_then(|folder| {
            Shared::open(&folder, self.limits.reserve.0, &self.meter)
                .map_err(|error| (folder.board(), error))
        });
        match opened {
            Ok(shared) => Some(Arc::new(shared)),
            Err((folder, error)) => {
                self.warnings.add(Warning::NoFolder {
                    folder,
                    why: error.to_string(),
                });
                None
            }
        }
    }

    /// The board, if there is one; a new one if somebody has removed the folder, as some systems
    /// do with /dev/shm when a user logs out. Claims on the old one stay with it.
    pub fn shared(&self) -> Option<Arc<Shared>> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.as_ref().is_some_and(|s| s.file.is_removed()) {
            *shared = self.connect();
        }
        shared.clone()
    }

    /// The shared budget does not work: this process goes on without it.
    pub fn disconnect(&self, error: io::Error) {
        self.warnings.add(Warning::BoardFailed(error));
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    pub fn add_own(&self, on: Arc<Shared>, own: Arc<Own>) {
        self.own
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((on, own));
    }

    pub fn remove_own(&self, own: &Arc<Own>) {
        let mut all = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, other)| !Arc::ptr_eq(other, own));
    }

    /// The claims of this process, board by board: as a rule there is one.
    pub fn own(&self) -> Vec<(Arc<Shared>, Vec<Arc<Own>>)> {
        let mut boards: Vec<(Arc<Shared>, Vec<Arc<Own>>)> = Vec::new();
        let all = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        for (on, own) in all.iter() {
            match boards.iter_mut().find(|(board, _)| Arc::ptr_eq(board, on)) {
                Some((_, owns)) => owns.push(Arc::clone(own)),
                None => boards.push((Arc::clone(on), vec![Arc::clone(own)])),
            }
        }
        boards
    }
}

impl Shared {
    fn open(folder: &Folder, reserve_kib: u64, meter: &Arc<Meter>) -> io::Result<Self> {
        let pid = std::process::id();
        let shared = Self {
            folder: folder.clone(),
            file: BoardFile::open(folder)?,
            me: Me {
                pid,
                start: proc::stat(pid).map_or(0, |stat| stat.start),
            },
            reserve_kib,
            meter: Arc::clone(meter),
            memory: Mutex::new(None),
            sender: UnixDatagram::unbound()?,
            ancestors: OnceLock::new(),
        };
        // Whoever does not read must not hold us up.
        shared.sender.set_nonblocking(true)?;
        // Fails here rather than at the first claim, when the folder cannot be written.
        shared.transact(LockTimeout::Soon, |_| ())?;
        Ok(shared)
    }

    /// Changes the table and wakes whom the change concerns.
    ///
    /// # Errors
    /// The board cannot be read or written.
    pub fn transact<T>(
        &self,
        hurry: LockTimeout,
        mut change: impl FnMut(&mut Table) -> T,
    ) -> io::Result<T> {
        let mut bells = Vec::new();
        let result = self.file.with(hurry, |table| {
            let result = change(table);
            bells = table.bells();
            result
        })?;
        for number in bells {
            seat::ring(&self.sender, &self.folder, number);
        }
        Ok(result)
    }

    /// What memory can be had, read at most every [`FRESH`].
    pub fn memory(&self) -> Memory {
        let mut last = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        match *last {
            Some((when, memory)) if when.elapsed() < FRESH => memory,
            _ => {
                let memory = Memory {
                    available_kib: self.meter.read().available_kib,
                    reserve_kib: self.reserve_kib,
                };
                *last = Some((Instant::now(), memory));
                memory
            }
        }
    }

    /// Which memory this process lives in.
    pub fn domain(&self) -> u64 {
        self.meter.domain()
    }

    /// Whether one of the processes that this one was started by has a running claim. Where we were
    /// started by its tool, we were started by it as well.
    pub fn is_nested(&self, records: &[Record]) -> bool {
        let ancestors = self.ancestors.get_or_init(ancestry::ancestors);
        let mut running = records.iter().filter(|r| r.state == State::Running);
        running.any(|r| ancestors.contains(&(r.pid, r.pid_start)))
    }
}
