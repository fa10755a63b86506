//! Properties of granting that must hold for any table.

use proptest::prelude::*;
use warpcc_budget::decide::{Memory, PATIENCE, choose, short_of_memory, watchers, youngest};
use warpcc_budget::{CommandKind, Record, SeatState};

const SECOND: u64 = 1_000_000_000;

fn record(state: SeatState) -> impl Strategy<Value = Record> {
    let numbers = (1u32..5, 0usize..3, 1u64..4, 0u64..40, 0u64..100);
    let more = (0u64..60 * SECOND, 0u64..5, any::<[bool; 4]>(), 0u64..40);
    (numbers, more).prop_map(move |((slots, limit, build, need, priority), rest)| {
        let (arrived, pid, flags, used) = rest;
        let mut record = Record {
            state,
            slots,
            slots_limit: [2, 4, 16][limit],
            memory_limit_kib: [50, 100, 100][limit],
            build,
            pid: pid as u32 + 1,
            need_kib: need,
            now_kib: if state == SeatState::Running { used } else { 0 },
            priority_ms: priority,
            arrived,
            ..Record::default()
        };
        match state {
            SeatState::Running => {
                record.started = arrived.max(1);
                record.flags.nested = flags[0] && flags[1];
                record.flags.suspended = flags[2] && flags[3];
            }
            _ => {
                record.flags.paused = flags[0] && flags[1];
                record.flags.alone = flags[1] && flags[2] && flags[3];
                record.refused = if flags[3] { arrived.max(1) } else { 0 };
            }
        }
        record
    })
}

fn table() -> impl Strategy<Value = Vec<Record>> {
    let one = prop_oneof![
        1 => Just(Record::default()),
        4 => record(SeatState::Waiting),
        2 => record(SeatState::Running),
    ];
    prop::collection::vec(one, 0..24).prop_map(|mut table| {
        for (i, record) in table.iter_mut().enumerate() {
            record.ticket = i as u64 + 1;
        }
        table
    })
}

fn memory() -> impl Strategy<Value = Option<Memory>> {
    prop::option::of((0u64..200, 0u64..50)).prop_map(|pair| {
        pair.map(|(available_kib, reserve_kib)| Memory {
            available_kib,
            reserve_kib,
        })
    })
}

/// Grants until nothing more is granted, as the board does.
fn settle(table: &mut [Record], now: u64, memory: Option<Memory>) -> Vec<usize> {
    let mut granted = Vec::new();
    while let Some(seat) = choose(table, now, memory).grant {
        assert_eq!(table[seat].state, SeatState::Waiting);
        table[seat].state = SeatState::Running;
        table[seat].started = now;
        granted.push(seat);
    }
    granted
}

#[test]
fn a_waiter_with_a_free_slot_waits_for_memory() {
    let running = |need_kib| Record {
        state: SeatState::Running,
        slots: 1,
        slots_limit: 2,
        memory_limit_kib: 100,
        need_kib,
        started: 1,
        ..Record::default()
    };
    let waiting = |need_kib| Record {
        state: SeatState::Waiting,
        started: 0,
        ..running(need_kib)
    };
    let short = |table: &[Record]| short_of_memory(table, None);
    assert_eq!(short(&[running(60), waiting(60)]), [1]);
    let full = [running(20), running(20), waiting(90)];
    assert_eq!(short(&full), [0; 0], "a slot is what it lacks first");
    let machine = Some(Memory {
        available_kib: 50,
        reserve_kib: 10,
    });
    assert_eq!(short_of_memory(&[running(0), waiting(60)], machine), [1]);
}

fn in_level(table: &[Record], limit: u32) -> impl Iterator<Item = &Record> {
    let counted = table.iter().filter(|r| r.counts());
    counted.filter(move |r| r.slots_limit <= limit)
}

