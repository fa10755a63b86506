//! Few processes allowed, as in a container with `pids.max`: where nvcc finds enough, so does warpcc.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::space::{Outcome, Program, TestSpace};
use crate::{TWO, space};

/// A cgroup with a limit of processes and threads, removed at the end.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new() -> Result<Self, String> {
        let version1 = PathBuf::from("/sys/fs/cgroup/pids");
        let base = if version1.is_dir() {
            version1
        } else {
            PathBuf::from("/sys/fs/cgroup")
        };
        let folder = base.join(format!("warpcc-pids-{}", std::process::id()));
        fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let cgroup = Self(folder);
        cgroup.limit(100)?;
        Ok(cgroup)
    }

    fn limit(&self, processes: u32) -> Result<(), String> {
        let file = self.0.join("pids.max");
        fs::write(&file, processes.to_string()).map_err(|e| format!("{}: {e}", file.display()))
    }

    /// Runs the compiler that `first` names, inside.
    fn run(&self, space: &TestSpace, first: &[PathBuf]) -> Outcome {
        let enter = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
        let shell: Vec<String> = ["-c".to_owned(), enter.to_owned()]
            .into_iter()
            .chain(
                [&self.0]
                    .into_iter()
                    .chain(first)
                    .map(|p| p.display().to_string()),
            )
            .collect();
        let outcome = space.run(&Program::Other("/bin/sh".into(), shell), &space.words(TWO));
        // The next one must not find its predecessor's processes there.
        for _ in 0..500 {
            if fs::read_to_string(self.0.join("cgroup.procs")).is_ok_and(|left| left.is_empty()) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        outcome
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "says that nothing was shown")]
fn as_few_processes_as_nvcc_needs() {
    let cgroup = match Cgroup::new() {
        Ok(cgroup) => cgroup,
        Err(why) => {
            println!("skipped: no cgroup can be made here: {why}");
            return;
        }
    };
    let space = space("few-processes");
    let nvcc = space.toolkit.nvcc.clone();
    let mut passed = 0;
    // Not each number: where gcc cannot fork it tries again for 15 seconds (libiberty's pex-unix.c).
    for limit in [2, 4, 6, 8] {
        cgroup.limit(limit).expect("the limit");
        let plain = cgroup.run(&space, std::slice::from_ref(&nvcc));
        space.remove("out.o");
        space.clear_cache();
        let ours = cgroup.run(&space, &[TestSpace::warpcc(), nvcc.clone()]);
        let text = ours.stderr_text();
        assert!(!text.contains("panicked"), "{limit} processes: {text}");
        if plain.code == 0 {
            passed += 1;
            assert_eq!(ours.code, 0, "{limit} processes: {text}");
            assert!(space.work().join("out.o").exists(), "{limit}: {text}");
        }
        space.remove("out.o");
    }
    assert!(passed > 1, "nvcc itself needs more processes than that");
}
