//! Tests failures of warpcc-remote, the program for the network: the build passes with nvcc's bytes, the user is told once,
//! and no process outlives the call.

use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::faulty::{Faulty, Mode};
use crate::space::{Build, Program, TestSpace, make_dir};
use crate::{ONE, Project};

/// The time limit for events that take milliseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The path of the real warpcc-remote, beside the real warpcc.
fn real() -> PathBuf {
    TestSpace::warpcc().with_file_name("warpcc-remote")
}

/// A project whose call would hit through a good server, and a warpcc in a folder of its own.
struct Alone {
    project: Project,
    build: Build,
    server: Faulty,
    folder: PathBuf,
}

impl Alone {
    fn new(name: &str) -> Self {
        let server = Faulty::start();
        let mut project = Project::new(name);
        project.through(&format!("http://127.0.0.1:{}", server.port));
        project.on("first");
        let build = project.first(ONE);
        project.on("second");
        let folder = project.space.beside("bin");
        make_dir(&folder);
        fs::copy(TestSpace::warpcc(), folder.join("warpcc")).expect("copied");
        Self {
            project,
            build,
            server,
            folder,
        }
    }

    /// Replaces the program beside this warpcc by a script.
    fn beside(&self, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let file = self.folder.join("warpcc-remote");
        let text = format!(
            "#!/bin/sh\necho $$ > {}\n{script}\n",
            self.pid_file().display()
        );
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a program");
    }

    fn pid_file(&self) -> PathBuf {
        self.folder.join("pid")
    }

    /// The process of that script.
    fn process(&self) -> Pid {
        let began = Instant::now();
        loop {
            let text = fs::read_to_string(self.pid_file()).unwrap_or_default();
            if let Some(pid) = text.trim().parse().ok().and_then(Pid::from_raw) {
                return pid;
            }
            assert!(began.elapsed() < PATIENCE, "nothing was started");
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn launcher(&self) -> Program {
        let nvcc = self.project.space.toolkit.nvcc.display().to_string();
        Program::Other(self.folder.join("warpcc"), vec![nvcc])
    }

    /// Asserts that the build is right and warns about `about`, and that the next build is silent and starts no program.
    #[track_caller]
    fn survives(&self, about: &str) {
        let call = self.project.like_as(&self.launcher(), ONE, &self.build);
        call.demand_one_warning(about);
        drop(fs::remove_file(self.pid_file()));
        let space = &self.project.space;
        let other = space.run(&self.launcher(), &space.words(&format!("{ONE} -DOTHER")));
        assert_eq!((other.code, other.stderr_text().as_str()), (0, ""));
        assert!(!self.pid_file().exists(), "it was started again");
    }

    fn start(&self) -> Child {
        let space = &self.project.space;
        self.build.outputs.delete_from(&space.work());
        let mut command = space.command(&self.launcher(), &space.words(ONE));
        command.stderr(std::process::Stdio::piped());
        command.spawn().expect("started")
    }
}

/// Fails unless the process ends.
#[track_caller]
fn demand_end(process: Pid) {
    let began = Instant::now();
    let state = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
        let stat = stat.unwrap_or_default();
        // Behind the name in parentheses. A dead one may wait for init.
        let state = stat
            .rsplit_once(") ")
            .map(|(_, rest)| rest.starts_with('Z'));
        state.unwrap_or(true)
    };
    while !state() {
        assert!(began.elapsed() < PATIENCE, "it is still there");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn without_it_a_call_misses_and_doctor_says_so() {
    let mut alone = Alone::new("program-missing");
    alone.survives("warpcc-remote is missing; install it next to warpcc");
    let own = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let program = Program::Other(alone.folder.join("warpcc"), Vec::new());
        alone.project.space.run(&program, &words)
    };
    let found = own(&["doctor"]);
    let text = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(text.contains("warpcc-remote is missing"), "{text}");
    for words in [&["remote", "ping"][..], &["remote", "upload"]] {
        let said = own(words);
        let text = said.text();
        assert!(said.code != 0 && text.contains("is missing"), "{text}");
    }
    assert_eq!(own(&["remote", "stat"]).code, 0);
    // With the right program next to it, a later question is answered as before.
    fs::copy(real(), alone.folder.join("warpcc-remote")).expect("copied");
    assert_eq!(own(&["remote", "ping"]).code, 0);
    alone.project.on("third");
    let call = alone.project.like_as(&alone.launcher(), ONE, &alone.build);
    call.demand_no_compiler();
}

#[test]
fn one_that_ends_or_is_none_costs_a_warning() {
    for (name, script, about) in [
        ("ends", "exit 0", "exited unexpectedly"),
        // A frame with a text: what another build would say of itself.
        (
            "other",
            "printf '\\004\\000\\000\\000\\003old' >&0; cat > /dev/null",
            "is of another build",
        ),
        (
            "garbage",
            "printf 'Usage: warpcc-remote' >&0; cat > /dev/null",
            "invalid message",
        ),
        ("flood", "exec cat /dev/zero >&0", "invalid message"),
    ] {
        let alone = Alone::new(&format!("program-{name}"));
        alone.beside(script);
        alone.survives(about);
    }
}

#[test]
fn one_that_hangs_is_given_up_and_killed() {
    let alone = Alone::new("program-hangs");
    alone.beside("exec sleep 100000");
    let started = alone.start();
    let process = alone.process();
    let said = started.wait_with_output().expect("ended");
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.success(), "{text}");
    assert!(
        text.contains("does not answer") && text.lines().count() == 1,
        "{text}"
    );
    demand_end(process);
}

#[test]
fn one_that_is_killed_costs_a_warning() {
    let alone = Alone::new("program-killed");
    alone.beside(&format!("exec {}", real().display()));
    alone.server.set(Mode::BlackHole);
    let started = alone.start();
    let process = alone.process();
    wait_for_a_request(&alone.server);
    kill_process(process, Signal::KILL).expect("killed");
    let said = started.wait_with_output().expect("ended");
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.success(), "{text}");
    let warned = text.starts_with("warpcc: warning: shared caches are not used for a while");
    assert!(warned && text.lines().count() == 1, "{text}");
}

