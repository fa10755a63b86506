//! A tool that hangs is named, ended with all that it started, and plain nvcc does what it was to do.

use crate::kills::wait_for_quiet;
use crate::space::{Program, TestSpace};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::time::{Duration, Instant};

const LINE: &str = "-ccbin {work}/cc.sh -c case.cu -o out.o -arch=sm_90";

/// A host compiler that does `odd` in place of compiling, where the watch library is loaded into it and its words match.
fn odd_compiler(space: &TestSpace, when: &str, odd: &str) {
    let text =
        format!("#!/bin/sh\ncase \"$LD_PRELOAD:$*\" in {when}) {odd};; esac\nexec g++ \"$@\"\n");
    space.script("cc.sh", &space.fill(&text));
}

/// Whenever the library is there; the compiler's last call.
const WATCHED: &str = "*watch-*:*";
const HOST_COMPILE: &str = "*watch-*:*cudafe1.cpp*";

fn hangs(name: &str, when: &str, odd: &str) {
    let mut space = crate::space(name);
    space.set_env("WARPCC_STALL_TIMEOUT", "2");
    odd_compiler(&space, when, odd);
    let args = space.words(LINE);
    let reference = space.run(&space.reference(), &args);
    assert_eq!(reference.code, 0, "{}", reference.stderr_text());
    let wanted = space.read("out.o");
    space.remove("out.o");
    let (outcome, _, stats) = space.observe(&Program::Launcher, &args);
    let said = outcome.stderr_text();
    assert_eq!(outcome.code, 0, "{said}");
    assert!(
        said.lines().count() == 1
            && said.starts_with("warpcc: warning: ")
            && said.contains("hung and was killed: for 2 s")
            && said.ends_with("; nvcc runs instead\n"),
        "{said}"
    );
    assert_eq!(stats.reasons.get("a step hung"), Some(&1), "{stats:?}");
    let left = wait_for_quiet(&space, Duration::from_secs(1));
    assert!(left.is_empty(), "still running: {left:?}");
    same_code(&space, &wanted);
}

/// Two runs of plain nvcc differ in the name of a temporary file and in nothing else.
fn same_code(space: &TestSpace, wanted: &[u8]) {
    let folder = space.beside("kept");
    crate::space::make_dir(&folder);
    let (ours, theirs) = (folder.join("ours.o"), folder.join("theirs.o"));
    fs::write(&theirs, wanted).expect("write");
    fs::write(&ours, space.read("out.o")).expect("write");
    let sections = |file: &std::path::Path| {
        let mut dump = std::process::Command::new("objdump");
        dump.args(["-s", "-j", ".text", "-j", ".nv_fatbin", "-j", ".rodata"]);
        let out = crate::space::finish({
            dump.arg(file);
            dump
        });
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let lines = text.lines().filter(|line| !line.contains("file format"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(sections(&ours).len() > 10 && sections(&ours) == sections(&theirs));
}

#[test]
fn a_compiler_that_sleeps_for_ever() {
    hangs("stall-host", HOST_COMPILE, "exec sleep 1000");
}

#[test]
fn with_processes_in_groups_and_sessions_of_their_own() {
    hangs(
        "stall-groups",
        HOST_COMPILE,
        "timeout 1000 sleep 1000 & setsid sleep 1000 & wait",
    );
}

#[test]
fn with_closed_streams() {
    hangs("stall-closed", HOST_COMPILE, "exec >&- 2>&-; sleep 1000");
}

#[test]
fn in_the_dry_run() {
    // nvcc asks its host compiler already then.
    hangs("stall-dry", WATCHED, "sleep 1000");
}

#[test]
fn a_working_or_printing_step_does_not_hang() {
    let mut space = crate::space("stall-not");
    space.set_env("WARPCC_STALL_TIMEOUT", "1");
    // Longer than the window each: a word now and then, and then work.
    let odd = "for i in 1 2 3 4; do sleep 0.6; echo $i >&2; done; \
               i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done";
    odd_compiler(&space, HOST_COMPILE, odd);
    let (outcome, _, stats) = space.observe(&Program::Launcher, &space.words(LINE));
    assert_eq!(outcome.stderr_text(), "1\n2\n3\n4\n");
    assert_eq!(stats.count("built"), 1, "{stats:?}");
}

/// The process whose number the odd compiler wrote.
fn read_pid(space: &TestSpace) -> Pid {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let text = fs::read_to_string(space.beside("pid")).unwrap_or_default();
        if let Some(pid) = text.strip_suffix('\n') {
            return Pid::from_raw(pid.parse().expect("a number")).expect("a number");
        }
        assert!(Instant::now() < end, "the compiler was not started");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_stopped_step_does_not_hang() {
    let mut space = crate::space("stall-stopped");
    space.set_env("WARPCC_STALL_TIMEOUT", "1");
    odd_compiler(&space, HOST_COMPILE, "echo $$ > {beside}/pid; sleep 0.5");
    let child = space
        .command(&Program::Launcher, &space.words(LINE))
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("starting warpcc");
    let compiler = read_pid(&space);
    kill_process(compiler, Signal::STOP).expect("stopping it");
    std::thread::sleep(Duration::from_secs(3));
    kill_process(compiler, Signal::CONT).expect("letting it go on");
    let output = child.wait_with_output().expect("waiting for warpcc");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(space.stats().count("built"), 1, "{:?}", space.stats());
}

#[test]
fn a_daemon_that_keeps_the_streams_open_holds_nobody_up() {
    let space = crate::space("stall-daemon");
    let daemon = "echo said >&2; env -i setsid sleep 1000 & echo $! > {beside}/pid";
    odd_compiler(&space, HOST_COMPILE, daemon);
    let began = Instant::now();
    let (outcome, _, stats) = space.observe(&Program::Launcher, &space.words(LINE));
    let _ = kill_process(read_pid(&space), Signal::KILL);
    assert_eq!(outcome.stderr_text(), "said\n");
    assert_eq!(stats.count("built"), 1, "{stats:?}");
    assert!(began.elapsed() < Duration::from_secs(300));
}

#[test]
fn the_doctor_names_the_tool_that_hangs() {
    let mut space = crate::space("stall-doctor");
    space.script(
        "bin/gcc",
        "#!/bin/sh\ncase \"$LD_PRELOAD:$*\" in *watch-*:--version) exec sleep 1000;; esac\nexec /usr/bin/gcc \"$@\"\n",
    );
    let toolkit = space.toolkit.top().join("bin");
    let path = format!("{{work}}/bin:{}:/usr/bin:/bin", toolkit.display());
    space.set_env("PATH", &path);
    let doctor = space.warpcc_with(&["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert_eq!(doctor.code, 2, "{said}");
    let hangs: Vec<_> = said.lines().filter(|line| line.contains("hangs")).collect();
    assert!(
        hangs.len() == 1 && hangs[0].contains("bin/gcc hangs with the watch library in it"),
        "{said}"
    );
    assert!(said.contains("cicc, ptxas, fatbinary"), "{said}");
    let left = wait_for_quiet(&space, Duration::from_secs(1));
    assert!(left.is_empty(), "still running: {left:?}");
    space.demand_no_leftovers("doctor");
}
