//! Tests scarce resources - room on a disk, descriptors, processes, addresses - and frequent signals: warpcc succeeds where
//! nvcc does, and a failure leaves nothing wrong in the cache.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::cgroup::Cgroup;
use crate::skipped;
use crate::space::{Outcome, Program, Snapshot, TestSpace};

/// A line for which plain nvcc makes the same bytes each time.
const DEVICE: &str = "-cubin case.cu -o out.cubin -arch=sm_90";
/// A line that uses every tool.
const OBJECT: &str = "-c case.cu -o out.o -arch=sm_90";

fn space(name: &str) -> TestSpace {
    let space = TestSpace::new(name);
    space.write(
        "case.cu",
        "__device__ int table[5000] = {1, 2, 3};\n\
         __global__ void k(int *x) { *x = table[*x]; }\nint host() { return 0; }\n",
    );
    space
}

/// A small disk, unmounted when dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: &Path, kib: u32) -> Option<Self> {
        let size = format!("size={kib}k,mode=755");
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(at)
            .output();
        if done.is_ok_and(|done| done.status.success()) {
            return Some(Self(at.to_owned()));
        }
        skipped("mounting a small tmpfs needs root");
        None
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let done = Command::new("umount").arg("--lazy").arg(&self.0).status();
        assert!(done.is_ok_and(|done| done.success()) || std::thread::panicking());
    }
}

/// Runs a line, takes its outputs, and leaves the folder as it was.
fn run(space: &TestSpace, program: &Program, line: &str) -> (Outcome, Snapshot) {
    let before = Snapshot::take(&space.work());
    let outcome = space.run(program, &space.words(line));
    let made = Snapshot::take(&space.work()).since(&before);
    made.delete_from(&space.work());
    (outcome, made)
}

/// nvcc and warpcc, each started by a shell after `words`, such as a limit.
fn behind(words: &str) -> impl Fn(&TestSpace) -> [Program; 2] {
    let words = format!("{words}; exec \"$@\"");
    move |space: &TestSpace| {
        let nvcc = space.toolkit.nvcc.display().to_string();
        let warpcc = TestSpace::warpcc().display().to_string();
        [vec![nvcc.clone()], vec![warpcc, nvcc]].map(|compiler| {
            let first = ["-c", &words, "sh"].map(str::to_owned).into_iter();
            Program::Other("/bin/sh".into(), first.chain(compiler).collect())
        })
    }
}

/// Asserts that warpcc succeeds where nvcc does: with an empty cache, with one that warpcc filled in the same place, and
/// with a full one.
#[track_caller]
fn as_nvcc(space: &TestSpace, [nvcc, warpcc]: &[Program; 2], what: &str) {
    let (want, wanted) = run(space, nvcc, DEVICE);
    space.clear_cache();
    for state in ["cold", "its own", "full"] {
        if state == "full" {
            space.build(DEVICE);
            space.remove("out.cubin");
        }
        let (got, made) = run(space, warpcc, DEVICE);
        let said = got.stderr_text();
        assert!(!said.contains("panicked"), "{what}, {state}: {said}");
        let names = space.leftovers();
        let ours = names.iter().find(|name| name.starts_with("warpcc-"));
        assert_eq!(ours, None, "{what}, {state}: left in TMPDIR");
        if want.code == 0 {
            assert_eq!(got.code, 0, "{what}, {state}: {said}");
            assert!(
                made.entries == wanted.entries,
                "{what}, {state}: other bytes"
            );
            let foreign = said.lines().find(|line| !line.starts_with("warpcc"));
            assert_eq!(foreign, None, "{what}, {state}");
        }
    }
}

#[test]
fn a_cache_on_a_disk_of_any_size() {
    let space = space("cache-sizes");
    let reference = space.run_reference(DEVICE);
    // From no room even for a folder to room for everything.
    for kib in (4..=40).step_by(12).chain((60..=320).step_by(20)) {
        let Some(_disk) = Disk::mount(&space.cache(), kib) else {
            return;
        };
        space.agree_twice_with(DEVICE, &reference);
        let verify = space.warpcc_with(&["cache", "verify"]);
        assert_eq!(verify.code, 0, "{kib} KiB: {}", verify.stderr_text());
    }
}

