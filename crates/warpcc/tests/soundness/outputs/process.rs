//! Outputs of calls in an unusual process: a removed directory, a limit on files, a pipe as standard output, folders in memory.

use std::fs::{self, File};
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;

use super::compare::{FREE, compare, work_with};
use crate::space::{Outcome, Program, TestSpace, finish};

#[test]
fn folders_in_memory() {
    let mut space = TestSpace::new("outputs-memory");
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let out = folder.path().join("out");
    let line = format!("-c k.cu -o {}", out.display());
    work_with(&space, FREE);
    let leave = |found: &[u8]| assert_eq!(fs::read(&out).expect("an object"), found);
    let nvcc = finish(space.command(&space.reference(), &space.words(&line)));
    assert_eq!(nvcc.code, 0);
    let object = fs::read(&out).expect("nvcc's object");
    fs::remove_file(&out).expect("remove");
    space.build(&line).demand_no_fallback();
    leave(&object);
    fs::remove_file(&out).expect("remove");
    space.build(&line).demand_direct_hit();
    leave(&object);
    // Over the old file as well, and as a new file.
    let old = File::open(&out).expect("open");
    space.build(&line).demand_direct_hit();
    leave(&object);
    assert_eq!(nlink(&old), 0, "written into, not replaced");

    // The folder of temporary files there, and steps that hit.
    let text = folder.path().to_string_lossy().into_owned();
    fs::remove_file(&out).expect("remove");
    space.set_env("TMPDIR", &text);
    let line = "-c k.cu -o x.o -arch=sm_90";
    space.build(line).demand_no_fallback();
    space
        .build(&format!("{line} -DUNUSED"))
        .demand_no_tool_ran();
    assert_eq!(fs::read_dir(folder.path()).expect("list").count(), 0);
}

fn nlink(file: &File) -> u64 {
    use std::os::unix::fs::MetadataExt;
    file.metadata().expect("stat").nlink()
}

/// Runs a shell's line in the work folder, `$C` being the compiler with this line's arguments.
fn shell(space: &TestSpace, program: &Program, script: &str, line: &str) -> Outcome {
    let compiler = space.command(program, &space.words(line));
    let mut command = Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(script)
        .arg("sh")
        .arg(compiler.get_program())
        .args(compiler.get_args())
        .current_dir(space.work());
    space.dress(&mut command);
    finish(command)
}

#[track_caller]
fn same_in_shell(name: &str, script: &str, line: &str) -> TestSpace {
    let space = TestSpace::new(name);
    // The result is in the cache already; the second round has an empty cache.
    for fill in [true, false] {
        space.clear_cache();
        if fill {
            work_with(&space, FREE);
            space.build(line);
        }
        let run = |program: &Program| (shell(&space, program, script, line), Vec::new());
        compare(&space, line, FREE, &run);
    }
    space
}

#[test]
fn the_working_directory_was_removed() {
    let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$@\"";
    same_in_shell(
        "outputs-gone",
        script,
        "-c {work}/k.cu -o {work}/out -I{work}",
    );
}

#[test]
fn a_limit_on_the_size_of_files() {
    same_in_shell(
        "outputs-limit",
        "ulimit -f 8; exec \"$@\"",
        "-c k.cu -o out",
    );
    // Large enough for the compiler, not for every file of a cache.
    same_in_shell(
        "outputs-limit-large",
        "ulimit -f 20000; exec \"$@\"",
        "-c k.cu -o out",
    );
}

#[test]
fn a_closed_or_full_standard_output_is_no_hang() {
    let space = TestSpace::new("outputs-own-pipe");
    work_with(&space, FREE);
    space.link("out", "/proc/self/fd/1");
    let line = space.words("-c k.cu -o k.o -MD -MF out");
    // Twice into a pipe that only we read.
    let texts = [Program::Nvcc, Program::Launcher, Program::Launcher].map(|program| {
        let mut command = space.command(&program, &line);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("start");
        let mut pipe = child.stdout.take().expect("a pipe");
        let reader = thread::spawn(move || {
            let mut text = String::new();
            pipe.read_to_string(&mut text).map(|_| text)
        });
        assert!(child.wait().expect("wait").success());
        reader.join().expect("join").expect("read")
    });
    assert!(texts[0].starts_with("k.o : k.cu"), "{}", texts[0]);
    assert_eq!(texts[0], texts[1]);
    assert_eq!(texts[0], texts[2]);
}