#[test]
fn it_ends_with_who_started_it() {
    let alone = Alone::new("program-orphan");
    alone.beside(&format!("exec {}", real().display()));
    alone.server.set(Mode::BlackHole);
    let mut started = alone.start();
    let process = alone.process();
    wait_for_a_request(&alone.server);
    started.kill().expect("killed");
    started.wait().expect("ended");
    demand_end(process);
}

fn wait_for_a_request(server: &Faulty) {
    let began = Instant::now();
    while server.requests() == 0 {
        assert!(began.elapsed() < PATIENCE, "nobody asks");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_cluster_without_it_costs_a_warning() {
    let mut alone = Alone::new("program-cluster");
    alone.project.through("none");
    let space = &mut alone.project.space;
    space.set_env("WARPCC_EXECUTOR", "grpc://127.0.0.1:1");
    space.set_env("WARPCC_EXECUTOR_ALWAYS", "1");
    alone.survives("warpcc-remote is missing");
}

#[test]
fn a_hit_on_disk_starts_nothing() {
    let mut alone = Alone::new("program-hit");
    alone.beside("exit 1");
    alone.project.on("first");
    let call = alone.project.like_as(&alone.launcher(), ONE, &alone.build);
    call.demand_no_compiler();
    assert!(!alone.pid_file().exists(), "it was started");
}

/// What is switched off for a test of the guards is off in both programs: a header that changed is no other there.
#[test]
fn a_guard_that_a_test_switches_off_is_off_there_too() {
    let mut project = Project::new("program-guards");
    let far = project.space.beside("far");
    make_dir(&far);
    let source = "#include \"value.h\"\n__global__ void k(int *x) { *x = VALUE; }\n";
    project.space.write("case.cu", source);
    project.space.write("value.h", "#define VALUE 1\n");
    project.through(&format!("file:{}", far.display()));
    project.on("first");
    project.first(ONE);
    project.on("second");
    project.space.write("value.h", "#define VALUE 2\n");
    project.space.set_env("WARPCC_TEST_UNSOUND", "second-look");
    project.space.build(ONE);
    let hits = project.space.stats().count("direct_hits");
    assert_eq!(hits, i64::from(cfg!(debug_assertions)));
}
