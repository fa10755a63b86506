//! The limits of this process and its `umask`, which every program that it starts inherits and may ask for.

use std::collections::BTreeSet;
use std::fs;

use rlimit::{INFINITY, Resource, getrlimit};
use serde::{Deserialize, Serialize};
use warpcc_watch::Observed;

/// The numbers of the limits in the kernel on x86-64 and aarch64.
const RESOURCES: [Resource; 16] = [
    Resource::CPU,
    Resource::FSIZE,
    Resource::DATA,
    Resource::STACK,
    Resource::CORE,
    Resource::RSS,
    Resource::NPROC,
    Resource::NOFILE,
    Resource::MEMLOCK,
    Resource::AS,
    Resource::LOCKS,
    Resource::SIGPENDING,
    Resource::MSGQUEUE,
    Resource::NICE,
    Resource::RTPRIO,
    Resource::RTTIME,
];

/// A limit's number and value; `None` if the value is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Limit(u8, Option<[Option<u64>; 2]>);

impl Limit {
    fn now(number: u8) -> Self {
        if number == Observed::UMASK {
            return Self(number, umask().map(|mask| [Some(mask), None]));
        }
        let resource = RESOURCES.get(usize::from(number));
        // A sandbox may refuse the system call.
        let limit = resource.and_then(|resource| getrlimit(*resource).ok());
        let finite = |value| (value != INFINITY).then_some(value);
        Self(
            number,
            limit.map(|(soft, hard)| [finite(soft), finite(hard)]),
        )
    }
}

/// The limits that were asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Limits(Vec<Limit>);

impl Limits {
    pub(super) fn read(asked: &BTreeSet<u8>) -> Self {
        Self(asked.iter().map(|number| Limit::now(*number)).collect())
    }

    /// Whether all limits have the values that they had.
    pub(super) fn hold(&self) -> bool {
        let is_so = |limit: &Limit| limit.1.is_some() && Limit::now(limit.0) == *limit;
        self.0.iter().all(is_so)
    }

    pub(super) fn numbers(&self) -> BTreeSet<u8> {
        self.0.iter().map(|limit| limit.0).collect()
    }
}

/// The umask from `/proc`. The system call would have to change it for a moment. proc_pid_status(5).
fn umask() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))?;
    u64::from_str_radix(mask.trim(), 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold_as_long_as_they_are_what_they_were() {
        let asked = BTreeSet::from([7, Observed::UMASK]);
        let mut limits = Limits::read(&asked);
        assert!(limits.hold());
        assert_eq!(limits.numbers(), asked);
        limits.0[1].1 = Some([Some(0o1000), None]);
        assert!(!limits.hold(), "no umask has this bit");
        assert!(
            !Limits::read(&BTreeSet::from([200])).hold(),
            "nobody knows this one"
        );
    }
}
