//! How much memory there is and how much is available: the machine's, the cgroup's, and the kernel's pressure figures.

use std::fs::File;
use std::path::Path;

use crate::cgroup::Cgroups;
use crate::small_file::{field, text_of};

/// The files to read, kept open: they are read many times a second when memory is short.
#[derive(Debug)]
pub struct Meter {
    meminfo: Option<File>,
    pressure: Option<File>,
    cgroups: Cgroups,
}

/// One reading of the memory figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// KiB that can be used without swapping, in the machine and in every cgroup around us.
    pub available_kib: u64,
    /// Whether it is a cgroup, not the machine, that has so little.
    pub by_cgroup: bool,
    /// Percent of the last ten seconds in which all processes waited for memory.
    pub stalled: f32,
}

impl Meter {
    /// Opens what there is.
    pub fn new() -> Self {
        Self {
            meminfo: File::open("/proc/meminfo").ok(),
            pressure: File::open("/proc/pressure/memory").ok(),
            cgroups: Cgroups::of_this_process(),
        }
    }

    /// Reads `meminfo` and nothing else.
    pub fn of_file(meminfo: &Path) -> Self {
        Self {
            meminfo: File::open(meminfo).ok(),
            pressure: None,
            cgroups: Cgroups::default(),
        }
    }

    /// The memory of the machine or of the narrowest cgroup, in KiB.
    pub fn total_kib(&self) -> u64 {
        let machine = self.meminfo().and_then(|text| field(&text, "MemTotal:"));
        machine
            .unwrap_or(u64::MAX / 1024)
            .min(self.cgroups.limit_kib().unwrap_or(u64::MAX))
    }

    /// A number for the memory-limited cgroup of this process; 0 without a limit.
    pub fn domain(&self) -> u64 {
        self.cgroups.domain()
    }

    /// Reads everything.
    pub fn read(&self) -> Reading {
        let machine = self
            .meminfo()
            .and_then(|text| field(&text, "MemAvailable:"))
            .unwrap_or(u64::MAX);
        let cgroup = self.cgroups.available_kib().unwrap_or(u64::MAX);
        let stalled = self.pressure.as_ref().and_then(text_of);
        Reading {
            available_kib: machine.min(cgroup),
            by_cgroup: cgroup < machine,
            stalled: stalled.and_then(|text| full_avg10(&text)).unwrap_or(0.0),
        }
    }

    fn meminfo(&self) -> Option<String> {
        self.meminfo.as_ref().and_then(text_of)
    }
}

fn full_avg10(text: &str) -> Option<f32> {
    let line = text.lines().find_map(|line| line.strip_prefix("full "))?;
    let mut words = line.split_ascii_whitespace();
    words
        .find_map(|word| word.strip_prefix("avg10="))?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_are_found() {
        let text = "some avg10=1.00 avg60=0.00 avg300=0.00 total=0\n\
                    full avg10=12.50 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(full_avg10(text), Some(12.5));
    }

    #[test]
    fn this_machine_can_be_read() {
        let meter = Meter::new();
        let reading = meter.read();
        assert!(reading.available_kib > 0);
        assert!(reading.available_kib <= meter.total_kib());
    }
}
