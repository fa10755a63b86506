//! Bypassed calls: the reasons, and what warpcc does before this process becomes nvcc.

use warpcc_plan::Unsupported;

use crate::call_record::CallRecorder;
use crate::log::Log;
use crate::{build, resources};

/// Reasons of calls that need little memory and time: nvcc only prints information, or preprocesses. They do not wait until
/// the machine has room.
const CHEAP_CALLS: [&str; 7] = [
    "no input file",
    "--help",
    "--version",
    "--list-gpu",
    "--dryrun",
    "-clean",
    "-E",
];

/// nvcc fails because of such an input. The call is counted as failed, because warpcc is not the reason.
pub const MISSING_INPUT: &str = "an input does not exist";

/// Calls that fail without warpcc too.
const FAILING_CALLS: [&str; 4] = [
    build::REFUSED,
    build::REFUSED_BY_CLANG,
    build::FAILS_UNDER_CLANG,
    MISSING_INPUT,
];

/// Why a call bypasses the cache.
pub enum Bypass {
    /// The call has nothing to cache.
    Plain(&'static str),
    /// Something in the call is not understood, or failed.
    Unsupported(Unsupported),
}

impl Bypass {
    /// Prepares this process to become nvcc: counts the call and, if nvcc will compile, waits until the machine has room.
    pub fn count_and_make_room(&self, recorder: &CallRecorder<'_>, log: &Log) {
        let compiles = match self {
            Self::Plain(reason) => {
                log.line(|| format!("nothing to cache: {reason}"));
                recorder.passed();
                (!CHEAP_CALLS.contains(reason)).then_some(*reason)
            }
            Self::Unsupported(why) if FAILING_CALLS.contains(&why.reason) => {
                log.line(|| why.to_string());
                recorder.refused();
                None
            }
            Self::Unsupported(why) => {
                log.line(|| format!("running nvcc: {why}"));
                recorder.fallback(why.reason);
                Some(why.reason)
            }
        };
        if let Some(reason) = compiles {
            resources::make_room_for_nvcc(recorder.config, recorder.call_id, reason, log);
        }
    }
}

impl std::fmt::Display for Bypass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plain(reason) => f.write_str(reason),
            Self::Unsupported(why) => why.fmt(f),
        }
    }
}

impl From<Unsupported> for Bypass {
    fn from(why: Unsupported) -> Self {
        Self::Unsupported(why)
    }
}
