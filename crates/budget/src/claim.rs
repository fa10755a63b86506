//! A claim: asked for, waited for, held, and given back when it is dropped.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::board::{Board, BoardState};
use crate::cancel::{Cancel, Cancelled};
use crate::clock::{is_within, now};
use crate::file::LockTimeout;
use crate::kind::CommandKind;
use crate::label::Label;
use crate::local::Share;
use crate::own::Own;
use crate::reconcile::CheckLevel;
use crate::record::{Record, SeatState};
use crate::seat::Seat;
use crate::shared::Shared;
use crate::table::SeatTable;
use crate::warning::Warning;

/// A request for a claim: what will run, and what it needs.
#[derive(Debug, Clone, Default)]
pub struct ClaimRequest {
    /// The kind of command.
    pub kind: CommandKind,
    /// CPU slots: threads that it keeps busy. 0 means 1.
    pub slots: u32,
    /// Peak memory in KiB that it will need, as far as known.
    pub memory_kib: u64,
    /// Milliseconds from here to the end of the invocation: within a build the longest goes first.
    pub priority_ms: u64,
    /// Milliseconds that it will take.
    pub expected_ms: u64,
    /// Which build (ninja, make, pip) it belongs to. Builds share evenly.
    pub build: u64,
    /// For people: source file and architecture.
    pub label: String,
    /// The caller's own number, which [`crate::Stop`] gives back.
    pub tag: u64,
}

/// Whether the tool may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// Yes.
    Continue,
    /// No: memory is short and this is the youngest. End the tool with all that it started, then
    /// call [`Claim::requeue`].
    StopAndRequeue,
}

/// How a claim came to be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantKind {
    /// In the budget of all processes of the user.
    Shared,
    /// Uncounted, because a process that started us has a claim.
    Nested,
    /// In the budget of this process alone.
    Local,
}

/// The right to run one heavy command. Dropping it gives it back.
#[derive(Debug)]
pub struct Claim {
    board: Arc<BoardState>,
    place: Place,
    own: Arc<Own>,
}

#[derive(Debug)]
enum Place {
    /// A seat on the board.
    Seat(Arc<Shared>, Seat),
    /// In this process.
    Local(Share),
    /// Nowhere: waiting was cancelled, or it was given away.
    Gone,
}

impl Board {
    /// Waits until the command may run.
    ///
    /// # Errors
    /// Only [`Cancelled`], by `cancel`. An error of the board is a warning, and the claim
    /// is then one on the budget of this process.
    pub fn claim(&self, ask: &ClaimRequest, cancel: &Cancel) -> Result<Claim, Cancelled> {
        cancel.check()?;
        if let Some(shared) = self.0.shared() {
            match arrive(&shared, &self.0, ask) {
                Ok(Some(mut claim)) => {
                    claim.wait(cancel)?;
                    return Ok(claim);
                }
                Ok(None) => self.0.warnings.add(Warning::Full),
                Err(error) => self.0.disconnect(error),
            }
        }
        let mut claim = Claim {
            board: Arc::clone(&self.0),
            place: Place::Gone,
            own: Arc::new(Own::new(ask.tag, 0, record_of(ask, &self.0))),
        };
        claim.take_local(false, cancel)?;
        Ok(claim)
    }
}

fn record_of(ask: &ClaimRequest, board: &BoardState) -> Record {
    Record {
        state: SeatState::Waiting,
        kind: ask.kind,
        slots: ask.slots.max(1),
        slots_limit: board.limits.slots,
        memory_limit_kib: board.limits.memory_kib,
        build: ask.build,
        need_kib: ask.memory_kib,
        priority_ms: ask.priority_ms,
        expected_ms: ask.expected_ms,
        label: Label::new(&ask.label),
        ..Record::default()
    }
}

