//! Whether the tools have the resources that they would have under nvcc: disk space, processes, the user's standard
//! input.
//!
//! warpcc itself uses disk space and processes, which the tools then lack. If a tool fails for this reason, or writes half of a
//! file and reports success (as fatbinary does), this is no result of the compiler: plain nvcc carries out the whole call.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use rustix::fs::{FallocateFlags, fallocate, fstat, statvfs};
use warpcc_watch::Observed;

use crate::file_input::FileInput;

/// The text in the message of a run that was given up because a resource was missing.
pub const NO_ROOM: &str = "no room for temporary files or processes";
/// The text in the message of a run that was given up because a tool read standard input: tools get an empty one.
pub const READS_INPUT: &str = "a tool reads standard input";

/// If there is less free space than this, a file may be incomplete.
const LEAST_BYTES: u64 = 16 << 20;
/// The number of bytes that are written as a test: a user's disk quota cannot be found out in another way.
const TRIED_BYTES: u64 = 1 << 20;
/// The number of processes that a call of nvcc may need: nvcc, a shell, a compiler driver, the program that the driver
/// starts, and one more for each of them while it starts the next.
const PROCESSES: usize = 8;

/// The resource that was missing, as the watch log shows it. `asked` are the facts about the process that count.
pub fn hindrance(observed: &Observed, asked: &BTreeSet<u8>) -> Option<String> {
    if let Some(program) = &observed.no_room {
        return Some(format!("{}: {NO_ROOM}", program.display()));
    }
    if let Some(program) = &observed.read_input
        && input_matters()
    {
        return Some(format!("{}: {READS_INPUT}", program.display()));
    }
    // Tools get a terminal for their messages, and then for their input, but their standard output is a pipe.
    let is_typed = io::stdin().is_terminal() && io::stderr().is_terminal();
    let is_ours = input_matters() && !is_typed && FileInput::open().is_none();
    let looked_at = asked.contains(&Observed::INPUT) && is_ours
        || asked.contains(&Observed::TERMINALS) && io::stdout().is_terminal();
    looked_at.then(|| format!("a look at a terminal or pipe: {READS_INPUT}"))
}

/// Whether the disk of the private folder is all but full.
pub fn is_full(scratch: &Path) -> bool {
    let space = statvfs(scratch);
    let short = |all: u64, free: u64, least: u64| all > 0 && free < least;
    if space.is_ok_and(|disk| {
        short(
            disk.f_blocks,
            disk.f_bavail.saturating_mul(disk.f_frsize),
            LEAST_BYTES,
        ) || short(disk.f_files, disk.f_favail, 2)
    }) {
        return true;
    }
    let tried = scratch.join("room");
    let Ok(file) = File::create(&tried) else {
        return true;
    };
    let result = fallocate(&file, FallocateFlags::empty(), 0, TRIED_BYTES);
    // The private folder is removed as a whole later.
    let _ = fs::remove_file(&tried);
    matches!(
        result,
        Err(rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT)
    )
}

/// Whether a tool could not start as many processes as it can under nvcc.
pub fn lacks_processes() -> bool {
    let gate = Mutex::new(());
    thread::scope(|scope| {
        let closed = gate.lock();
        let wait = || drop(gate.lock());
        let started = (0..PROCESSES)
            .take_while(|_| thread::Builder::new().spawn_scoped(scope, wait).is_ok())
            .count();
        drop(closed);
        started < PROCESSES
    })
}

/// Whether standard input is anything but `/dev/null`. Tools got `/dev/null` in its place.
pub(crate) fn input_matters() -> bool {
    const NULL_DEVICE: u64 = 1 << 8 | 3;
    fstat(io::stdin()).is_ok_and(|input| input.st_rdev != NULL_DEVICE)
}
