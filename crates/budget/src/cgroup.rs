//! The memory limits of the cgroups around this process, versions 1 and 2.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::small_file::{field, text_of};

/// Version 1 says "no limit" with a number near 2^63; no machine has a pebibyte.
const NO_LIMIT: u64 = 1 << 50;

/// Every cgroup with a limit, from ours upwards.
#[derive(Debug, Default)]
pub struct Cgroups(Vec<Level>);

#[derive(Debug)]
struct Level {
    folder: PathBuf,
    limit: u64,
    usage: File,
    stat: Option<File>,
    names: &'static Names,
}

/// The names of the files and fields.
#[derive(Debug)]
struct Names {
    limit: &'static str,
    usage: &'static str,
    /// Inactive memory of the whole subtree.
    inactive: &'static str,
    active: &'static str,
}

const V1: Names = Names {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    inactive: "total_inactive_file ",
    active: "total_active_file ",
};

const V2: Names = Names {
    limit: "memory.max",
    usage: "memory.current",
    inactive: "inactive_file ",
    active: "active_file ",
};

impl Cgroups {
    /// Those of this process. Limits that are changed later are not seen.
    pub fn of_this_process() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self(
            folders(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"))
                .into_iter()
                .filter_map(|(folder, names)| Level::open(folder, names))
                .collect(),
        )
    }

    /// The lowest limit in KiB.
    pub fn limit_kib(&self) -> Option<u64> {
        self.0.iter().map(|level| level.limit / 1024).min()
    }

    /// The memory that is left in the cgroup with the least, in KiB.
    pub fn available_kib(&self) -> Option<u64> {
        self.0.iter().filter_map(Level::available_kib).min()
    }

    /// A hash of the innermost one with a limit, 0 without.
    pub fn domain(&self) -> u64 {
        self.0.first().map_or(0, |level| {
            // Never 0, which is "no limit".
            xxh3_64(level.folder.as_os_str().as_encoded_bytes()) | 1
        })
    }
}

impl Level {
    fn open(folder: PathBuf, names: &'static Names) -> Option<Self> {
        let limit = fs::read_to_string(folder.join(names.limit)).ok()?;
        let limit = limit.trim().parse().ok().filter(|&l| l < NO_LIMIT)?;
        Some(Self {
            usage: File::open(folder.join(names.usage)).ok()?,
            stat: File::open(folder.join("memory.stat")).ok(),
            folder,
            limit,
            names,
        })
    }

    /// The limit less the usage, plus the pages of files that the kernel would drop before it kills a process. Of those
    /// in active use only half count, because everything is slow without them.
    fn available_kib(&self) -> Option<u64> {
        let usage: u64 = text_of(&self.usage)?.trim().parse().ok()?;
        let stat = self.stat.as_ref().and_then(text_of).unwrap_or_default();
        let inactive = field(&stat, self.names.inactive).unwrap_or(0);
        let active = field(&stat, self.names.active).unwrap_or(0);
        let free = self.limit.saturating_sub(usage);
        let droppable = inactive.saturating_add(active / 2).min(usage);
        Some(free.saturating_add(droppable).min(self.limit) / 1024)
    }
}

/// The folders of the memory controller from ours up to the mount's root.
fn folders(cgroup: &str, mountinfo: &str) -> Vec<(PathBuf, &'static Names)> {
    let mut found = Vec::new();
    for line in cgroup.lines() {
        let mut words = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let names = match controllers {
            "" => &V2,
            some if some.split(',').any(|c| c == "memory") => &V1,
            _ => continue,
        };
        for (root, mount) in mounts(mountinfo, names) {
            // In a container the mount shows only a part of the tree, but the path may be the one in the whole tree.
            let below = Path::new(path).strip_prefix(&root).unwrap_or(Path::new(""));
            let below = below.strip_prefix("/").unwrap_or(below);
            // Outside of our cgroup namespace: `/../..`.
            let below = if below.starts_with("..") {
                Path::new("")
            } else {
                below
            };
            for part in below.ancestors() {
                found.push((mount.join(part), names));
            }
        }
    }
    found
}

/// Root and mount point of the hierarchies of this version with a memory controller.
fn mounts(mountinfo: &str, names: &'static Names) -> Vec<(PathBuf, PathBuf)> {
    let version1 = std::ptr::eq(names, &V1);
    let line = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (root, mount) = (left.next()?, left.next()?);
        let mut right = right.split(' ');
        let kind = right.next()?;
        let matches = if version1 {
            kind == "cgroup" && right.nth(1)?.split(',').any(|o| o == "memory")
        } else {
            kind == "cgroup2"
        };
        matches.then(|| (PathBuf::from(root), PathBuf::from(mount)))
    };
    mountinfo.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(cgroup: &str, mountinfo: &str) -> Vec<String> {
        let found = folders(cgroup, mountinfo).into_iter();
        found.map(|(p, _)| p.display().to_string()).collect()
    }

    #[test]
    fn both_versions_and_containers() {
        let mixed = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                     35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                     41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        assert_eq!(
            paths("4:memory:/a/b\n1:cpu:/x\n0::/\n", mixed),
            [
                "/sys/fs/cgroup/memory/a/b",
                "/sys/fs/cgroup/memory/a",
                "/sys/fs/cgroup/memory/",
                "/sys/fs/cgroup/unified/",
            ]
        );
        let unified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        assert_eq!(
            paths("0::/user.slice/u-1\n", unified),
            [
                "/sys/fs/cgroup/user.slice/u-1",
                "/sys/fs/cgroup/user.slice",
                "/sys/fs/cgroup/"
            ]
        );
        let container = "9 8 0:3 /docker/f00 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        assert_eq!(
            paths("4:memory:/docker/f00\n", container),
            ["/sys/fs/cgroup/memory/"]
        );
        assert_eq!(paths("0::/../..\n", unified), ["/sys/fs/cgroup/"]);
        assert_eq!(paths("nonsense\n::\n", "more\n"), [""; 0]);
    }

    #[test]
    fn usage_without_what_can_be_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let put =
            |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("write");
        put("memory.max", "1048576000\n");
        put("memory.current", "1000000000\n");
        put(
            "memory.stat",
            "anon 1\ninactive_file 102400\nactive_file 204800\n",
        );
        let level = Level::open(folder.path().to_owned(), &V2).expect("a level");
        assert_eq!(
            level.available_kib(),
            Some((1_048_576_000 - 1_000_000_000 + 204_800) / 1024)
        );
        put("memory.max", "max\n");
        assert!(Level::open(folder.path().to_owned(), &V2).is_none());
    }
}