#[test]
fn a_cache_on_a_disk_that_is_filled_meanwhile() {
    let space = space("cache-filled");
    let Some(_disk) = Disk::mount(&space.cache(), 4096) else {
        return;
    };
    space.agree_twice_uncounted(DEVICE);
    for left in [0, 4, 32, 128] {
        // Fills the disk but for this many KiB.
        let fill = format!(
            "rm -f filler; free=$(df -k --output=avail . | tail -1); head -c $(((free - {left}) * 1024)) \
             /dev/zero >filler"
        );
        let filled = Command::new("sh")
            .args(["-c", &fill])
            .current_dir(space.cache())
            .status();
        assert!(filled.is_ok_and(|ended| ended.success()), "{left} KiB");
        space.write("case.cu", &format!("__global__ void k{left}() {{}}\n"));
        space.agree_twice_uncounted(DEVICE);
    }
}

/// nvcc on a small disk for its temporary files.
fn nvcc_with(space: &TestSpace, kib: u32) -> Option<i32> {
    let _disk = Disk::mount(&space.tmp(), kib)?;
    Some(run(space, &Program::Nvcc, OBJECT).0.code)
}

/// On a disk just smaller than nvcc needs, fatbinary ends without an error after a part of its file.
#[test]
fn temporary_files_on_a_disk_of_any_size() {
    const STEP: u32 = 28;
    let space = space("tmp-sizes");
    let build = space.agree(OBJECT);
    let (mut too_few, mut enough) = (256, 32_768);
    while enough - too_few > STEP {
        let kib = u32::midpoint(too_few, enough);
        match nvcc_with(&space, kib) {
            Some(0) => enough = kib,
            Some(_) => too_few = kib,
            None => return,
        }
    }
    let near = (enough - 5 * STEP..=enough + 3 * STEP).step_by(STEP as usize);
    for kib in [512, 1400].into_iter().chain(near).chain([40_000]) {
        let Some(wanted) = nvcc_with(&space, kib) else {
            return;
        };
        space.clear_cache();
        {
            let _disk = Disk::mount(&space.tmp(), kib);
            let (got, made) = run(&space, &Program::Launcher, OBJECT);
            let said = got.stderr_text();
            assert!(!said.contains("panicked"), "{kib} KiB: {said}");
            if wanted == 0 {
                assert_eq!(got.code, 0, "{kib} KiB: {said}");
            }
            let names: Vec<&String> = made.entries.keys().collect();
            if got.code == 0 {
                assert_eq!(names, ["out.o"], "{kib} KiB");
            }
        }
        // No partial file was stored.
        space.again(OBJECT, &build).demand_no_fallback();
    }
}

#[test]
fn few_descriptors() {
    let space = space("few-descriptors");
    for most in [3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 19, 20, 22, 24, 28] {
        let limit = format!("ulimit -n {most}");
        as_nvcc(&space, &behind(&limit)(&space), &limit);
    }
}

#[test]
fn few_addresses() {
    let space = space("few-addresses");
    for (kind, kib) in [
        ("v", 150_000),
        ("v", 190_000),
        ("v", 200_000),
        ("v", 210_000),
        ("v", 300_000),
        ("v", 600_000),
        ("d", 100_000),
        ("d", 200_000),
        ("d", 400_000),
    ] {
        let limit = format!("ulimit -{kind} {kib}");
        as_nvcc(&space, &behind(&limit)(&space), &limit);
    }
}

#[test]
fn few_processes() {
    // All at once: where gcc cannot fork it sleeps and tries again, for 15 seconds (libiberty's pex-unix.c).
    std::thread::scope(|scope| {
        for most in [1, 2, 3, 4, 5, 6, 8, 10] {
            scope.spawn(move || {
                if let Err(why) = with_processes(most) {
                    skipped(&why);
                }
            });
        }
    });
}

