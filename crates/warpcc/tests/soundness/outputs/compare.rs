//! Runs a call with warpcc and with nvcc from the same tree, and compares streams, exit code and the tree afterwards.

use std::fs::OpenOptions;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use crate::space::{
    Exactness, Outcome, Program, Snapshot, SnapshotEntry, StreamRule, TestSpace, differences,
    finish, make_dir, remove_tree,
};

pub(super) const SOURCE: &str = "__global__ void k(int *x) { *x = 1; }\nint main() { return 0; }\n";

pub(super) const OLD: &str = "what was there before\n";

/// Puts something at the path of the output `out`.
pub(super) type Arrange = fn(&Path);

pub(super) fn work_with(space: &TestSpace, arrange: Arrange) {
    space.clear_work();
    space.write("k.cu", SOURCE);
    space.write("header.h", "");
    space.write("main.cpp", "int main() { return 0; }\n");
    space.set_old("k.cu");
    arrange(&space.work());
}

/// The rule that ignores the names of nvcc's temporary files in these folders.
pub(super) fn rule(space: &TestSpace) -> StreamRule {
    StreamRule {
        random_names: true,
        folders: vec![space.beside("keep"), space.tmp()],
        ..StreamRule::default()
    }
}

/// The tree of the work folder, with the numbers of processes taken out of nvcc's `tmpxft_PID_…`, which stand in objects.
pub(super) fn tree(space: &TestSpace) -> Snapshot {
    let mut tree = Snapshot::take(&space.work());
    for entry in tree.entries.values_mut() {
        if let SnapshotEntry::File { bytes, .. } = entry {
            let mut at = 0;
            while let Some(found) = memchr::memmem::find(&bytes[at..], b"tmpxft_") {
                at += found + "tmpxft_".len();
                let end = (at + "00003142_00000000".len()).min(bytes.len());
                bytes[at..end].fill(b'0');
            }
        }
    }
    tree
}

/// The result of one run: the files it left, its messages, and the bytes it wrote into a pipe.
struct Left {
    tree: Snapshot,
    outcome: Outcome,
    piped: Vec<u8>,
}

/// Runs a line twice with warpcc and once with nvcc, each time from the same tree, and compares streams, exit code and
/// the whole tree. Gives for each of warpcc's calls the reason why it was bypassed, or `hit`, or an empty text.
#[track_caller]
pub(super) fn same_tree(space: &TestSpace, line: &str, arrange: Arrange) -> [String; 2] {
    let words = space.words(line);
    let run = |program: &Program| finish_reading(space, space.command(program, &words));
    compare(space, line, arrange, &run)
}

/// The same with one run of warpcc, where a second one would find what the first one found.
#[track_caller]
pub(super) fn same_tree_once(space: &TestSpace, line: &str, arrange: Arrange) -> String {
    let words = space.words(line);
    let run = |program: &Program| finish_reading(space, space.command(program, &words));
    let [way] = compare_turns(space, line, arrange, &run, ["once"]);
    way
}

#[track_caller]
pub(super) fn compare(
    space: &TestSpace,
    line: &str,
    arrange: Arrange,
    run: &dyn Fn(&Program) -> (Outcome, Vec<u8>),
) -> [String; 2] {
    compare_turns(space, line, arrange, run, ["cold", "again"])
}

#[track_caller]
fn compare_turns<const TURNS: usize>(
    space: &TestSpace,
    line: &str,
    arrange: Arrange,
    run: &dyn Fn(&Program) -> (Outcome, Vec<u8>),
    turns: [&str; TURNS],
) -> [String; TURNS] {
    let from_start = |program: &Program| {
        remove_tree(&space.tmp());
        make_dir(&space.tmp());
        work_with(space, arrange);
        let (outcome, piped) = run(program);
        let tree = tree(space);
        Left {
            tree,
            outcome,
            piped,
        }
    };
    let mut references: [Option<Left>; 2] = [None, None];
    turns.map(|turn| {
        let before = space.stats();
        let got = from_start(&Program::Launcher);
        if got.outcome.code == 0 {
            space.demand_no_leftovers("warpcc");
        }
        let stats = space.stats().since(&before);
        let way = match stats.reasons.keys().next() {
            Some(reason) => reason.clone(),
            None if stats.count("direct_hits") == 1 => "hit".to_owned(),
            None => String::new(),
        };
        // Names of nvcc's temporary files stand in objects: with `--keep` they are the ones that warpcc has.
        let plain = stats.count("fallbacks") > 0;
        let plain = plain || line.contains("-keep");
        let want = references[usize::from(plain)].get_or_insert_with(|| {
            from_start(&if plain {
                Program::Nvcc
            } else {
                space.reference()
            })
        });
        let compared = space.beside("compare");
        let mut found = differences(&want.tree, &got.tree, Exactness::Bytes, &compared);
        found.extend(rule(space).differences(&want.outcome, &got.outcome));
        assert!(
            found.is_empty() && want.piped == got.piped,
            "`{line}`, {turn}, {way}:\n{}",
            found.join("\n")
        );
        way
    })
}

/// Runs a command to its end. Gives the outcome, and the bytes from `out` if that is a pipe.
fn finish_reading(space: &TestSpace, command: Command) -> (Outcome, Vec<u8>) {
    use std::os::unix::fs::FileTypeExt;
    let pipe = space.work().join("out");
    let is_pipe = pipe
        .symlink_metadata()
        .is_ok_and(|found| found.file_type().is_fifo());
    if !is_pipe {
        return (finish(command), Vec::new());
    }
    // Open for reading and writing, so that neither side waits for the other; a compiler's output here fits into it.
    let mut end = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&pipe)
        .expect("the pipe");
    let outcome = finish(command);
    let mut writer = OpenOptions::new().write(true).open(&pipe).expect("pipe");
    std::io::Write::write_all(&mut writer, b"\0END").expect("write");
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\0END") {
        let mut some = [0; 4096];
        let length = end.read(&mut some).expect("read");
        bytes.extend_from_slice(&some[..length]);
    }
    (outcome, bytes)
}

pub(super) const FREE: Arrange = |_| {};
