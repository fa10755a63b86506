//! Tests calls whose outputs are not new files: the tree afterwards must be nvcc's, whether the call hits or not.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use crate::space::{
    Entry, Exactness, Outcome, Program, Snapshot, StreamRule, TestSpace, differences, finish,
    make_dir, remove_tree,
};

const SOURCE: &str = "__global__ void k(int *x) { *x = 1; }\nint main() { return 0; }\n";
/// The reason that `warpcc stats` gives.
const NOT_PLAIN: &str = "an output is not a plain file";
const OLD: &str = "what was there before\n";

/// Puts something at the path of the output `out`.
type Arrange = fn(&Path);

fn work_with(space: &TestSpace, arrange: Arrange) {
    space.clear_work();
    space.write("k.cu", SOURCE);
    space.write("header.h", "");
    space.write("main.cpp", "int main() { return 0; }\n");
    space.set_old("k.cu");
    arrange(&space.work());
}

/// The rule that ignores the names of nvcc's temporary files in these folders.
fn rule(space: &TestSpace) -> StreamRule {
    StreamRule {
        random_names: true,
        folders: vec![space.beside("keep"), space.tmp()],
        ..StreamRule::default()
    }
}

/// The tree of the work folder, with the numbers of processes taken out of nvcc's `tmpxft_PID_…`, which stand in objects.
fn tree(space: &TestSpace) -> Snapshot {
    let mut tree = Snapshot::take(&space.work());
    for entry in tree.entries.values_mut() {
        if let Entry::File { bytes, .. } = entry {
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
fn same_tree(space: &TestSpace, line: &str, arrange: Arrange) -> [String; 2] {
    let words = space.words(line);
    let run = |program: &Program| finish_reading(space, space.command(program, &words));
    compare(space, line, arrange, &run)
}

#[track_caller]
fn compare(
    space: &TestSpace,
    line: &str,
    arrange: Arrange,
    run: &dyn Fn(&Program) -> (Outcome, Vec<u8>),
) -> [String; 2] {
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
    ["cold", "again"].map(|turn| {
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

fn mode(work: &Path, bits: u32) {
    let file = work.join("out");
    fs::write(&file, OLD).expect("write");
    fs::set_permissions(file, fs::Permissions::from_mode(bits)).expect("chmod");
}

fn renamed(work: &Path, arrange: Arrange) {
    arrange(work);
    fs::rename(work.join("out"), work.join("out.a")).expect("rename");
}

const FREE: Arrange = |_| {};
const PLAIN: Arrange = |work| fs::write(work.join("out"), OLD).expect("write");
const MODE_600: Arrange = |work| mode(work, 0o600);
const MODE_755: Arrange = |work| mode(work, 0o755);
const MODE_444: Arrange = |work| mode(work, 0o444);
const HARD_LINK: Arrange = |work| {
    fs::write(work.join("other"), OLD).expect("write");
    fs::hard_link(work.join("other"), work.join("out")).expect("link");
};
const LINK: Arrange = |work| {
    fs::write(work.join("target"), OLD).expect("write");
    symlink("target", work.join("out")).expect("link");
};
const DANGLING: Arrange = |work| symlink("target", work.join("out")).expect("link");
const NOWHERE: Arrange = |work| symlink("nowhere/target", work.join("out")).expect("link");
const FOLDER: Arrange = |work| fs::create_dir(work.join("out")).expect("folder");
const LINK_TO_FOLDER: Arrange = |work| {
    fs::create_dir(work.join("folder")).expect("folder");
    symlink("folder", work.join("out")).expect("link");
};
const NULL: Arrange = |work| symlink("/dev/null", work.join("out")).expect("link");
const PIPE: Arrange = |work| {
    let made = Command::new("mkfifo").arg(work.join("out")).status();
    assert!(made.expect("mkfifo").success());
};
const TO_SOURCE: Arrange = |work| symlink("k.cu", work.join("out")).expect("link");

/// Outputs that only nvcc may write, because its tools write into the file that is there.
const ODD: [(&str, Arrange); 11] = [
    ("a file of mode 600", MODE_600),
    ("a file of mode 755", MODE_755),
    ("a file of mode 444", MODE_444),
    ("a file with two names", HARD_LINK),
    ("a link", LINK),
    ("a dangling link", DANGLING),
    ("a link into a missing folder", NOWHERE),
    ("a folder", FOLDER),
    ("a link to a folder", LINK_TO_FOLDER),
    ("a link to /dev/null", NULL),
    ("a link to the source", TO_SOURCE),
];

/// Tests every odd output, cold and with the call's result in the cache, and the usual ones, which must still hit.
#[track_caller]
fn every_name(name: &str, line: &str) {
    let space = TestSpace::new(name);
    let (what, arrange) = ODD[0];
    let ways = same_tree(&space, line, arrange);
    assert_eq!(ways, [NOT_PLAIN, NOT_PLAIN], "{what}, with an empty cache");
    assert_eq!(same_tree(&space, line, FREE), ["", "hit"]);
    for (what, arrange) in ODD {
        let ways = same_tree(&space, line, arrange);
        // A program has this mode when it is new.
        let is_usual = line.starts_with("main.cpp") && what.ends_with("755");
        let way = if is_usual { "hit" } else { NOT_PLAIN };
        assert_eq!(ways, [way, way], "{what}, with a full cache");
    }
    assert_eq!(same_tree(&space, line, FREE), ["hit", "hit"]);
}

#[test]
fn ptx() {
    every_name("outputs-ptx", "-ptx k.cu -o out");
}

#[test]
fn cubin() {
    every_name("outputs-cubin", "-cubin k.cu -o out");
}

#[test]
fn object() {
    every_name("outputs-object", "-c k.cu -o out");
}

#[test]
fn program() {
    every_name("outputs-program", "main.cpp -o out -cudart none");
}

#[test]
fn dependencies() {
    every_name("outputs-dependencies", "-c k.cu -o k.o -MD -MF out");
}

#[test]
fn library() {
    let space = TestSpace::new("outputs-library");
    let line = "-lib k.cu -o out.a";
    assert_eq!(same_tree(&space, line, FREE), ["", "hit"]);
    // nvcc itself removes whatever has the name.
    let [mode, link, hard]: [Arrange; 3] = [
        |work| renamed(work, MODE_600),
        |work| renamed(work, LINK),
        |work| renamed(work, HARD_LINK),
    ];
    for arrange in [mode, link, hard] {
        assert_eq!(same_tree(&space, line, arrange), [NOT_PLAIN; 2]);
    }
}

#[test]
fn a_plain_file_is_replaced_and_hits() {
    let space = TestSpace::new("outputs-plain");
    for line in ["-ptx k.cu -o out", "-c k.cu -o x.o -MD -MF out"] {
        assert_eq!(same_tree(&space, line, PLAIN), ["", "hit"], "{line}");
    }
}

#[test]
fn a_pipe() {
    let space = TestSpace::new("outputs-pipe");
    for line in ["-ptx k.cu -o out", "-cubin k.cu -o out"] {
        same_tree(&space, line, FREE);
        assert_eq!(same_tree(&space, line, PIPE), [NOT_PLAIN; 2], "{line}");
    }
}

#[test]
fn standard_output() {
    let space = TestSpace::new("outputs-stdout");
    for options in ["-ptx", "-cuda", "-optix-ir", "-cubin", "-c"] {
        work_with(&space, FREE);
        space.build(&format!("{options} k.cu -o x"));
        let ways = same_tree(&space, &format!("{options} k.cu -o -"), FREE);
        assert_eq!(ways, [NOT_PLAIN; 2], "{options}");
    }
    let ways = same_tree(&space, "-c k.cu -o k.o -MD -MF -", FREE);
    assert_eq!(ways, [NOT_PLAIN; 2]);
    // Not the machine's own /dev/stdout, which a mistake here would break.
    let device: Arrange = |work| {
        fs::create_dir(work.join("dev")).expect("folder");
        symlink("/proc/self/fd/1", work.join("dev/stdout")).expect("link");
    };
    for line in [
        "-ptx k.cu -o dev/stdout",
        "-c k.cu -o k.o -MD -MF dev/stdout",
    ] {
        assert_eq!(same_tree(&space, line, device), [NOT_PLAIN; 2], "{line}");
    }
}

#[test]
fn kept_files() {
    let space = TestSpace::new("outputs-kept");
    let line = "-c k.cu -o k.o -keep -arch=sm_90";
    assert_eq!(same_tree(&space, line, FREE), ["", "hit"]);
    let linked: Arrange = |work| {
        fs::write(work.join("elsewhere"), OLD).expect("write");
        symlink("elsewhere", work.join("k.ptx")).expect("link");
    };
    assert_eq!(same_tree(&space, line, linked), [NOT_PLAIN; 2]);
}

#[test]
fn outputs_that_are_one_file_or_an_input() {
    let space = TestSpace::new("outputs-one");
    let folder: Arrange = |work| {
        fs::create_dir(work.join("folder")).expect("folder");
        symlink("folder", work.join("link")).expect("link");
    };
    for line in [
        "-c k.cu -o out -MD -MF out",
        "-c k.cu -o folder/out -MD -MF link/../folder/out",
        "-c k.cu -o folder/out -MD -MF link/out",
        "-ptx k.cu -o folder/../k.cu",
    ] {
        let ways = same_tree(&space, line, folder);
        let ours = |way: &String| way.is_empty() || way == "hit";
        assert!(!ways.iter().any(ours), "{line}: {ways:?}");
    }
    // A folder may be reached through a link.
    let line = "-c k.cu -o link/out";
    assert_eq!(same_tree(&space, line, folder), ["", "hit"]);
}

#[test]
fn a_folder_that_hands_down_its_group() {
    let space = TestSpace::new("outputs-group");
    // Without root the folder keeps our own group, and the test asks less.
    let shared: Arrange = |work| {
        let folder = work.join("shared");
        fs::create_dir(&folder).expect("folder");
        let _ = std::os::unix::fs::chown(&folder, None, Some(54321));
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o2775)).expect("chmod");
    };
    let line = "-c k.cu -o shared/out";
    assert_eq!(same_tree(&space, line, shared), ["", "hit"]);
    let again: Arrange = |work| {
        let folder = work.join("shared");
        fs::create_dir(&folder).expect("folder");
        let _ = std::os::unix::fs::chown(&folder, None, Some(54321));
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o2775)).expect("chmod");
        fs::write(folder.join("out"), OLD).expect("write");
    };
    assert_eq!(same_tree(&space, line, again), ["hit", "hit"]);
}

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
fn clang_enters_what_is_no_file() {
    let space = TestSpace::new("outputs-clang");
    let source: Arrange = |work| {
        fs::write(
            work.join("k.cu"),
            format!("#include \"header.h\"\n{SOURCE}"),
        )
        .expect("write");
    };
    for more in ["-MD -MF out", "-MMD -MP -MF out"] {
        let line = format!(
            "-c k.cu -o k.o -arch=sm_90 -ccbin clang++-19 -Xcompiler -Wno-c23-extensions {more}"
        );
        let ways = same_tree(&space, &line, source);
        assert_eq!(ways, ["", "hit"], "{more}");
    }
}

/// Under `-t` nvcc also shows the messages of commands that ran at the same time as the failing one; their order is a race.
#[test]
fn a_failing_build_with_threads_runs_once() {
    let space = TestSpace::new("outputs-threads");
    let two = "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90";
    let device = "#ifdef __CUDA_ARCH__\n__global__ void k(int *x) { *x = nothing; }\n#endif\n";
    let assembly =
        "__global__ void k() {\n#if __CUDA_ARCH__ == 800\nasm(\"nothing;\");\n#endif\n}\n";
    for (what, source, options, once) in [
        ("host and device", "int x = nothing;\n", "-t 2", true),
        ("each device pass", device, "-t 3", true),
        (
            "each device pass, and says when it ends",
            device,
            "-t 2",
            false,
        ),
        ("one ptxas", assembly, "-t 2", true),
    ] {
        space.clear_cache();
        space.write("k.cu", source);
        let words = space.words(&format!("-c k.cu -o k.o -MD -MF k.d {two} {options}"));
        let want = space.run(&space.reference(), &words);
        let wanted = tree(&space);
        for turn in ["cold", "again"] {
            space.clear_work();
            space.write("k.cu", source);
            let before = space.stats();
            let got = space.run(&Program::Launcher, &words);
            let stats = space.stats().since(&before);
            let rule = StreamRule {
                order: true,
                ..rule(&space)
            };
            let mut found = rule.differences(&want, &got);
            let compared = space.beside("compare");
            found.extend(differences(
                &wanted,
                &tree(&space),
                Exactness::Bytes,
                &compared,
            ));
            assert!(found.is_empty(), "{what}, {turn}:\n{}", found.join("\n"));
            assert_eq!(stats.count("fallbacks"), i64::from(!once), "{what}, {turn}");
        }
        space.clear_work();
    }
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

/// clang checks that its old output is there before it removes it; gcc's assembler does not.
#[test]
fn a_failing_clang_takes_the_old_object() {
    let space = TestSpace::new("failing-clang");
    space.write("case.cu", "asm(\".incbin \\\"data/none\\\"\");");
    space.write("out.o", "old");
    let line = "-ccbin clang++-14 -c case.cu -o out.o -arch=sm_90";
    let args = space.words(line);
    let reason = "a failing step looks for its old output";
    let out = space.work().join("out.o");
    for (old, asked) in [(false, None), (true, Some(&1))] {
        let prepare = || match old {
            true => space.write("out.o", "old"),
            false => _ = fs::remove_file(&out),
        };
        prepare();
        let want = space.run(&space.reference(), &args);
        assert!(!out.exists(), "nvcc takes it");
        prepare();
        let (got, _, stats) = space.observe(&Program::Launcher, &args);
        assert_eq!((want.code, got.code), (1, 1));
        assert_eq!(
            space.stream_rule().differences(&want, &got),
            Vec::<String>::new()
        );
        // Without an old output, plain nvcc need not run.
        assert_eq!(stats.reasons.get(reason), asked, "old: {old}");
        assert!(!out.exists(), "warpcc leaves it");
    }
}
