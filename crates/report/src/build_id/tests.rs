//! Which calls belong to one build.

use super::*;

/// The processes above a call, nearest first, each as `session:command line`.
fn chain(lines: &[&str]) -> Vec<Process> {
    let process = |(at, line): (usize, &&str)| {
        let (session, command) = line.split_once(':').expect("session:command");
        let args: Vec<String> = command.split(' ').map(str::to_owned).collect();
        Process {
            pid: 1000 - u32::try_from(at).expect("few"),
            started: 5000,
            session: session.parse().expect("number"),
            name: base(&args[0]).chars().take(15).collect(),
            args,
        }
    };
    lines.iter().enumerate().map(process).collect()
}

fn own() -> Process {
    Process {
        pid: 2000,
        started: 6000,
        session: 7,
        name: "warpcc".into(),
        args: Vec::new(),
    }
}

fn driver(lines: &[&str]) -> Option<String> {
    identify(&own(), &chain(lines), "boot", None).driver
}

#[test]
fn the_outermost_tool_drives() {
    for (lines, expected) in [
        (
            &["7:/bin/sh -c warpcc", "7:/usr/bin/ninja -j16", "7:-bash"][..],
            "ninja -j16",
        ),
        (
            &["7:ninja", "7:cmake --build build", "7:bash"],
            "cmake --build build",
        ),
        (
            &[
                "7:ninja -v",
                "7:python3 setup.py build_ext",
                "7:python3.12 -m pip install .",
                "7:zsh",
            ],
            "python3.12 -m pip install .",
        ),
        (
            &[
                "7:ninja",
                "7:/v/bin/python3 /v/bin/pip install -e .",
                "7:bash",
            ],
            "python3 /v/bin/pip install -e .",
        ),
        (
            &["7:make -f x", "7:make", "7:bash ci.sh", "7:Runner.Worker"],
            "make",
        ),
        (
            &["7:python3 -X dev -m build --wheel", "7:fish"],
            "python3 -X dev -m build --wheel",
        ),
        (&["7:pip3.11 wheel ."], "pip3.11 wheel ."),
        // A program that compiles while it runs is no build tool; the ninja it starts is.
        (&["7:ninja -v", "7:python3 train.py", "7:bash"], "ninja -v"),
    ] {
        assert_eq!(driver(lines).as_deref(), Some(expected), "{lines:?}");
    }
}

#[test]
fn a_shell_with_a_person_and_a_session_are_borders() {
    assert_eq!(driver(&["7:bash", "7:make menu"]), None);
    assert_eq!(driver(&["7:bash -i", "7:make menu"]), None);
    assert_eq!(driver(&["7:zsh -l", "3:make"]), None);
    assert_eq!(driver(&["3:ninja"]), None);
    assert_eq!(
        driver(&["7:bash --norc -ec x", "7:make"]).as_deref(),
        Some("make")
    );
    assert_eq!(
        driver(&["7:sh ./build.sh", "7:make"]).as_deref(),
        Some("make")
    );
}

#[test]
fn one_process_is_one_build() {
    let [a, b] = [&["7:sh -c x", "7:ninja"][..], &["7:ninja"]].map(chain);
    let ninja = |chain: &[Process]| chain.last().cloned().expect("ninja");
    let mut b = b;
    b[0] = ninja(&a);
    let first = identify(&own(), &a, "boot", None);
    assert_eq!(first, identify(&own(), &b, "boot", None));
    assert!(first.id.starts_with("ninja-"), "{}", first.id);
    assert_eq!(first.log, first.id);
    // The same number after a restart, or given again, is another one.
    assert_ne!(first, identify(&own(), &a, "later", None));
    b[0].started += 1;
    assert_ne!(first, identify(&own(), &b, "boot", None));
}

#[test]
fn a_lone_call_is_a_build_in_the_log_of_its_session() {
    let chain = chain(&["7:bash", "3:tmux"]);
    let first = identify(&own(), &chain, "boot", None);
    let mut other = own();
    other.pid += 1;
    let second = identify(&other, &chain, "boot", None);
    assert_ne!(first.id, second.id);
    assert_eq!(first.log, second.log);
    assert!(first.log.starts_with("alone-"));
    assert_eq!(origin(&first.id, None), Some("a call without a build tool"));
}

#[test]
fn a_given_id_wins_and_is_a_safe_file_name() {
    let chain = chain(&["7:ninja"]);
    let given = |id: &str| identify(&own(), &chain, "boot", Some(id));
    assert_eq!(given("nightly-7").id, "nightly-7");
    assert_eq!(given("nightly-7").log, "nightly-7");
    assert_eq!(given("nightly-7").driver.as_deref(), Some("ninja"));
    assert_eq!(origin("nightly-7", Some("ninja")), Some("ninja"));
    assert_eq!(origin("nightly-7", None), None);
    assert!(given("  ").id.starts_with("ninja-"));
    for odd in ["../../etc/x", ".", "a b", "ä", "alone-1", &"x".repeat(500)] {
        let log = given(odd).log;
        assert!(log.starts_with("id-") && log.len() < 80, "{log}");
        assert!(!log.contains('/'));
    }
    assert_ne!(given("a b").log, given("a  b").log);
}
