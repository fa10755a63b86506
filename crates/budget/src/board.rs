//! The interface of the budget: opened once per process and shared by its threads. Its errors never stop a build.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::folder::{BoardPlace, Folder};
use crate::limits::BudgetLimits;
use crate::local::Local;
use crate::memory::Meter;
use crate::own::Own;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::warning::{Warning, Warnings};

/// The budget that all processes of a user share. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Board(pub(crate) Arc<BoardState>);

/// The state that the threads of a process share.
#[derive(Debug)]
pub(crate) struct BoardState {
    pub limits: BudgetLimits,
    pub local: Local,
    pub warnings: Warnings,
    meter: Arc<Meter>,
    place: BoardPlace,
    shared: Mutex<Option<Arc<Shared>>>,
    /// The claims of this process, each with the board that it is on. If the board's folder was removed, older claims
    /// are on the old board.
    own: Mutex<Vec<(Arc<Shared>, Arc<Own>)>>,
}

impl Board {
    /// Opens the budget at `place`. This does not fail: if there can be no shared budget, the budget is this process's
    /// own, and [`Board::warnings`] has the reason.
    pub fn open(place: &BoardPlace, limits: BudgetLimits) -> Self {
        Self::with_meter(place, limits, Meter::new())
    }

    /// Like [`Board::open`], but reads another file in place of `/proc/meminfo`, and no cgroups. It is for tests of
    /// what happens when memory is short.
    #[doc(hidden)]
    pub fn open_with_meminfo(place: &BoardPlace, limits: BudgetLimits, meminfo: &Path) -> Self {
        Self::with_meter(place, limits, Meter::of_file(meminfo))
    }

    fn with_meter(place: &BoardPlace, limits: BudgetLimits, meter: Meter) -> Self {
        let inner = BoardState {
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

    /// The limits of this process.
    pub fn limits(&self) -> BudgetLimits {
        self.0.limits
    }

    /// Whether the budget is shared with other processes.
    pub fn is_shared(&self) -> bool {
        self.0.shared().is_some()
    }

    /// The warnings since the last call.
    pub fn warnings(&self) -> Vec<Warning> {
        self.0.warnings.take()
    }

    /// All claims of the user, for viewers. Empty without a shared budget.
    pub fn snapshot(&self) -> Snapshot {
        self.0
            .shared()
            .and_then(|shared| Snapshot::take(&shared).ok())
            .unwrap_or_default()
    }
}

impl BoardState {
    fn connect(&self) -> Option<Arc<Shared>> {
        if self.place == BoardPlace::Nowhere {
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

    /// The board, if there is one; a new one if the folder was removed, as some systems
    /// do with /dev/shm when a user logs out. Claims on the old one stay with it.
    pub fn shared(&self) -> Option<Arc<Shared>> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.as_ref().is_some_and(|s| s.file.is_removed()) {
            *shared = self.connect();
        }
        shared.clone()
    }

    /// Replaces a shared budget that does not work by one of this process alone.
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