fn with_processes(most: u64) -> Result<(), String> {
    let space = space(&format!("few-processes-{most}"));
    let group = Cgroup::new("pids")?;
    group.set("pids.max", most)?;
    let nvcc = space.toolkit.nvcc.clone();
    let both = [
        group.inside(std::slice::from_ref(&nvcc)),
        group.inside(&[TestSpace::warpcc(), nvcc]),
    ];
    as_nvcc(&space, &both, &format!("{most} processes"));
    group.wait_until_empty();
    Ok(())
}

/// A terminal's and a shell's signals at every moment.
#[test]
fn signals_all_the_time() {
    let space = space("signals");
    let wanted = space.agree(DEVICE).outputs;
    for (name, pause) in [
        (&[Signal::WINCH][..], Duration::ZERO),
        (&[Signal::CONT, Signal::CHILD, Signal::URG], Duration::ZERO),
        (&[Signal::TSTP, Signal::CONT], Duration::from_millis(7)),
    ] {
        for (to_all, is_warm) in [(false, false), (true, false), (true, true)] {
            if !is_warm {
                space.clear_cache();
            }
            wanted.delete_from(&space.work());
            let before = Snapshot::take(&space.work());
            let mut command = space.command(&Program::Launcher, &space.words(DEVICE));
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
            let mut child = command
                .stderr(std::process::Stdio::piped())
                .spawn()
                .expect("starting warpcc");
            let target = Pid::from_child(&child);
            let mut turn = 0_usize;
            let status = loop {
                if let Some(status) = child.try_wait().expect("waiting") {
                    break status;
                }
                let signal = name[turn % name.len()];
                // The process may just have ended.
                let _ = match to_all {
                    true => kill_process_group(target, signal),
                    false => kill_process(target, signal),
                };
                turn += 1;
                std::thread::sleep(pause + Duration::from_micros(turn as u64 * 37 % 900));
            };
            let said = std::io::read_to_string(child.stderr.take().expect("a pipe"));
            let said = said.expect("its messages");
            assert!(
                status.success() && said.is_empty(),
                "{name:?}: {status}, {said}"
            );
            let made = Snapshot::take(&space.work()).since(&before);
            assert!(made.entries == wanted.entries, "{name:?}: another cubin");
        }
    }
}

#[test]
fn without_proc_nvcc_runs_and_one_line_says_why() {
    let mut space = space("no-proc");
    let theirs = run(&space, &Program::Nvcc, DEVICE).1;
    let nvcc = space.command(&Program::Nvcc, &[]).get_program().to_owned();
    // By a link too, which must not take itself for the real nvcc, the next one in PATH.
    let link = space.beside("links").join("nvcc");
    crate::space::make_dir(&space.beside("links"));
    std::os::unix::fs::symlink(TestSpace::warpcc(), &link).expect("a link");
    let nvcc_folder = Path::new(&nvcc).parent().expect("a folder").display();
    let path = format!(
        "{}:{nvcc_folder}:/usr/bin:/bin",
        space.beside("links").display()
    );
    space.set_env("PATH", &path);
    let launcher = vec![TestSpace::warpcc().display().to_string(), "nvcc".to_owned()];
    for words in [launcher, vec![link.display().to_string()]] {
        let mut first: Vec<String> = ["--mount", "--propagation", "private", "sh", "-c"]
            .map(str::to_owned)
            .to_vec();
        first.push("mount -t tmpfs none /proc || exit 77; exec \"$@\"".to_owned());
        first.push("sh".to_owned());
        first.extend(words.iter().cloned());
        let (outcome, ours) = run(&space, &Program::Other("unshare".into(), first), DEVICE);
        let said = outcome.stderr_text();
        if outcome.code == 77 || said.contains("unshare failed") {
            return skipped("a mount namespace without /proc needs root");
        }
        assert_eq!(outcome.code, 0, "{words:?}: {said}");
        assert!(
            said.starts_with("warpcc: warning: /proc") && said.lines().count() == 1,
            "{words:?}: {said}"
        );
        assert_eq!(ours.entries, theirs.entries, "{words:?}");
    }
}
