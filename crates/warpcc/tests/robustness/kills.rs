//! Tests signals and kills at any time: nothing is left, and the next build is right.

use crate::space::{Program, Snapshot, TestSpace};
use crate::{LONG, TWO, space};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Child;
use std::time::{Duration, Instant, SystemTime};

/// Processes of this space that still run: their environment has the space's TMPDIR, or a folder of warpcc's below it.
fn living(space: &TestSpace) -> Vec<String> {
    let mark = format!("TMPDIR={}", space.tmp().display());
    let Ok(listing) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    listing
        .flatten()
        .filter(|item| {
            fs::read(item.path().join("environ")).is_ok_and(|env| {
                env.split(|&b| b == 0)
                    .any(|v| v.starts_with(mark.as_bytes()))
            })
        })
        .map(|item| {
            // Whether a signal was sent to it, and has not ended it yet.
            let status = fs::read_to_string(item.path().join("status")).unwrap_or_default();
            let wanted = ["Name:", "State:", "PPid:", "SigPnd:", "ShdPnd:"];
            let lines = status.lines();
            let lines: Vec<&str> = lines
                .filter(|line| wanted.iter().any(|name| line.starts_with(name)))
                .collect();
            let pid = item.file_name();
            format!("{} {}", pid.to_string_lossy(), lines.join(" "))
        })
        .collect()
}

