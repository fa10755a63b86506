//! A command under a hold ends before it changes a file that is not below the folder of the call's own files.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Output;

use warpcc_watch::{Observed, PathText, hold};

use crate::support::Bench;

const SIGKILL: i32 = 9;

/// Runs a shell command that may change only files in `own`, in a process group of its own.
fn run(bench: &Bench, command: &str) -> (Output, Observed) {
    let _ = std::fs::remove_file(bench.path("log"));
    let (name, value) = hold(&[bench.path("own"), bench.path("second")], &["cat"]);
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
        .file("folder/x", "")
        .file("second/x", "");
    for (text, link) in [("../old", "own/out"), ("..", "own/up"), ("own", "inward")] {
        std::os::unix::fs::symlink(text, bench.path(link)).expect("a link");
    }
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
        ("echo new >> own/out", "own/out"),
        ("echo new >> own/up/old", "own/up/old"),
        ("chmod 700 own/out", "own/out"),
        ("rm own/up/old", "own/up/old"),
        ("ln old own/new", "old"),
        ("exec 3< old; echo new > /dev/fd/3", "/dev/fd/3"),
        // These programs would not know the rule.
        ("env -i /bin/sh -c 'echo new > old'", "/bin/sh"),
        ("unset LD_PRELOAD; /bin/sh -c 'echo new > old'", "/bin/sh"),
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
        "echo new > inward/new; cd inward; mv new newer; rm newer; mkdir folder; rmdir folder",
        "rm own/out; mv own/up own/down; echo new > own/../inward/.//new; echo new > own/none/new 2> /dev/null",
        "exec 3> own/new; echo new > /dev/fd/3; chmod 600 own/new; cp -p own/new own/newer",
        "mkdir second/folder; echo new > second/new; mv own/old second/old; rmdir second/folder",
        "exec 3>&2; echo text > /dev/fd/3; LD_PRELOAD=libc.so.6:$LD_PRELOAD /bin/true",
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

/// Changes that no command of the shell makes. The first argument says which.
const OTHER_CHANGES: &str = r#"
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
int main(int count, char **words) {
    int old = open("old", O_RDONLY);
    struct sockaddr_un name = {AF_UNIX, "new"};
    posix_spawn_file_actions_t actions;
    char *arguments[] = {"true", NULL}, *nothing[] = {NULL};
    pid_t child;
    posix_spawn_file_actions_init(&actions);
    switch (atoi(words[1])) {
    case 0: fchmod(old, 0700); break;
    case 1: futimens(old, NULL); break;
    case 2: utimensat(old, NULL, NULL, 0); break;
    case 3: fsetxattr(old, "user.new", "x", 1, 0); break;
    case 4: setxattr("old", "user.new", "x", 1, 0); break;
    case 5: bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&name, sizeof name); break;
    case 6: posix_spawn_file_actions_addopen(&actions, 1, "old", O_WRONLY | O_TRUNC, 0); break;
    case 7: posix_spawn(&child, "/bin/true", NULL, NULL, arguments, nothing); break;
    // These change nothing of others.
    case 8: fchmod(1, 0700); break;
    case 9: fchmod(open("own/old", O_RDONLY), 0700); break;
    case 10: strcpy(name.sun_path, "own/new"); bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&name, sizeof name); break;
    case 11: strcpy(name.sun_path + 1, "none"); name.sun_path[0] = 0; bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&name, sizeof name); break;
    }
    return 0;
}
"#;

#[test]
fn other_changes_end_a_program_too() {
    let files = ["old", "old", "old", "old", "old", "new", "old", "/bin/true"];
    for number in 0..12 {
        let bench = project();
        bench.file("own/x.c", OTHER_CHANGES);
        assert!(bench.plain("gcc own/x.c -o own/x").status.success());
        let before = tree(&bench);
        let (output, seen) = run(&bench, &format!("own/x {number}"));
        let held = files
            .get(number)
            .map(|file| PathText::from(&*bench.path(file)));
        assert_eq!(seen.held, held, "{number}: {output:?}");
        if held.is_some() {
            assert_eq!(tree(&bench), before, "{number} changed something");
        }
    }
}

/// It may change a file when nobody reads the log any more.
#[test]
fn a_program_that_goes_on_is_noticed() {
    let bench = project();
    assert!(bench.plain("mkfifo own/fifo").status.success());
    let (_, seen) = run(
        &bench,
        "(read line < own/fifo) < /dev/null > /dev/null 2>&1 &",
    );
    std::fs::write(bench.path("own/fifo"), "go on\n").expect("it reads");
    assert!(seen.unfinished.is_some());
    // The other one may still write to its log.
    let bench = project();
    let (_, seen) = run(&bench, "(echo ended) & wait");
    assert_eq!(seen.unfinished, None);
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
