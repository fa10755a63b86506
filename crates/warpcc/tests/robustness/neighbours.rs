//! Other processes and users: stopped, killed, or first to make what we need.

use crate::kills::wait_for_quiet;
use crate::space::{Program, TestSpace, finish};
use crate::{LONG, TWO};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The lock of the one call that runs now.
fn lock_of(space: &TestSpace) -> Option<PathBuf> {
    let roots = fs::read_dir(space.tmp()).ok()?.flatten();
    let mut files =
        roots.flat_map(|root| fs::read_dir(root.path()).into_iter().flatten().flatten());
    let lock = files.find(|file| file.path().extension().is_some_and(|e| e == "lock"))?;
    Some(lock.path())
}

/// Starts `line`, and stops it as soon as it has its private folder.
fn stopped(space: &TestSpace, line: &str) -> Child {
    let child = space
        .command(&Program::Launcher, &space.words(line))
        .spawn()
        .expect("starting warpcc");
    let end = Instant::now() + Duration::from_secs(30);
    while lock_of(space).is_none_or(|lock| fs::read(lock).is_ok_and(|text| text.is_empty())) {
        assert!(Instant::now() < end, "no private folder");
        std::thread::sleep(Duration::from_millis(1));
    }
    kill_process(Pid::from_child(&child), Signal::STOP).expect("stopping it");
    child
}

fn go_on(mut child: Child) {
    kill_process(Pid::from_child(&child), Signal::CONT).expect("letting it go on");
    assert!(child.wait().expect("waiting for warpcc").success());
}

#[test]
fn a_stopped_call_holds_no_other_up() {
    let space = crate::space("stopped-holder");
    let args = space.words(TWO);
    let reference = space.run(&space.reference(), &args);
    assert_eq!(reference.code, 0, "{}", reference.stderr_text());
    let wanted = space.read("out.o");
    space.remove("out.o");
    let first = stopped(&space, TWO);
    let outcome = finish(space.command(&Program::Launcher, &args));
    assert_eq!((outcome.code, outcome.stderr_text().as_str()), (0, ""));
    assert!(space.read("out.o") == wanted, "not nvcc's object");
    let stats = space.stats();
    assert_eq!(stats.count("built"), 1, "{stats:?}");
    go_on(first);
    assert!(space.read("out.o") == wanted, "not nvcc's object");
    space.demand_no_leftovers("both");
}

#[test]
fn nvcc_runs_if_the_folders_name_counts() {
    let space = crate::space("stopped-holder-debug");
    let line = format!("{TWO} -g");
    let args = space.words(&line);
    let first = stopped(&space, &line);
    let outcome = finish(space.command(&Program::Launcher, &args));
    assert_eq!((outcome.code, outcome.stderr_text().as_str()), (0, ""));
    let stats = space.stats();
    let reason = stats.reasons.get("the private folder is in use");
    assert_eq!(reason, Some(&1), "{stats:?}");
    go_on(first);
    space.demand_no_leftovers("both");
    space.remove("out.o");
    space.agree_as(
        &Program::Launcher,
        &line,
        crate::space::Exactness::ButKeepFolder,
    );
}

#[test]
fn a_daemon_of_a_killed_call_holds_no_other_up() {
    let space = crate::space("daemon-holder");
    let text = "#!/bin/sh\ncase \"$*\" in *cudafe1.cpp*)\n  if [ ! -e {beside}/pid ]; then\n  \
                setsid sleep 1000 </dev/null >/dev/null 2>&1 &\n  echo $! > {beside}/pid\n  sleep 20\n  fi;;\nesac\n\
                exec g++ \"$@\"\n";
    space.script("cc.sh", &space.fill(text));
    let line = format!("-ccbin {{work}}/cc.sh {TWO}");
    let mut first = space
        .command(&Program::Launcher, &space.words(&line))
        .spawn()
        .expect("starting warpcc");
    let end = Instant::now() + Duration::from_secs(60);
    let daemon = loop {
        let text = fs::read_to_string(space.beside("pid")).unwrap_or_default();
        if let Some(pid) = text.strip_suffix('\n') {
            break Pid::from_raw(pid.parse().expect("a number")).expect("a number");
        }
        assert!(Instant::now() < end, "the compiler was not started");
        std::thread::sleep(Duration::from_millis(5));
    };
    // It has a session of its own only when it is what it is to be.
    while !crate::orphans::sleeps(daemon) {
        assert!(Instant::now() < end, "the daemon was not started");
        std::thread::sleep(Duration::from_millis(5));
    }
    first.kill().expect("killing it");
    first.wait().expect("waiting for it");
    let build = space.agree(&line);
    assert_eq!(build.stats.count("built"), 1, "{:?}", build.stats);
    kill_process(daemon, Signal::KILL).expect("the daemon died");
}

