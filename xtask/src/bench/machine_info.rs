//! Describes the conditions of a measurement: the machine, the toolkit, the day.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};

use crate::process;

/// Today, in UTC.
pub fn date() -> Result<String> {
    Ok(process::output(Command::new("date").args(["-u", "+%F"]))?
        .trim()
        .to_owned())
}

pub fn machine() -> Value {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let kernel = read("/proc/sys/kernel/osrelease");
    json!({
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "cpu": field(&read("/proc/cpuinfo"), "model name"),
        "memory": field(&read("/proc/meminfo"), "MemTotal"),
        "system": field_of_os_release(&read("/etc/os-release")),
        "kernel": kernel.trim(),
    })
}

/// nvcc's release, from its line "Cuda compilation tools, release 13.0, V13.0.88".
pub fn toolkit(nvcc: &Path) -> Result<String> {
    let text = process::output(Command::new(nvcc).arg("--version"))?;
    let line = text
        .lines()
        .find(|line| line.contains(" release "))
        .unwrap_or("unknown");
    let release = line.rsplit(" V").next().unwrap_or(line);
    Ok(format!("CUDA {release}"))
}

/// The compiler nvcc takes when none is named.
pub fn host_compiler() -> Option<String> {
    let text = process::output(Command::new("gcc").arg("--version")).ok()?;
    text.lines().next().map(str::to_owned)
}

/// How many files the source includes, for one architecture.
pub fn headers(nvcc: &Path, source: &Path) -> Result<usize> {
    let rule = process::output(Command::new(nvcc).args(["-std=c++17", "-M"]).arg(source))?;
    // The target and the source itself are not headers.
    Ok(rule
        .split_whitespace()
        .filter(|word| *word != "\\")
        .count()
        .saturating_sub(3))
}

fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':')
        .map(|(_, value)| value.trim().to_owned())
}

fn field_of_os_release(text: &str) -> Option<String> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_from_their_lines() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\n";
        assert_eq!(
            field(cpuinfo, "model name").as_deref(),
            Some("Some CPU @ 3 GHz")
        );
        assert_eq!(field(cpuinfo, "flags"), None);
        let release = "NAME=x\nPRETTY_NAME=\"A Linux 1\"\n";
        assert_eq!(field_of_os_release(release).as_deref(), Some("A Linux 1"));
    }
}
