//! The state that this process keeps of one of its claims on the board, and changes to the claim's record there.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::past_peak::PastPeak;
use crate::proc::TreeUse;
use crate::record::Record;
use crate::table::SeatTable;

/// The state of one claim that the threads of this process share.
#[derive(Debug)]
pub(crate) struct Own {
    pub tag: u64,
    pub seat: usize,
    pub ticket: u64,
    pub tool: AtomicU32,
    /// The tool is to be stopped.
    pub stop: AtomicBool,
    /// The most KiB seen.
    pub peak_kib: AtomicU64,
    /// What the claim asked for, in KiB. Its record says less once the tool has given memory back.
    asked_kib: AtomicU64,
    past_peak: Mutex<PastPeak>,
    /// The claim was given back. Set under the board's lock, as what changes the record is.
    left: AtomicBool,
    /// The record as it should be on the board, in case it is lost there.
    record: Mutex<Record>,
}

impl Own {
    pub fn new(tag: u64, seat: usize, record: Record) -> Self {
        Self {
            tag,
            seat,
            ticket: record.ticket,
            tool: AtomicU32::new(0),
            stop: AtomicBool::new(false),
            peak_kib: AtomicU64::new(0),
            asked_kib: AtomicU64::new(record.need_kib),
            past_peak: Mutex::new(PastPeak::new(record.need_kib)),
            left: AtomicBool::new(false),
            record: Mutex::new(record),
        }
    }

    /// What the claim asked for, in KiB.
    pub fn asked_kib(&self) -> u64 {
        self.asked_kib.load(Ordering::SeqCst)
    }

    /// Notes that the claim asks for this much from now on.
    pub fn ask_for(&self, kib: u64) {
        self.asked_kib.store(kib, Ordering::SeqCst);
    }

    /// Notes that another tool starts, or none.
    pub fn start(&self, tool: u32) {
        let mut past_peak = self.past_peak();
        self.tool.store(tool, Ordering::SeqCst);
        *past_peak = PastPeak::new(self.asked_kib());
    }

    /// What is expected of `tool`, in KiB, which uses `used` at the time `now`. Nothing if it has ended meanwhile: what it used says
    /// nothing of the next tool.
    pub fn expect(&self, tool: u32, used: TreeUse, now: u64) -> Option<u64> {
        let mut past_peak = self.past_peak();
        let is_current = self.tool.load(Ordering::SeqCst) == tool;
        is_current.then(|| past_peak.expect(used, now))
    }

    fn past_peak(&self) -> std::sync::MutexGuard<'_, PastPeak> {
        self.past_peak
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the record on the table, which is put back first if it is lost. Nothing once the
    /// claim was given back.
    pub fn change(&self, table: &mut SeatTable, change: impl FnOnce(&mut Record)) {
        if self.restore(table) {
            let record = table.change(self.seat);
            change(record);
            *self.remembered() = *record;
        }
    }

    /// Puts the record back if it is lost: the board was damaged, or overwritten by a process that
    /// had been stopped for long. We hold the seat's lock, so it is ours. False once the claim
    /// was given back: then the seat may be another claim's.
    pub fn restore(&self, table: &mut SeatTable) -> bool {
        if self.left.load(Ordering::SeqCst) {
            return false;
        }
        if table.claim(self.seat, self.ticket).is_none() {
            *table.change(self.seat) = *self.remembered();
        }
        true
    }

    /// The claim is given back: nothing changes its record from now on.
    pub fn leave(&self) {
        self.left.store(true, Ordering::SeqCst);
    }

    /// Notes what others changed.
    pub fn remember(&self, record: &Record) {
        *self.remembered() = *record;
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record as last seen.
    pub fn record(&self) -> Record {
        *self.remembered()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_used_is_not_a_peak_of_the_next_one() {
        const SECOND: u64 = 1_000_000_000;
        let using = |resident_kib, seconds: u64| TreeUse {
            resident_kib,
            swapped_kib: 0,
            cpu: seconds * SECOND,
        };
        let asked = Record {
            need_kib: 4000,
            ..Record::default()
        };
        let own = Own::new(0, 0, asked);
        own.start(7);
        own.start(8);
        assert_eq!(own.expect(7, using(4000, 90), SECOND), None);
        for second in 2..9 {
            let need = own.expect(8, using(100, second), second * SECOND);
            assert_eq!(need, Some(4000), "second {second}");
        }
    }
}