/// Takes a seat and puts the claim on the board, where it may be granted at once. Returns nothing if all seats are
/// taken.
fn arrive(
    shared: &Arc<Shared>,
    board: &Arc<BoardState>,
    ask: &ClaimRequest,
) -> io::Result<Option<Claim>> {
    let mut seat: Option<Seat> = None;
    let record = shared.transact(LockTimeout::Later, |table| {
        let taken = match seat.take() {
            Some(seat) => seat,
            None => match find_seat(shared, table)? {
                Some(seat) => seat,
                None => return Ok(None),
            },
        };
        let number = taken.number;
        seat = Some(taken);
        let arrived = now();
        let mut record = record_of(ask, board);
        record.pid = shared.me.pid;
        record.pid_start = shared.me.start;
        record.domain = shared.domain();
        record.arrived = arrived;
        record.ticket = table.next_ticket(arrived);
        *table.change(number) = record;
        shared.reconcile(table, CheckLevel::Quick, arrived);
        let waits = table.records()[number].state == SeatState::Waiting;
        if waits && !is_within(SETTLED, table.header.checked, arrived) {
            shared.reconcile(table, CheckLevel::Check, arrived);
        }
        table.note_awake(number);
        Ok::<_, io::Error>(Some(table.records()[number]))
    })??;
    let (Some(record), Some(seat)) = (record, seat) else {
        return Ok(None);
    };
    let own = Arc::new(Own::new(ask.tag, seat.number, record));
    board.add_own(Arc::clone(shared), Arc::clone(&own));
    Ok(Some(Claim {
        board: Arc::clone(board),
        place: Place::Seat(Arc::clone(shared), seat),
        own,
    }))
}

/// How long new claims rely on the last check that all claims are alive, in nanoseconds.
const SETTLED: u64 = 20_000_000;

fn find_seat(shared: &Shared, table: &mut SeatTable) -> io::Result<Option<Seat>> {
    // A free seat may still be locked for a moment by a claim that is leaving, or for long by the children
    // of a program that replaced its process.
    for number in table.free_seats() {
        if let Some(seat) = Seat::take(&shared.folder, number)? {
            return Ok(Some(seat));
        }
    }
    // All seats are taken, perhaps by processes that have ended.
    for number in 0..table.records().len() {
        if let Some(seat) = Seat::take(&shared.folder, number)? {
            table.free(number);
            return Ok(Some(seat));
        }
    }
    Ok(None)
}

impl Claim {
    /// In which budget it is.
    pub fn standing(&self) -> GrantKind {
        match &self.place {
            Place::Seat(..) if self.own.record().flags.nested => GrantKind::Nested,
            Place::Seat(..) => GrantKind::Shared,
            _ => GrantKind::Local,
        }
    }

    /// Notes the tool's process, so that its memory can be watched. The tool should lead a process
    /// group of its own.
    pub fn started(&self, tool: u32) {
        self.own.start(tool);
        self.update(|record| {
            record.tool = tool;
            record.need_kib = self.own.asked_kib();
            // The tool before this one used it.
            record.now_kib = 0;
        });
    }

    /// Notes that the tool has ended, where the claim is kept for another one.
    pub fn ended(&self) {
        self.started(0);
    }

    /// Whether the tool may go on. Costs one read of the board.
    pub fn verdict(&self) -> ClaimVerdict {
        let evicted = self.own.stop.load(Ordering::SeqCst)
            || match &self.place {
                Place::Seat(shared, seat) => shared
                    .file
                    .peek_seat(seat.number)
                    .is_ok_and(|r| r.ticket == self.own.ticket && r.flags.evict),
                _ => false,
            };
        if evicted {
            ClaimVerdict::StopAndRequeue
        } else {
            ClaimVerdict::Continue
        }
    }

    /// The most memory in KiB that was seen in use by the tool and its children. 0 where
    /// [`crate::Pressure::tick`] was not called meanwhile.
    pub fn peak_kib(&self) -> u64 {
        self.own.peak_kib.load(Ordering::SeqCst)
    }

    /// The part of the wait for the last grant that was for memory: from the first moment when a slot was free and the
    /// memory was not.
    pub fn waited_for_memory(&self) -> Duration {
        let record = self.own.record();
        match record.lacked {
            0 => Duration::ZERO,
            since => Duration::from_nanos(record.started.saturating_sub(since)),
        }
    }

    /// After [`ClaimVerdict::StopAndRequeue`] and the end of the tool: waits for its turn again, now
    /// with at least `memory_kib`, and half more than was seen of it.
    ///
    /// # Errors
    /// Cancelled; the claim is then gone.
    pub fn requeue(&mut self, memory_kib: u64, cancel: &Cancel) -> Result<(), Cancelled> {
        let seen = self.peak_kib();
        let need = memory_kib.max(seen.saturating_add(seen / 2));
        self.own.ask_for(self.own.asked_kib().max(need));
        self.again(cancel, false)
    }

