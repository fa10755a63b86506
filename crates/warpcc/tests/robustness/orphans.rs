//! Tests which processes warpcc leaves running: none when it is killed, and those that a wrapper around the compiler
//! meant to leave.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::kills::{kill_warpcc_after, wait_for_quiet};
use crate::space;
use crate::space::TestSpace;

/// A process that a script left behind, ended with the test.
struct Daemon(Pid);

impl Daemon {
    /// Waits for the process whose number is in this file, until it sleeps: before that it has no session of its own.
    fn find(space: &TestSpace, file: &str) -> Self {
        let path = space.beside(file);
        let end = Instant::now() + Duration::from_secs(120);
        loop {
            let text = fs::read_to_string(&path).unwrap_or_default();
            if let Some(number) = text.strip_suffix('\n') {
                let number = number.parse().expect("a process number");
                let pid = Pid::from_raw(number).expect("a process number");
                if sleeps(pid) {
                    return Self(pid);
                }
            }
            assert!(Instant::now() < end, "the script has started nothing");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn lives(&self) -> bool {
        sleeps(self.0)
    }
}

/// Whether the process is there and has become `sleep`.
pub fn sleeps(pid: Pid) -> bool {
    let path = format!("/proc/{}/cmdline", pid.as_raw_nonzero());
    fs::read(path).is_ok_and(|words| words.starts_with(b"sleep"))
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

/// A host compiler that starts a daemon, the first time that its arguments match `when`. The daemon has its own environment
/// and not ours, so it is not taken for a tool.
fn wrapper(space: &TestSpace, when: &str, then: &str) {
    let start = |how: &str, file: &str| {
        format!(
            "  env -i {how} sleep 600 </dev/null >/dev/null 2>&1 &\n  \
             echo $! > {{beside}}/{file}.new && mv {{beside}}/{file}.new {{beside}}/{file}\n"
        )
    };
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in {when})\n  if [ ! -e {{beside}}/once ]; then\n  : > {{beside}}/once\n{}{}  {then}\n  fi;;\n\
         esac\nexec g++ \"$@\"\n",
        start("setsid", "daemon"),
        start("", "background"),
    );
    space.script("cc.sh", &space.fill(&text));
}

/// The arguments of the host compiler's last call, as a pattern of the shell.
const HOST_COMPILE: &str = "*cudafe1.cpp*";

const LINE: &str = "-ccbin {work}/cc.sh -c case.cu -o out.o -arch=sm_90";

#[test]
fn daemons_of_a_compiler_wrapper_live_on() {
    let space = space("daemon");
    wrapper(&space, HOST_COMPILE, "");
    let outcome = space.run(&crate::space::Program::Launcher, &space.words(LINE));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    let (daemon, background) = (
        Daemon::find(&space, "daemon"),
        Daemon::find(&space, "background"),
    );
    assert_eq!(space.stats().count("built"), 1, "{:?}", space.stats());
    std::thread::sleep(Duration::from_millis(200));
    assert!(daemon.lives(), "the daemon died");
    assert!(background.lives(), "what ran in the background died");
    // The daemon holds nothing that the next call needs.
    space.clear_cache();
    let outcome = space.run(&crate::space::Program::Launcher, &space.words(LINE));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
}

/// Kills only warpcc, while its host compiler runs with arguments that match `when`.
fn killed(space: &TestSpace, when: &str) {
    wrapper(space, when, "sleep 20");
    let words = space.words(LINE);
    let mut child = space
        .command(&crate::space::Program::Launcher, &words)
        .spawn()
        .expect("starting warpcc");
    let daemon = Daemon::find(space, "daemon");
    let _background = Daemon::find(space, "background");
    child.kill().expect("killing warpcc");
    child.wait().expect("waiting for warpcc");
    // On a busy machine a killed process may wait for a processor. By itself the wrapper ends much later.
    let left = wait_for_quiet(space, Duration::from_secs(5));
    assert!(left.is_empty(), "still running: {left:?}");
    assert!(
        daemon.lives(),
        "a daemon in a session of its own is not ours"
    );
}

#[test]
fn tools_end_with_a_killed_warpcc() {
    killed(&space("orphans"), HOST_COMPILE);
}

#[test]
fn the_dry_run_ends_with_a_killed_warpcc() {
    // nvcc starts its host compiler already in the dry run.
    killed(&space("orphans-dry"), "*");
}

#[test]
fn tools_end_with_a_killed_warpcc_that_does_not_watch_them() {
    let mut space = space("orphans-unwatched");
    // Nothing is stored, so there is nothing to watch for.
    space.set_env("WARPCC_READONLY", "1");
    killed(&space, HOST_COMPILE);
}

#[test]
fn killed_between_tools_nothing_runs_either() {
    let space = space("orphans-often");
    for delay in [40, 90, 170, 260, 410] {
        kill_warpcc_after(&space, delay);
        space.clear_cache();
    }
}
