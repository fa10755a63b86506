//! Runs that nvcc has to repeat, and the reason that is counted.

use warpcc_engine::prefix_map::NO_PREFIX_MAP;
use warpcc_engine::{compiler_cache, process, room};
use warpcc_plan::Unsupported;

/// Why nvcc has to do a call of which a step could not be done here.
pub(super) fn reason(accident: String) -> Unsupported {
    if accident.ends_with(NO_PREFIX_MAP) {
        return Unsupported::new(NO_PREFIX_MAP, "");
    }
    if accident.contains(process::STOOD_STILL) {
        return stood_still(accident);
    }
    if accident.contains(compiler_cache::CHOOSES) {
        return Unsupported::new(compiler_cache::CHOOSES, "");
    }
    if accident.contains(room::NO_ROOM) || accident.contains(room::READS_INPUT) {
        return hindered(&accident);
    }
    Unsupported::new("a command ended abnormally", accident)
}

/// A step that hangs is reported: otherwise nobody would notice, since nvcc then runs alone, perhaps without a delay.
pub(super) fn stood_still(why: String) -> Unsupported {
    crate::log::warn(&format!("{why}; nvcc runs instead"));
    Unsupported::new("a step hung", why)
}

/// A tool met what it would not have met under nvcc.
pub(super) fn hindered(why: &str) -> Unsupported {
    let reason = match why.contains(room::READS_INPUT) {
        true => room::READS_INPUT,
        false => room::NO_ROOM,
    };
    Unsupported::new(reason, why)
}
