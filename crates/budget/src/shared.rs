//! The part of a budget that is on a board, which all processes of a user see.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::ancestry;
use crate::decide::Memory;
use crate::file::{BoardFile, LockTimeout};
use crate::folder::Folder;
use crate::memory::Meter;
use crate::proc;
use crate::record::{Record, SeatState};
use crate::seat;
use crate::table::SeatTable;

/// A reading of the machine's memory is good for this long.
const FRESH: Duration = Duration::from_millis(20);

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

impl Shared {
    pub fn open(folder: &Folder, reserve_kib: u64, meter: &Arc<Meter>) -> io::Result<Self> {
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
        // A process that does not read must not block this one.
        shared.sender.set_nonblocking(true)?;
        // If the folder cannot be written, this fails here and not at the first claim.
        shared.transact(LockTimeout::Soon, |_| ())?;
        Ok(shared)
    }

    /// Changes the table and wakes whom the change concerns.
    ///
    /// # Errors
    /// The board cannot be read or written.
    pub fn transact<T>(
        &self,
        timeout: LockTimeout,
        mut change: impl FnMut(&mut SeatTable) -> T,
    ) -> io::Result<T> {
        let mut to_wake = Vec::new();
        let result = self.file.with(timeout, |table| {
            let result = change(table);
            to_wake = table.take_to_wake();
            result
        })?;
        for number in to_wake {
            seat::wake(&self.sender, &self.folder, number);
        }
        Ok(result)
    }

    /// The available memory, read at most every [`FRESH`].
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

    /// The memory that this process uses, as [`Record::domain`] names it.
    pub fn domain(&self) -> u64 {
        self.meter.domain()
    }

    /// Whether one of the processes that this one was started by has a running claim. Where we were
    /// started by its tool, we were started by it as well.
    pub fn is_nested(&self, records: &[Record]) -> bool {
        let ancestors = self.ancestors.get_or_init(ancestry::ancestors);
        let mut running = records.iter().filter(|r| r.state == SeatState::Running);
        running.any(|r| ancestors.contains(&(r.pid, r.pid_start)))
    }
}