proptest! {
    /// Granting adds nothing to a level that would then be over its limit, unless the claim is
    /// the only one in it.
    #[test]
    fn no_level_goes_over_its_limit(mut table in table(), memory in memory()) {
        let now = 70 * SECOND;
        let before = table.clone();
        let granted = settle(&mut table, now, memory);
        for level in [2, 4, 16] {
            let added = granted.iter().filter(|&&s| table[s].slots_limit <= level).count();
            let (count, slots) = in_level(&table, level)
                .fold((0, 0), |(n, slots), r| (n + 1, slots + r.slots));
            // Only the levels of claims' limits exist.
            let exists = before.iter().any(|r| r.state != SeatState::Free && r.slots_limit == level);
            if added > 0 && exists {
                prop_assert!(slots <= level || count == 1, "{slots} slots in level {level}");
            }
        }
    }

    /// Running and granted claims fit into memory, unless one runs alone.
    #[test]
    fn granted_claims_fit_into_memory(mut table in table(), memory in memory()) {
        let granted = settle(&mut table, 70 * SECOND, memory);
        let running: Vec<&Record> = table.iter().filter(|r| r.counts()).collect();
        if granted.is_empty() || running.len() == 1 {
            return Ok(());
        }
        if let Some(m) = memory {
            let growth: u64 = running.iter().map(|r| r.need_kib.saturating_sub(r.now_kib)).sum();
            // The first may have been granted because nothing ran.
            let last = &table[granted[granted.len() - 1]];
            prop_assert!(
                growth + m.reserve_kib <= m.available_kib || granted.len() == 1 && running.len() == 1,
                "{growth} to come, {m:?}, last {last:?}"
            );
        }
    }

    /// While something waits that is not stopped, something runs.
    #[test]
    fn something_always_runs(mut table in table(), memory in memory()) {
        settle(&mut table, 70 * SECOND, memory);
        let waits = table.iter().any(Record::queues);
        let runs = table.iter().any(Record::counts);
        prop_assert!(runs || !waits);
    }

    /// With room for all, all are granted, best first within a build.
    #[test]
    fn nothing_waits_for_no_reason(mut table in table()) {
        for record in &mut table {
            record.slots_limit = 1000;
            record.memory_limit_kib = 1 << 30;
            record.flags.alone = false;
            record.refused = 0;
        }
        let granted = settle(&mut table, 70 * SECOND, None);
        prop_assert!(!table.iter().any(Record::queues));
        for pair in granted.windows(2) {
            let (first, second) = (&table[pair[0]], &table[pair[1]]);
            if first.build == second.build {
                prop_assert!(first.priority_ms >= second.priority_ms);
            }
        }
    }

    /// A claim that runs alone runs alone.
    #[test]
    fn alone_means_alone(mut table in table(), memory in memory()) {
        let alone_before = table.iter().any(|r| r.counts() && r.flags.alone);
        let granted = settle(&mut table, 70 * SECOND, memory);
        prop_assert!(!alone_before || granted.is_empty());
        if let Some(seat) = granted.iter().find(|&&s| table[s].flags.alone) {
            prop_assert_eq!(table.iter().filter(|r| r.counts()).count(), 1);
            prop_assert_eq!(granted.len(), 1);
            prop_assert!(table[*seat].flags.alone);
        }
    }

    /// The same table, the same decision; paused and free ones are never granted.
    #[test]
    fn nothing_but_the_table_decides(table in table(), memory in memory()) {
        let choice = choose(&table, 70 * SECOND, memory);
        prop_assert_eq!(choice, choose(&table, 70 * SECOND, memory));
        if let Some(seat) = choice.grant {
            prop_assert!(table[seat].queues());
        }
        if let Some(seat) = choice.refused {
            prop_assert!(table[seat].queues() && Some(seat) != choice.grant);
        }
    }

    /// While a process waits, another one of its build watches, in at most two processes.
    #[test]
    fn every_build_watches(table in table()) {
        let watching = watchers(&table);
        for build in 1..4 {
            let waiting: Vec<&Record> =
                table.iter().filter(|r| r.queues() && r.build == build).collect();
            let of_build: Vec<&Record> =
                watching.iter().map(|&s| &table[s]).filter(|r| r.build == build).collect();
            let mut processes: Vec<u32> = waiting.iter().map(|r| r.pid).collect();
            processes.sort_unstable();
            processes.dedup();
            prop_assert_eq!(of_build.len(), processes.len().min(2));
            if let [one, two] = of_build[..] {
                prop_assert_ne!(one.pid, two.pid);
            }
            let best = waiting.iter().map(|r| r.priority_ms).max();
            prop_assert!(best.is_none() || of_build.iter().any(|r| Some(r.priority_ms) == best));
        }
    }

    /// Numbers that no sane process would write make no panic.
    #[test]
    fn nonsense_is_survived(numbers in prop::collection::vec(any::<[u64; 6]>(), 0..12)) {
        let table: Vec<Record> = numbers.iter().map(|n| Record {
            state: if n[0] % 2 == 0 { SeatState::Running } else { SeatState::Waiting },
            slots: n[1] as u32,
            slots_limit: (n[1] >> 32) as u32,
            need_kib: n[2],
            now_kib: n[3],
            memory_limit_kib: n[4],
            refused: n[5],
            started: n[0],
            ..Record::default()
        }).collect();
        for available_kib in [0, u64::MAX] {
            let memory = Memory { available_kib, reserve_kib: u64::MAX };
            choose(&table, numbers.len() as u64, Some(memory));
        }
        watchers(&table);
        youngest(&table, 0);
    }
}

