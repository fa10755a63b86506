//! Why a run was given up, as the reason that is counted. Plain nvcc carries out the call instead.

use warpcc_engine::prefix_map::NO_PREFIX_MAP;
use warpcc_engine::{compiler_cache, process, room};
use warpcc_plan::Unsupported;
use warpcc_plan::depfile::{ENDLESS_MARKER, INDENTED_MARKER, NO_MARKER, QUOTED_NAME};

/// The reason that is counted for a run that ended with this message.
pub(super) fn counted_reason(message: String) -> Unsupported {
    for reason in [
        NO_PREFIX_MAP,
        QUOTED_NAME,
        NO_MARKER,
        ENDLESS_MARKER,
        INDENTED_MARKER,
    ] {
        if message.ends_with(reason) {
            return Unsupported::new(reason, "");
        }
    }
    if message.contains(process::HUNG) {
        return hung_step(message);
    }
    if message.contains(compiler_cache::CHOOSES) {
        return Unsupported::new(compiler_cache::CHOOSES, "");
    }
    if message.contains(room::NO_ROOM) || message.contains(room::READS_INPUT) {
        return missing_resource(&message);
    }
    Unsupported::new("a command ended abnormally", message)
}

/// The reason for a step that hung. Also prints a warning: plain nvcc runs next and may succeed, and then nobody would learn
/// why the build took so long.
pub(super) fn hung_step(why: String) -> Unsupported {
    crate::log::warn(&format!("{why}; nvcc runs instead"));
    Unsupported::new("a step hung", why)
}

/// The reason for a tool that lacked something that it would have had under nvcc: disk space, or standard input.
pub(super) fn missing_resource(why: &str) -> Unsupported {
    let reason = match why.contains(room::READS_INPUT) {
        true => room::READS_INPUT,
        false => room::NO_ROOM,
    };
    Unsupported::new(reason, why)
}