#[test]
fn many_at_once_of_which_some_are_stopped() {
    let space = TestSpace::new("stopped-crowd");
    let source = "__global__ void k(int *x) { *x = 1; }\nint f() { return 1; }\n";
    space.write("s.cu", source);
    let line = |n: usize| format!("-c s.cu -o o{n}.o -arch=sm_90 -DN={}", n % 3);
    let wanted: Vec<_> = (0..3)
        .map(|n| {
            let outcome = space.run(&space.reference(), &space.words(&line(n)));
            assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
            space.read(&format!("o{n}.o"))
        })
        .collect();
    let children: Vec<Child> = (0..64)
        .map(|n| {
            let mut command = space.command(&Program::Launcher, &space.words(&line(n)));
            command.stderr(Stdio::null());
            command.spawn().expect("starting warpcc")
        })
        .collect();
    for round in 0..4 {
        std::thread::sleep(Duration::from_millis(60));
        let some = children.iter().skip(round).step_by(8);
        // Those that have ended are still there to be waited for.
        some.for_each(|child| _ = kill_process(Pid::from_child(child), Signal::STOP));
    }
    let mut stopped = Vec::new();
    let end = Instant::now() + Duration::from_secs(120);
    for (n, mut child) in children.into_iter().enumerate() {
        if n % 8 < 4 {
            stopped.push((n, child));
            continue;
        }
        while child.try_wait().expect("waiting").is_none() {
            assert!(Instant::now() < end, "call {n} waits for a stopped one");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    for (_, child) in &stopped {
        _ = kill_process(Pid::from_child(child), Signal::CONT);
    }
    for (n, mut child) in stopped {
        assert!(child.wait().expect("waiting").success(), "call {n}");
    }
    for (n, object) in (0..64).map(|n| (n, space.read(&format!("o{n}.o")))) {
        let same = object == wanted[n % 3];
        // A call that was passed by may have been bypassed, whose objects differ by a name.
        assert!(
            same || object.len().abs_diff(wanted[n % 3].len()) < 64,
            "o{n}.o"
        );
    }
    let left = wait_for_quiet(&space, Duration::from_secs(5));
    assert!(left.is_empty(), "still running: {left:?}");
    space.demand_no_leftovers("64 at once");
}

/// Somebody else on this machine runs a script. `None` where we may not become others.
pub fn somebody_else(script: &str) -> Option<()> {
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "sh",
        "-c",
        script,
    ]);
    let status = command.stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success()).then_some(())
}

/// Lets everybody make something in the folder for temporary files.
pub fn open_up(space: &TestSpace) {
    fs::set_permissions(space.tmp(), fs::Permissions::from_mode(0o1777)).expect("chmod");
}

#[test]
fn another_user_makes_the_private_folder_first() {
    let space = crate::space("foreign-scratch");
    open_up(&space);
    let user = rustix::process::geteuid().as_raw();
    let usual = space.tmp().join(format!("warpcc-{user}-builds"));
    if somebody_else(&format!("mkdir -m 777 {}", usual.display())).is_none() {
        return crate::skipped("nobody else can be become here");
    }
    let args = space.words(TWO);
    let reference = space.run(&space.reference(), &args);
    assert_eq!(reference.code, 0, "{}", reference.stderr_text());
    let wanted = space.read("out.o");
    space.remove("out.o");
    let outcome = finish(space.command(&Program::Launcher, &args));
    let said = outcome.stderr_text();
    assert_eq!(outcome.code, 0, "{said}");
    assert!(
        said.lines().count() == 1 && said.contains("another folder is used (set TMPDIR"),
        "{said}"
    );
    assert!(space.read("out.o") == wanted, "not nvcc's object");
    assert_eq!(space.stats().count("built"), 1, "{:?}", space.stats());
    let debug = finish(space.command(&Program::Launcher, &space.words(&format!("{TWO} -g"))));
    assert_eq!(debug.code, 0, "{}", debug.stderr_text());
    let stats = space.stats();
    assert_eq!(
        stats.reasons.get("no private folder"),
        Some(&1),
        "{stats:?}"
    );
    let inside = fs::read_dir(&usual).expect("list").count();
    assert_eq!(
        inside, 0,
        "something was put into a folder of somebody else's"
    );
    let left: Vec<_> = fs::read_dir(space.tmp()).expect("list").flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn killed_at_any_point_while_others_wait() {
    let space = crate::space("killed-holder");
    let wanted = space.agree(LONG);
    for delay in [20, 120, 350] {
        space.clear_cache();
        space.remove("out.o");
        let mut first = crate::kills::start(&space);
        std::thread::sleep(Duration::from_millis(delay));
        let second = space
            .command(&Program::Launcher, &space.words(LONG))
            .spawn()
            .expect("starting warpcc");
        std::thread::sleep(Duration::from_millis(80));
        let _ = first.kill();
        first.wait().expect("waiting for warpcc");
        let output = second.wait_with_output().expect("waiting for warpcc");
        assert!(output.status.success(), "after {delay} ms");
        space.demand_no_leftovers("the second");
        space.again(LONG, &wanted).demand_direct_hit();
    }
}