fn waiter(slots: u32, need_kib: u64, refused: u64) -> Record {
    Record {
        state: SeatState::Waiting,
        slots,
        slots_limit: 4,
        memory_limit_kib: 100,
        need_kib,
        refused,
        ..Record::default()
    }
}

fn runner(slots: u32, need_kib: u64) -> Record {
    Record {
        state: SeatState::Running,
        ..waiter(slots, need_kib, 0)
    }
}

#[test]
fn small_ones_pass_a_large_one_but_not_for_ever() {
    let large = Record {
        priority_ms: 9,
        ..waiter(1, 90, 0)
    };
    let mut table = [runner(1, 30), large, waiter(1, 10, 0)];
    let choice = choose(&table, SECOND, None);
    assert_eq!((choice.grant, choice.refused), (Some(2), Some(1)));
    table[1].refused = SECOND;
    let patience = PATIENCE.as_nanos() as u64;
    assert_eq!(choose(&table, SECOND + patience, None).grant, Some(2));
    assert_eq!(choose(&table, SECOND + patience + 1, None).grant, None);
    table[0].state = SeatState::Free;
    assert_eq!(choose(&table, SECOND + patience + 1, None).grant, Some(1));
}

#[test]
fn one_that_waits_for_its_own_narrow_limit_holds_nobody_else_up() {
    let narrow = |record: Record| Record {
        slots_limit: 1,
        ..record
    };
    let now = 100 * SECOND;
    let table = [
        narrow(runner(1, 0)),
        narrow(waiter(1, 0, 1)),
        waiter(1, 0, 0),
    ];
    assert_eq!(choose(&table, now, None).grant, Some(2));
}

#[test]
fn the_build_with_less_comes_first() {
    let of = |build, record: Record| Record { build, ..record };
    let urgent = Record {
        priority_ms: 1000,
        ..of(1, waiter(1, 0, 0))
    };
    let table = [of(1, runner(1, 0)), urgent, of(2, waiter(1, 0, 0))];
    assert_eq!(choose(&table, 1, None).grant, Some(2));
}

#[test]
fn memory_that_is_expected_to_be_taken_is_not_given_twice() {
    let mut table = [runner(1, 60), waiter(1, 30, 0)];
    let memory = |available_kib| {
        Some(Memory {
            available_kib,
            reserve_kib: 10,
        })
    };
    assert_eq!(choose(&table, 1, memory(99)).grant, None);
    let nothing = Some(Memory {
        available_kib: 0,
        reserve_kib: 0,
    });
    assert_eq!(
        choose(&table, 1, nothing).grant,
        None,
        "less than nothing is left"
    );
    assert_eq!(choose(&table, 1, memory(100)).grant, Some(1));
    // Once it has taken it, it is no longer to come.
    table[0].now_kib = 50;
    assert_eq!(choose(&table, 1, memory(50)).grant, Some(1));
}

#[test]
fn a_stopped_task_gives_its_slots_but_not_its_memory() {
    let mut table = [runner(4, 80), waiter(1, 30, 0), runner(1, 10)];
    table[0].now_kib = 70;
    assert_eq!(choose(&table, 1, None).grant, None);
    table[0].flags.suspended = true;
    assert_eq!(choose(&table, 1, None).grant, None);
    table[1].need_kib = 20;
    assert_eq!(choose(&table, 1, None).grant, Some(1));
}

#[test]
fn the_youngest_that_can_be_asked_is_stopped() {
    let at = |started| Record {
        started,
        ..runner(1, 0)
    };
    let mut table = [at(3), at(9), at(5)];
    assert_eq!(youngest(&table, 0), Some(1));
    table[1].flags.kept = true;
    assert_eq!(youngest(&table, 0), Some(2));
    table[2].flags.nested = true;
    assert_eq!(youngest(&table, 0), Some(0));
    table[0].domain = 7;
    assert_eq!(youngest(&table, 7), None, "the only one of its cgroup");
    assert_eq!(youngest(&table[..1], 0), None);
    // Nothing would be gained by ending what only asks nvcc for its plan.
    let mut asking = [at(3), at(9)];
    asking[1].kind = CommandKind::DryRun;
    assert_eq!(youngest(&asking, 0), Some(0));
}
