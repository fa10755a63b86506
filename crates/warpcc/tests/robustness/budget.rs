//! Many real builds on one budget: never more than it, and nearly all of it while somebody waits.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};

use crate::board_watch::BoardWatch;
use crate::space::{Program, TestSpace, finish};

/// Processes, each with three architectures.
const PROCESSES: usize = 5;
const SLOTS: u32 = 2;

const THREE: &str = "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_89,code=sm_89 \
                     -gencode arch=compute_90,code=sm_90";

/// A space whose calls have a board to themselves: other builds of this user must not take part.
pub fn with_board(name: &str, slots: u32) -> (TestSpace, PathBuf) {
    on_board(TestSpace::new(name), slots)
}

fn on_board(mut space: TestSpace, slots: u32) -> (TestSpace, PathBuf) {
    let board = space.beside("board");
    space.set_env("WARPCC_RUNTIME_DIR", &board.display().to_string());
    space.set_env("WARPCC_JOBS", &slots.to_string());
    (space, board)
}

/// A small source of its own for each.
pub fn write_sources(space: &TestSpace, count: usize) {
    for n in 0..count {
        let text =
            format!("__global__ void k{n}(int *x) {{ *x = {n}; }}\nint f{n}() {{ return {n}; }}\n");
        space.write(&format!("s{n}.cu"), &text);
    }
}

#[test]
fn real_builds_use_the_budget_and_no_more() {
    // Tools that take so long that the time between them does not matter.
    let (space, board) = on_board(TestSpace::whole("full-budget"), SLOTS);
    write_sources(&space, PROCESSES);
    let watch = BoardWatch::start(&board, SLOTS);
    std::thread::scope(|scope| {
        for n in 0..PROCESSES {
            let words = space.words(&format!("-c s{n}.cu -o o{n}.o {THREE}"));
            let command = space.command(&Program::Launcher, &words);
            scope.spawn(move || {
                let outcome = finish(command);
                assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
            });
        }
    });
    let seen = watch.finish();
    assert_eq!(seen.most_slots, u64::from(SLOTS), "{seen:?}");
    assert!(seen.most_tools <= SLOTS as usize, "{seen:?}");
    let stats = space.stats();
    assert_eq!(stats.count("built"), PROCESSES as i64, "{stats:?}");
    // Only while somebody waited: at the end there is less to do than there are slots. What is missing are the ways from one
    // tool's end to the next one's start, some milliseconds of some hundred: 99.8 and 98.2 % on two busy cores, 94.9 % with another build running, and 83 %
    // of the slots once when the machine did the rest of the suite. A slot that is kept while its call waits would be half of them.
    assert!(
        seen.used >= 0.9,
        "slots were free while somebody waited: {seen:?}"
    );
    assert!(
        seen.worked >= 0.7,
        "slots were held and nothing ran: {seen:?}"
    );
}

#[test]
fn processes_that_nvcc_leaves_running_hold_no_slot() {
    let (space, _) = with_board("left-running", 1);
    write_sources(&space, 1);
    // As a compiler wrapper that starts its server.
    space.script(
        "host",
        "#!/bin/sh\n[ -e pid ] || { setsid sleep 60 </dev/null >/dev/null 2>&1 & echo $! >pid; }\nexec g++ \"$@\"\n",
    );
    let line = "-c s0.cu -o out.o -arch=sm_90 -ccbin {work}/host";
    let plain = space.run(
        &Program::Launcher,
        &space.words(&format!("{line} -time t.csv")),
    );
    assert_eq!(plain.code, 0, "{}", plain.stderr_text());
    let next = space.run(&Program::Launcher, &space.words(line));
    assert_eq!(next.code, 0, "{}", next.stderr_text());
    let server = String::from_utf8_lossy(&space.read("pid")).trim().parse();
    let server = server.ok().and_then(Pid::from_raw).expect("its number");
    // It was there all the time.
    kill_process(server, Signal::KILL).expect("the server is gone: nothing was tested");
}