/// Waits until no process of the space is left. Gives the processes that are left after `patience`.
pub fn wait_for_quiet(space: &TestSpace, patience: Duration) -> Vec<String> {
    let end = Instant::now() + patience;
    loop {
        let left = living(space);
        if left.is_empty() || Instant::now() > end {
            return left;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn start(space: &TestSpace) -> Child {
    space
        .command(&Program::Launcher, &space.words(LONG))
        // As a shell starts a job: a group of its own, which Ctrl-C reaches whole.
        .process_group(0)
        .spawn()
        .expect("starting warpcc")
}

/// Starts the call, kills warpcc alone after `delay` milliseconds, and asserts that no tool of it goes on.
pub fn kill_warpcc_after(space: &TestSpace, delay: u64) {
    let mut child = start(space);
    std::thread::sleep(Duration::from_millis(delay));
    // The process may have ended already.
    let _ = child.kill();
    child.wait().expect("waiting for warpcc");
    let left = wait_for_quiet(space, Duration::from_secs(1));
    assert!(left.is_empty(), "still running after {delay} ms: {left:?}");
}

/// Waits until the call has started a process.
fn wait_for_a_tool(space: &TestSpace, call: &Child) {
    let own = format!("{} ", call.id());
    let end = Instant::now() + Duration::from_secs(60);
    while !living(space)
        .iter()
        .any(|process| !process.starts_with(&own))
    {
        assert!(Instant::now() < end, "no tool was started");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

enum Reach {
    /// `kill PID`: warpcc must tell its children.
    Process,
    /// Ctrl-C: all of them get it at once.
    Group,
}

fn interrupted(signal: Signal, code: i32, reach: &Reach, name: &str) {
    // nvcc's result, for all delays.
    let space = space(name);
    let wanted = space.agree(LONG);
    for delay in [30, 200, 600] {
        wanted.outputs.delete_from(&space.work());
        space.clear_cache();
        let before = Snapshot::take(&space.work());
        let mut child = start(&space);
        std::thread::sleep(Duration::from_millis(delay));
        match reach {
            Reach::Process => kill_process(pid(&child), signal),
            Reach::Group => kill_process_group(pid(&child), signal),
        }
        .expect("sending the signal");
        let status = child.wait().expect("waiting for warpcc");
        let got = status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        // The build may have been quicker than the signal.
        if got != 0 {
            assert_eq!(got, code, "exit status after {delay} ms");
            let made = Snapshot::take(&space.work()).since(&before).entries;
            let made: Vec<&String> = made.keys().collect();
            assert!(made.is_empty(), "left after {delay} ms: {made:?}");
        }
        let left = wait_for_quiet(&space, Duration::from_secs(2));
        assert!(left.is_empty(), "still running after {delay} ms: {left:?}");
        space.demand_no_leftovers("an interrupted build");
        space.again(LONG, &wanted);
    }
}

#[test]
fn sigint_to_warpcc() {
    interrupted(Signal::INT, 130, &Reach::Process, "sigint");
}

#[test]
fn sigint_to_the_group() {
    interrupted(Signal::INT, 130, &Reach::Group, "sigint-group");
}

#[test]
fn sigterm_to_warpcc() {
    interrupted(Signal::TERM, 143, &Reach::Process, "sigterm");
}

#[test]
fn sigterm_during_a_fallback() {
    // Plain nvcc is a child like any other.
    let space = space("sigterm-fallback");
    let args = space.words("-time times.csv -c case.cu -o out.o -arch=all");
    let mut child = space
        .command(&Program::Launcher, &args)
        .process_group(0)
        .spawn()
        .expect("starting warpcc");
    wait_for_a_tool(&space, &child);
    kill_process(pid(&child), Signal::TERM).expect("sending the signal");
    let status = child.wait().expect("waiting for warpcc");
    let got = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    // nvcc itself answers SIGTERM with 255 and leaves its tools running; a warpcc that
    // has turned into nvcc can be no better.
    assert!([143, 255].contains(&got), "exit status {got}");
    let left = wait_for_quiet(&space, Duration::from_secs(20));
    assert!(left.is_empty(), "still running: {left:?}");
}

/// The messages of a program that is interrupted during the host compile, which comes after a warning.
fn said_when_interrupted(space: &TestSpace, program: &Program) -> String {
    let there = space.beside("there");
    crate::space::remove_tree(&there);
    let words = space.words("-ccbin {work}/cc.sh -c case.cu -o out.o -arch=sm_90");
    let mut command = space.command(program, &words);
    let child = command
        .process_group(0)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("starting a program");
    let end = Instant::now() + Duration::from_secs(60);
    while !there.exists() {
        assert!(Instant::now() < end, "no host compile");
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process_group(pid(&child), Signal::INT).expect("sending the signal");
    let output = child.wait_with_output().expect("waiting for a program");
    assert!(!output.status.success(), "not interrupted");
    let text = String::from_utf8_lossy(&output.stderr);
    // nvcc says which tool died; the caller knows.
    let lines = text
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("nvcc error"));
    lines.collect()
}

#[test]
fn a_warning_before_the_signal_is_shown() {
    let space = TestSpace::new("sigint-warning");
    space.write("case.cu", "__global__ void k() { int unused; }\n");
    let script = "#!/bin/sh\ncase \"$*\" in *.cudafe1.cpp*) : > {beside}/there; exec sleep 60;; esac\n\
                  exec g++ \"$@\"\n";
    space.script("cc.sh", &space.fill(script));
    let nvccs = said_when_interrupted(&space, &Program::Nvcc);
    assert!(nvccs.contains("\"unused\""), "{nvccs}");
    let ours = said_when_interrupted(&space, &Program::Launcher);
    assert_eq!(ours, nvccs);
}

#[test]
fn kill_at_random_points() {
    let space = space("kill-9");
    for round in 0..3 {
        let nanos = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |t| u64::from(t.subsec_nanos()));
        let delay = nanos / 1000 % 1500;
        space.write(
            "case.cu",
            &format!(
                "{}// round {round}\nint r{round}() {{ return 0; }}\n",
                crate::KERNEL
            ),
        );
        let mut child = start(&space);
        std::thread::sleep(Duration::from_millis(delay));
        // The whole group, as at the end of a CI job or by the kernel's out-of-memory killer.
        let _ = kill_process_group(pid(&child), Signal::KILL);
        child.wait().expect("waiting for warpcc");
        let left = wait_for_quiet(&space, Duration::from_secs(20));
        assert!(
            left.is_empty(),
            "killed after {delay} ms, still running: {left:?}"
        );
        // A killed process cannot clean up; the next one may or may not.
        for name in space.leftovers() {
            crate::space::remove_tree(&space.tmp().join(name));
        }
        space.remove("out.o");
        let build = space.agree(LONG);
        assert_eq!(build.outcome.code, 0, "after a kill at {delay} ms");
        space.again(LONG, &build).demand_direct_hit();
        let verify = space.warpcc_with(&["cache", "verify"]);
        assert_eq!(verify.code, 0, "after {delay} ms: {}", verify.stderr_text());
    }
}

#[test]
fn only_warpcc_is_killed() {
    // The tools end with warpcc, and their unfinished files must not spoil a second run's results.
    let space = space("kill-9-alone");
    let (long, two) = (space.agree(LONG), space.agree(TWO));
    for delay in [100, 300, 600] {
        space.remove("out.o");
        space.clear_cache();
        kill_warpcc_after(&space, delay);
        space.run(&Program::Launcher, &space.words(TWO));
        for name in space.leftovers() {
            crate::space::remove_tree(&space.tmp().join(name));
        }
        space.again(LONG, &long);
        space.again(TWO, &two);
    }
}

#[test]
fn ignored_signals_stay_ignored() {
    // As under nohup, and as a script's background jobs have it.
    let space = space("nohup");
    let nvcc = space.toolkit.nvcc.display().to_string();
    let ignoring = ["-c", "trap '' HUP INT; exec \"$@\"", "sh"].map(str::to_owned);
    let first = ignoring
        .into_iter()
        .chain([TestSpace::warpcc().display().to_string(), nvcc]);
    let program = Program::Other("/bin/sh".into(), first.collect());
    let mut child = space
        .command(&program, &space.words(TWO))
        .process_group(0)
        .spawn()
        .expect("starting warpcc");
    wait_for_a_tool(&space, &child);
    for signal in [Signal::HUP, Signal::INT] {
        kill_process(pid(&child), signal).expect("sending the signal");
    }
    let status = child.wait().expect("waiting for warpcc");
    assert!(status.success(), "{status}");
    assert!(space.exists("out.o"), "no object");
}

#[test]
fn an_interrupted_hit_leaves_nothing() {
    let space = space("interrupted-hit");
    let build = space.agree(TWO);
    let args = space.words(TWO);
    for delay in 0..60 {
        build.outputs.delete_from(&space.work());
        let before = Snapshot::take(&space.work());
        let mut child = space
            .command(&Program::Launcher, &args)
            .spawn()
            .expect("starting warpcc");
        std::thread::sleep(Duration::from_micros(delay * 500));
        // It may have ended.
        let _ = kill_process(pid(&child), Signal::INT);
        child.wait().expect("waiting for warpcc");
        let made = Snapshot::take(&space.work()).since(&before).entries;
        let strange: Vec<&String> = made.keys().filter(|name| *name != "out.o").collect();
        assert!(
            strange.is_empty(),
            "left after {delay} half ms: {strange:?}"
        );
    }
}
