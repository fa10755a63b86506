//! A program announces a file that is complete, but not closed, as cicc does with its stub.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use crate::support::Bench;

/// Writes two files as cicc does, and ends only when its standard input does.
const WRITER: &str = "#include <stdio.h>\n#include <stdlib.h>\n\
    int main(int count, char **names) {\n\
    FILE *c = fopen(names[1], \"w\"), *stub = fopen(names[2], \"w\");\n\
    fputs(\"the stub\", stub);\nfputs(\"code\", c);\n\
    fclose(c);\n\
    fputs(\", to its end\", stub);\ngetenv(\"HOME\");\n\
    while (getchar() != EOF) { }\n\
    return 0;\n}\n";

/// A bench with that program, and a pipe.
fn bench() -> (Bench, PathBuf) {
    let bench = Bench::new();
    bench.file("writer.c", WRITER);
    assert!(bench.plain("gcc writer.c -o writer").status.success());
    assert!(bench.plain("mkfifo pipe").status.success());
    let pipe = bench.path("pipe");
    (bench, pipe)
}

/// Runs the program. Returns what the announced file had in it when it was announced, if it was.
fn announced(words: &str, names: [&str; 2]) -> Option<String> {
    let (bench, pipe) = bench();
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let opened = rustix::fs::open(&pipe, flags, Mode::empty()).expect("the pipe");
    let [file, last] = names.map(PathBuf::from);
    let (name, value) = warpcc_watch::announce(&pipe, &file, &last).expect("names in one line");
    let mut child = bench
        .watched(words)
        .env(name, value)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("the program");
    let (send, receive) = mpsc::channel();
    let mut reader = File::from(opened.try_clone().expect("the pipe"));
    std::thread::spawn(move || send.send(reader.read(&mut [0]).expect("a byte")));
    let is_expected = names == ["stub", "code.c"];
    let heard = if is_expected {
        receive.recv_timeout(Duration::from_secs(60)).ok()
    } else {
        // The program ends without an announcement: its end is what the test waits for.
        drop(child.stdin.take());
        assert!(child.wait().expect("its end").success());
        receive.try_recv().ok()
    };
    let text = fs::read_to_string(bench.path("stub")).expect("the stub");
    drop(child.stdin.take());
    assert!(child.wait().expect("its end").success());
    assert_eq!(
        fs::read_to_string(bench.path("stub")).expect("the stub"),
        "the stub, to its end"
    );
    assert_eq!(
        fs::read_to_string(bench.path("code.c")).expect("the code"),
        "code"
    );
    let observed = bench.log_of("./writer");
    assert_eq!(observed.untracked, None);
    // Ends the thread, if it still reads.
    _ = rustix::io::write(&opened, b".");
    heard.map(|_| text)
}

#[test]
fn a_file_is_announced_whole_while_its_program_goes_on() {
    let text = announced("./writer code.c stub", ["stub", "code.c"]);
    assert_eq!(text.as_deref(), Some("the stub, to its end"));
}

#[test]
fn other_files_are_not_announced() {
    for names in [
        ["stub", "other.c"],
        ["other", "code.c"],
        ["./stub", "code.c"],
    ] {
        assert_eq!(announced("./writer code.c stub", names), None, "{names:?}");
    }
}

/// A pipe that nobody reads, or none at all, does not matter to the program.
#[test]
fn nobody_need_hear_it() {
    let (bench, pipe) = bench();
    for pipe in [pipe, bench.path("none")] {
        let [file, last] = ["stub", "code.c"].map(PathBuf::from);
        let (name, value) = warpcc_watch::announce(&pipe, &file, &last).unwrap();
        let mut child = bench.watched("./writer code.c stub");
        child.env(name, value).stdin(std::process::Stdio::null());
        assert!(child.status().unwrap().success());
        assert_eq!(
            fs::read_to_string(bench.path("stub")).unwrap(),
            "the stub, to its end"
        );
    }
}

/// The stream has dropped its text by then: room that there is later does not bring it back.
#[test]
fn an_announcement_without_room_is_logged() {
    for (stub, lacks_room) in [("/dev/full", true), ("stub", false)] {
        let (bench, pipe) = bench();
        let [file, last] = [stub, "code.c"].map(PathBuf::from);
        let (name, value) = warpcc_watch::announce(&pipe, &file, &last).unwrap();
        let mut child = bench.watched(&format!("./writer code.c {stub}"));
        child.env(name, value).stdin(std::process::Stdio::null());
        assert!(child.status().unwrap().success());
        let observed = bench.log_of("./writer");
        assert_eq!(observed.no_room.is_some(), lacks_room, "{stub}");
    }
}
