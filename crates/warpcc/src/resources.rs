//! What this call shares with others on the machine: the budget, the build tool's jobserver, and the build it belongs to.

use rlimit::Resource;
use warpcc_budget::{Board, BoardPlace, Cancel, CommandKind, Joined, Tokens};
use warpcc_engine::Admission;
use warpcc_engine::admission::Applicant;
use warpcc_report::{Ancestry, BuildId};

use warpcc_cache::DiskStore;

use crate::config::Config;
use crate::log::Log;
use crate::request::Request;

/// The numbers of this call and of its build.
pub struct CallId {
    /// The build.
    pub build: BuildId,
    /// A number that no other call has.
    pub call: u64,
}

impl CallId {
    /// Derives both from the processes that started this one (`/proc`). The setting `build_id` replaces the build's number.
    pub fn find(config: &Config) -> Self {
        let ancestry = Ancestry::read();
        Self {
            build: ancestry.build(config.build_id.value.as_deref()),
            call: ancestry.invocation_id(),
        }
    }

    /// The build's number in the budget.
    fn number(&self) -> u64 {
        // FNV-1a: the same in every process.
        self.build
            .id
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            })
    }
}

/// Where the board is: the table of the budget, which all calls of the user share.
pub fn place(config: &Config) -> BoardPlace {
    match &config.runtime_dir.value {
        Some(folder) => BoardPlace::At(folder.clone()),
        None => BoardPlace::OfUser,
    }
}

/// The admission of the commands of `request`: it lets each one wait until the machine has room for it.
pub fn admission<'a>(
    config: &Config,
    call_id: &CallId,
    request: &Request,
    store: Option<&'a DiskStore>,
    log: &Log,
) -> Admission<'a> {
    let board = Board::open(&place(config), config.limits());
    log_warnings(&board, log);
    let tokens = request
        .variable("MAKEFLAGS")
        .and_then(|flags| join(flags.to_str()?, log));
    let subject = format!(
        "{} {}",
        request.directory.display(),
        request.invocation.inputs.join(" ")
    );
    Admission::new(board, tokens, call_id.number(), subject, store)
}

/// Why a call is bypassed if a limit on memory is low: an allocation that fails would end this process.
pub const LITTLE_MEMORY: &str = "little memory for this process";

/// Whether `ulimit -v` or `-d` gives this process less memory than it may need. It was seen to abort with limits near 200 MB.
/// The address space that glibc reserves for each thread's heap does not matter: without it, threads share a heap.
pub fn has_little_memory() -> bool {
    const LEAST: u64 = 512 << 20;
    // A limit that a sandbox does not let this process read is taken for none. `INFINITY` is the greatest number.
    let is_less = |limited: Resource| limited.get_soft().is_ok_and(|most| most < LEAST);
    is_less(Resource::AS) || is_less(Resource::DATA)
}

/// Waits until the machine has room for a whole nvcc, which this process is about to become. nvcc keeps the room until it ends.
pub fn make_room_for_nvcc(config: &Config, call_id: &CallId, label: &str, log: &Log) {
    let board = Board::open(&place(config), config.limits());
    log_warnings(&board, log);
    let admission = Admission::new(board, None, call_id.number(), String::new(), None);
    let entry = Applicant {
        name: "nvcc",
        kind: CommandKind::Nvcc,
        priority_ms: CommandKind::Nvcc.usual_millis(),
        label,
        ..Applicant::default()
    };
    // Nothing cancels this wait, because a signal ends this process.
    if let Ok(pass) = admission.enter(&entry, &Cancel::new()) {
        pass.keep_across_exec();
    }
}

fn log_warnings(board: &Board, log: &Log) {
    for warning in board.warnings() {
        log.line(|| format!("the budget is not shared with other processes: {warning}"));
    }
}

fn join(makeflags: &str, log: &Log) -> Option<Tokens> {
    match Tokens::join(makeflags) {
        Joined::Absent => None,
        Joined::Yes(tokens) => Some(tokens),
        Joined::Unusable(why) => {
            log.line(|| format!("the jobserver cannot be used: {why}"));
            None
        }
    }
}
