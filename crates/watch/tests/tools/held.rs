//! A command under a hold ends before it changes a file that is not below the folder of the call's own files.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Output;

use warpcc_watch::{Observed, PathText, hold};

use crate::support::Bench;

const SIGKILL: i32 = 9;

/// Runs a shell command that may change only files in `own`, in a process group of its own.
fn run(bench: &Bench, command: &str) -> (Output, Observed) {
    let _ = std::fs::remove_file(bench.path("log"));
    let (name, value) = hold(&bench.path("own"), &["cat"]);
    let output = bench
        .watched("/bin/bash -c")
        .arg(format!("{command}\necho went on"))
        .env(name, value)
        .process_group(0)
        .output()
        .expect("bash runs");
    let observed = bench.log_of("/bin/bash");
    (output, observed)
}

fn project() -> Bench {
    let bench = Bench::new();
    bench
        .file("old", "old text\n")
        .file("own/old", "own text\n")
        .file("folder/x", "");
    bench
}

#[test]
fn the_first_change_of_another_file_ends_the_command() {
    for (command, file) in [
        ("echo new > old", "old"),
        ("echo new >> old", "old"),
        ("echo new > new", "new"),
        ("cd folder; echo new > ../old", "folder/../old"),
        ("echo new > own/../old", "own/../old"),
        ("exec 3<> old", "old"),
        ("cp own/old new", "new"),
        ("dd if=own/old of=old conv=notrunc status=none", "old"),
        ("mkdir new", "new"),
        ("mkfifo new", "new"),
        ("ln own/old new", "new"),
        ("ln -s own/old new", "new"),
        ("mv own/old new", "new"),
        ("mv old own/new", "old"),
        ("rm old", "old"),
        ("unlink old", "old"),
        ("rmdir folder", "folder"),
        ("chmod 700 old", "old"),
        ("touch -d 2020-01-01 old", "old"),
        ("truncate -s 1 old", "old"),
        ("(echo new > old) & wait", "old"),
    ] {
        let bench = project();
        let before = tree(&bench);
        let (output, seen) = run(&bench, command);
        assert_eq!(
            output.status.signal(),
            Some(SIGKILL),
            "{command}: {output:?}"
        );
        assert_eq!(output.stdout, b"", "{command}");
        assert_eq!(
            seen.held,
            Some(PathText::from(&*bench.path(file))),
            "{command}"
        );
        assert_eq!(tree(&bench), before, "{command} changed something");
    }
}

#[test]
fn own_files_messages_and_looks_are_free() {
    for command in [
        "echo new > own/new; echo more >> own/old; rm own/old; mkdir own/folder; mv own/new own/folder",
        "cd own; echo new > new; mkdir folder; touch -d 2020-01-01 old",
        "echo text > /dev/null; echo text > /dev/stderr; echo text >> /dev/fd/2",
        "cat < old > /dev/null; ls -l folder > /dev/null; [ -w old ]",
        // Nothing is there to change, or to make.
        "rm -f gone; rmdir gone 2> /dev/null; mv gone new 2> /dev/null; mkdir folder 2> /dev/null",
    ] {
        let bench = project();
        let (output, seen) = run(&bench, command);
        assert_eq!(output.stdout, b"went on\n", "{command}: {output:?}");
        assert_eq!(seen.held, None, "{command}");
    }
}

#[test]
fn a_program_that_is_exempt_may_change_any_file() {
    let bench = project();
    let copy = bench.path("own/tee");
    std::fs::copy("/usr/bin/tee", bench.path("own/cat")).unwrap();
    std::fs::copy("/usr/bin/tee", &copy).unwrap();
    let (output, seen) = run(&bench, "echo new | own/cat old");
    assert_eq!((seen.held, output.status.code()), (None, Some(0)));
    assert_eq!(std::fs::read(bench.path("old")).unwrap(), b"new\n");
    let (_, seen) = run(&bench, "echo newer | own/tee old");
    assert_eq!(seen.held, Some(PathText::from(&*bench.path("old"))));
    assert_eq!(std::fs::read(bench.path("old")).unwrap(), b"new\n");
}

/// Every name with its size, mode, time and number of names.
fn tree(bench: &Bench) -> String {
    let script = "find . -mindepth 1 -path ./log -prune -o -printf '%p %y %s %m %T@ %n\\n' | sort";
    let output = bench
        .command("/bin/sh -c")
        .arg(script)
        .output()
        .expect("a list");
    String::from_utf8(output.stdout).expect("text")
}
