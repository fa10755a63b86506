//! The limits of this process, its `umask`, user, priority and the like, which every program that it starts inherits and may
//! ask for.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::io::IsTerminal;

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
        let fact = match number {
            Observed::UMASK => Some(umask()),
            Observed::USER => Some(user()),
            Observed::MACHINE => Some(Some(machine())),
            Observed::PROCESSORS => Some(processors()),
            Observed::PRIORITY => Some(priority()),
            Observed::TERMINALS => Some(Some(terminals())),
            Observed::INPUT => Some(input()),
            _ => None,
        };
        if let Some(fact) = fact {
            return Self(number, fact.map(|fact| [Some(fact), None]));
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

/// A number for a value. It is compared with those of this machine and of others.
fn number_of(value: &[u8]) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&blake3::hash(value).as_bytes()[..8]);
    u64::from_le_bytes(number)
}

/// The user and the groups, real and effective.
fn user() -> Option<u64> {
    use rustix::process::{getegid, geteuid, getgid, getgroups, getuid};
    let groups = getgroups().ok()?;
    let own = [getgid(), getegid()];
    let groups = own.iter().chain(&groups).map(|group| group.as_raw());
    let all = [getuid(), geteuid()].map(rustix::process::Uid::as_raw);
    let all = all.into_iter().chain(groups).flat_map(u32::to_le_bytes);
    Some(number_of(&all.collect::<Vec<_>>()))
}

/// The names of the machine and of its kernel.
fn machine() -> u64 {
    let names = rustix::system::uname();
    let all = [
        names.nodename(),
        names.domainname(),
        names.sysname(),
        names.release(),
        names.version(),
        names.machine(),
    ];
    number_of(&all.map(std::ffi::CStr::to_bytes_with_nul).concat())
}

/// The processors on which this process may run, and how many there are.
fn processors() -> Option<u64> {
    let usable = rustix::thread::sched_getaffinity(None).ok()?;
    let usable = (0..rustix::thread::CpuSet::MAX_CPU).filter(|processor| usable.is_set(*processor));
    let usable = usable.flat_map(usize::to_le_bytes);
    let online = fs::read("/sys/devices/system/cpu/online").unwrap_or_default();
    Some(number_of(&usable.chain(online).collect::<Vec<_>>()))
}

/// The priority and the class of scheduling.
fn priority() -> Option<u64> {
    let nice = rustix::process::getpriority_process(None).ok()?;
    // In the 39th and later fields of proc_pid_stat(5).
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<_> = fields.split_whitespace().skip(37).take(2).collect();
    Some(number_of(format!("{nice} {fields:?}").as_bytes()))
}

/// Which of standard output and standard error are terminals.
fn terminals() -> u64 {
    u64::from(io::stdout().is_terminal()) | u64::from(io::stderr().is_terminal()) << 1
}

/// What standard input is: `/dev/null`, this file at this position, closed, or what tools do not get.
fn input() -> Option<u64> {
    let file = crate::file_input::FileInput::open();
    match crate::room::input_matters() {
        _ if rustix::fs::fstat(io::stdin()).is_err() => Some(3),
        true => file.map_or(Some(2), |file| {
            Some(number_of(file.state().ok()?.as_bytes()))
        }),
        false => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold_as_long_as_they_are_what_they_were() {
        let facts = Observed::USER..=Observed::INPUT;
        assert!(Limits::read(&facts.collect()).hold());
        let asked = BTreeSet::from([7, Observed::UMASK]);
        let mut limits = Limits::read(&asked);
        assert!(limits.hold());
        assert_eq!(limits.numbers(), asked);
        limits.0[1].1 = Some([Some(0o1000), None]);
        assert!(!limits.hold(), "no umask has this bit");
        assert!(
            !Limits::read(&BTreeSet::from([199])).hold(),
            "nobody knows this one"
        );
    }
}