    /// After the kernel killed the tool for want of memory: waits until nothing else runs.
    ///
    /// # Errors
    /// Cancelled; the claim is then gone.
    pub fn requeue_alone(&mut self, cancel: &Cancel) -> Result<(), Cancelled> {
        let seen = self.peak_kib();
        self.own.ask_for(self.own.asked_kib().max(seen));
        self.again(cancel, true)
    }

    fn again(&mut self, cancel: &Cancel, alone: bool) -> Result<(), Cancelled> {
        self.own.start(0);
        let Place::Seat(shared, _) = &self.place else {
            if let Place::Local(share) = std::mem::replace(&mut self.place, Place::Gone) {
                self.board.local.give(share);
            }
            return self.take_local(alone, cancel);
        };
        let shared = Arc::clone(shared);
        let changed = shared.transact(LockTimeout::Soon, |table| {
            let now = now();
            self.own.stop.store(false, Ordering::SeqCst);
            self.own.change(table, |record| {
                record.state = SeatState::Waiting;
                record.started = 0;
                record.refused = 0;
                // A task that asks again does so because it lacked memory.
                record.lacked = now.max(1);
                record.tool = 0;
                record.now_kib = 0;
                record.flags.evict = false;
                record.flags.nested = false;
                record.flags.suspended = false;
                record.flags.alone |= alone;
                record.need_kib = self.own.asked_kib();
            });
            shared.reconcile(table, CheckLevel::Quick, now);
            self.own.remember(&table.records()[self.own.seat]);
        });
        match changed {
            Ok(()) => self.wait(cancel),
            Err(error) => {
                self.lose_seat(error);
                self.take_local(alone, cancel)
            }
        }
    }

    /// Leaves the claim to the program that this process is about to become: it counts until that
    /// program and all that it starts have ended.
    ///
    /// Where exec fails, it counts until this process ends.
    pub fn keep_across_exec(mut self) {
        self.update(|record| {
            record.flags.kept = true;
            record.tool = 0;
        });
        self.board.remove_own(&self.own);
        if let Place::Seat(_, seat) = std::mem::replace(&mut self.place, Place::Gone) {
            // If it cannot be kept, it is given back at exec, and the program is not counted.
            let _ = seat.keep_across_exec();
        }
    }

    /// Waits for the grant. Whatever way this fails, the seat is given back.
    fn wait(&mut self, cancel: &Cancel) -> Result<(), Cancelled> {
        let Place::Seat(shared, _) = &self.place else {
            return Ok(());
        };
        match Arc::clone(shared).wait(&self.own, cancel) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Cancelled)) => {
                self.leave();
                Err(Cancelled)
            }
            Err(error) => {
                self.lose_seat(error);
                self.take_local(false, cancel)
            }
        }
    }

    fn take_local(&mut self, alone: bool, cancel: &Cancel) -> Result<(), Cancelled> {
        let record = self.own.record();
        let share = Share {
            slots: record.slots,
            memory_kib: self.own.asked_kib(),
            alone,
        };
        self.board.local.take(share, &self.board.limits, cancel)?;
        self.place = Place::Local(share);
        Ok(())
    }

    fn update(&self, change: impl Fn(&mut Record)) {
        if let Place::Seat(shared, _) = &self.place {
            // Other processes then know less about this claim, but nothing depends on that.
            let _ = shared.transact(LockTimeout::Soon, |table| self.own.change(table, &change));
        }
    }

    fn lose_seat(&mut self, error: io::Error) {
        self.board.remove_own(&self.own);
        self.place = Place::Gone;
        self.board.disconnect(error);
    }

    /// Gives back what is held.
    fn leave(&mut self) {
        match std::mem::replace(&mut self.place, Place::Gone) {
            Place::Seat(shared, seat) => {
                self.board.remove_own(&self.own);
                // If the board cannot be written, closing the seat tells the other processes the same.
                let _ = shared.transact(LockTimeout::Soon, |table| {
                    self.own.leave();
                    if table.claim(seat.number, self.own.ticket).is_some() {
                        table.free(seat.number);
                    }
                    seat.release();
                    shared.reconcile(table, CheckLevel::Quick, now());
                });
            }
            Place::Local(share) => self.board.local.give(share),
            Place::Gone => {}
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.leave();
    }
}
