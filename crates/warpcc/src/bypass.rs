//! Bypassed calls: the reason, and what happens before this process becomes nvcc.

use warpcc_plan::Unsupported;

use crate::call_record::CallRecorder;
use crate::log::Log;
use crate::{build, resources};

/// Calls in which nvcc only prints information, or preprocesses: they need no room.
const ASKS_NVCC_ONLY: [&str; 7] = [
    "no input file",
    "--help",
    "--version",
    "--list-gpu",
    "--dryrun",
    "-clean",
    "-E",
];

/// Why a call bypasses the cache.
pub enum Bypass {
    /// The call has nothing to cache.
    Plain(&'static str),
    /// Something in the call is not understood, or failed.
    Unsupported(Unsupported),
}

impl Bypass {
    /// Prepares this process to become nvcc: counts the call, and waits until the machine has room for an nvcc that
    /// compiles.
    pub fn count_and_make_room(&self, account: &CallRecorder<'_>, log: &Log) {
        let compiles = match self {
            Self::Plain(reason) => {
                log.line(|| format!("nothing to cache: {reason}"));
                account.passed();
                (!ASKS_NVCC_ONLY.contains(reason)).then_some(*reason)
            }
            Self::Unsupported(why) if why.reason == build::REFUSED => {
                log.line(|| why.reason.to_owned());
                account.refused();
                None
            }
            Self::Unsupported(why) => {
                log.line(|| format!("running nvcc: {why}"));
                account.fallback(why.reason);
                Some(why.reason)
            }
        };
        if let Some(reason) = compiles {
            resources::make_room_for_nvcc(account.config, account.lineage, reason, log);
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
