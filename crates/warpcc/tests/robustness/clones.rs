//! Tests `WARPCC_BASE_DIR`: clones in folders with names of different lengths make the same bytes, and share them. The
//! programs behave as nvcc's do.

mod sharing;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::space::{Outcome, Program, Stats, TestSpace, Toolkit, make_dir, small};

/// Everything through which a folder's name could get into a result: `__FILE__` and `__builtin_FILE` of host and device
/// code, assert, internal names with the module id in them, warnings of both compilers.
const SOURCE: &str = "#include <part.cuh>\n\
    #include <cassert>\n\
    #include <cstdio>\n\
    static __device__ int counter;\n\
    namespace {\n\
    __global__ void inner(float *x) {\n\
      assert(x); *x = scale(*x) + counter;\n\
      printf(\"%s %s\", __FILE__, __builtin_FILE());\n\
    }\n\
    }\n\
    const char *caller(const char *file = __builtin_FILE()) { return file; }\n\
    const char *const *names() {\n\
      static const char *all[] = {__FILE__, part(), caller()};\n\
      return all;\n\
    }\n\
    void run(float *x) { int unused; inner<<<1, 1>>>(x); }\n\
    long shown(unsigned a, int b) { return a < b; }\n";

const PART: &str = "static __device__ float scale(float x) { return 2 * x; }\n\
    static inline const char *part() { return __FILE__; }\n";

/// Without external names, so that the module id ends in a process id.
const NAMELESS: &str = "namespace {\n\
    __device__ int d;\n\
    __global__ void k(int *p) { *p = d; }\n\
    const int started = (k<<<1, 1>>>(nullptr), 0);\n\
    }\n";

/// CCCL's headers bring internal names into the PTX.
const REDUCE: &str = "#include <cub/block/block_reduce.cuh>\n\
    __global__ void sum(int *x) {\n\
      using Reduce = cub::BlockReduce<int, 128>;\n\
      __shared__ Reduce::TempStorage room;\n\
      int all = Reduce(room).Sum(x[threadIdx.x]);\n\
      if (threadIdx.x == 0) *x = all;\n\
    }\n";

const CLONES: [&str; 2] = ["a", "a-much-longer-name/of/the-other"];

type Files = BTreeMap<String, Vec<u8>>;

fn clones(name: &str, toolkit: Toolkit) -> TestSpace {
    let space = TestSpace::with_toolkit(name, toolkit);
    for clone in CLONES {
        space.write(&format!("{clone}/src/clone.cu"), SOURCE);
        space.write(&format!("{clone}/src/nameless.cu"), NAMELESS);
        space.write(&format!("{clone}/src/reduce.cu"), REDUCE);
        space.write(&format!("{clone}/include/part.cuh"), PART);
        space.write(&format!("{clone}/build/.keep"), "");
    }
    space
}

/// Runs a line in a clone's build folder, where `@` stands for the clone. Gives the outcome and the outputs, and removes
/// the outputs.
fn make(space: &mut TestSpace, program: &Program, clone: &str, line: &str) -> (Outcome, Files) {
    space.stand_in = format!("{clone}/build").into();
    let root = space.work().join(clone);
    let line = line.replace('@', &root.display().to_string());
    let outcome = space.run(program, &space.words(&line));
    let mut files = Files::new();
    for entry in fs::read_dir(root.join("build"))
        .expect("a build folder")
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != ".keep" {
            files.insert(name, fs::read(entry.path()).expect("an output"));
            fs::remove_file(entry.path()).expect("a file that can go");
        }
    }
    (outcome, files)
}

/// The same with warpcc and with the clone as a root, in a cache of its own.
fn relocated(
    space: &mut TestSpace,
    cache: &str,
    clone: &str,
    line: &str,
) -> (Outcome, Files, Stats) {
    let root = space.work().join(clone).display().to_string();
    space.set_env("WARPCC_BASE_DIR", &root);
    space.set_env("WARPCC_DIR", &format!("{{beside}}/cache-{cache}"));
    let before = space.stats();
    let (outcome, files) = make(space, &Program::Launcher, clone, line);
    let stats = space.stats().since(&before);
    space.unset_env("WARPCC_BASE_DIR");
    assert_eq!(outcome.code, 0, "{line}: {}", outcome.stderr_text());
    assert_eq!(stats.count("fallbacks"), 0, "{line}: {:?}", stats.reasons);
    (outcome, files, stats)
}

/// The outputs but for dependency files, which name the real folders.
fn results(files: &Files) -> Files {
    let files = files.iter().filter(|(name, _)| !name.ends_with(".d"));
    files.map(|(n, b)| (n.clone(), b.clone())).collect()
}

/// Builds cold in both clones, each with a cache of its own, then in the second with the first one's cache.
fn same_everywhere(space: &mut TestSpace, number: usize, line: &str) -> Files {
    let [one, two] = CLONES;
    let (cold, other) = (format!("{number}-one"), format!("{number}-two"));
    let (_, first, _) = relocated(space, &cold, one, line);
    let (said, second, _) = relocated(space, &other, two, line);
    let (again, shared, stats) = relocated(space, &cold, two, line);
    assert_eq!(stats.count("direct_hits"), 1, "{line}: {stats:?}");
    let folder = space.work().join(one).display().to_string();
    for (name, bytes) in results(&first) {
        assert!(
            second[&name] == bytes,
            "{line}: {name} of a cold build differs"
        );
        assert!(
            shared[&name] == bytes,
            "{line}: {name} from the cache differs"
        );
        assert!(
            memchr::memmem::find(&bytes, folder.as_bytes()).is_none(),
            "{line}: {name} names the folder"
        );
    }
    assert_eq!(first.len(), second.len());
    // Messages and dependency files name this folder, as nvcc's do.
    let (want, made) = make(space, &Program::NvccKeep(space.beside("keep")), two, line);
    assert_eq!(again.stderr_text(), want.stderr_text(), "{line}");
    assert_eq!(said.stderr_text(), want.stderr_text(), "{line}");
    for (name, bytes) in made.iter().filter(|(name, _)| name.ends_with(".d")) {
        for files in [&second, &shared] {
            assert_eq!(
                String::from_utf8_lossy(&files[name]),
                String::from_utf8_lossy(bytes),
                "{line}"
            );
        }
    }
    first
}

/// Line by line, with a toolkit of their own each.
fn all_the_same(name: &str, toolkit: Toolkit, lines: &[&str]) {
    let mut space = clones(name, toolkit);
    for (number, line) in lines.iter().enumerate() {
        same_everywhere(&mut space, number, line);
    }
}

#[test]
fn objects_are_the_same_in_every_folder() {
    all_the_same(
        "clones-objects",
        small(Toolkit::newest()),
        &[
            "-arch=sm_90 -c -I@/include @/src/clone.cu -o clone.o -MD -MF clone.d -Xcompiler -Wextra",
            LINES,
            "-arch=sm_90 -c -G -g -I../include @/src/clone.cu -o clone.o -MD",
        ],
    );
}

#[test]
fn cub_code_is_the_same_in_every_folder() {
    all_the_same(
        "clones-cub",
        Toolkit::newest(),
        &["-arch=sm_90 -c @/src/reduce.cu -o reduce.o"],
    );
}

const LINES: &str =
    "-arch=sm_90 -dc -lineinfo -I../include ../src/clone.cu -o @/build/clone.o -MMD -MP";
const NAMELESS_CUBIN: &str = "-arch=sm_90 -cubin -rdc=true @/src/nameless.cu -o nameless.cubin";

#[test]
fn device_code_is_the_same_in_every_folder() {
    all_the_same(
        "clones-device",
        small(Toolkit::newest()),
        &[
            "-arch=sm_90 -ptx -lineinfo -isystem @/include @/src/clone.cu -o clone.ptx",
            NAMELESS_CUBIN,
            "-arch=sm_90 -c @/src/nameless.cu -o nameless.o",
            "-gencode arch=compute_90,code=lto_90 -dc @/src/nameless.cu -o nameless.o",
        ],
    );
}

#[test]
fn so_it_is_with_the_older_toolkit() {
    all_the_same(
        "clones-older",
        small(Toolkit::older()),
        &[LINES, NAMELESS_CUBIN],
    );
}

/// The code of every cubin in an object, module ids taken out.
fn machine_code(space: &TestSpace, object: &[u8], stem: &str) -> String {
    let path = space.beside("code.o");
    fs::write(&path, object).expect("a file beside the others");
    let tools = space.toolkit.top().join("bin");
    let output = Command::new(tools.join("cuobjdump"))
        .arg("-sass")
        .arg(&path)
        .env("PATH", tools)
        .output()
        .expect("cuobjdump");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("EXIT"), "no code: {text}");
    without_ids(&text, stem)
}

/// `_1234abcd_8_clone_cu_…` as `<id>`.
fn without_ids(text: &str, stem: &str) -> String {
    let mark = format!("_{}_{stem}_cu_", stem.len() + 3);
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(&mark) {
        let head = &rest[..at];
        let head = &head[..head.len().saturating_sub(9)];
        out.push_str(head);
        out.push_str("<id>");
        rest = &rest[at + mark.len()..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        rest = &rest[end.unwrap_or(rest.len())..];
    }
    out.push_str(rest);
    out
}

#[test]
fn device_code_is_nvccs_but_for_the_id() {
    let mut space = clones("clones-code", small(Toolkit::newest()));
    let line = "-arch=sm_90 -rdc=true -c -I@/include @/src/clone.cu -o clone.o";
    let nvcc = Program::NvccKeep(space.beside("keep"));
    let (_, theirs) = make(&mut space, &nvcc, CLONES[0], line);
    let (_, ours, _) = relocated(&mut space, "code", CLONES[0], line);
    let [theirs, ours] =
        [&theirs, &ours].map(|files| machine_code(&space, &files["clone.o"], "clone"));
    for (their, our) in theirs.lines().zip(ours.lines()) {
        assert_eq!(their, our);
    }
    assert_eq!(theirs.lines().count(), ours.lines().count());
}

/// A program of two files with the same name and the same text. The internal names of each must stay separate.
fn write_twins(space: &TestSpace) {
    let twin = "#include \"which.h\"\n\
        static __device__ int own = WHICH;\n\
        static __global__ void fill(int *x) { *x = own; }\n\
        namespace {\n\
        __global__ void hidden(int *x) { *x = own + 1; }\n\
        struct AtStart {\n\
          AtStart() {\n\
            cudaFuncAttributes a;\n\
            bool same = cudaFuncGetAttributes(&a, (const void *)fill) ==\n\
                        cudaFuncGetAttributes(&a, (const void *)hidden);\n\
            said(WHICH, same);\n\
          }\n\
        } at_start;\n\
        }\n";
    let main = "#include <cstdio>\n\
        static int sum, calls;\n\
        void said(int which, bool same) { sum += which * 10 + same; calls++; }\n\
        int main() { printf(\"%d %d %s\\n\", sum, calls, __FILE__ + sizeof(__FILE__) - 8); }\n";
    space.write("twins/build/.keep", "");
    for folder in ["left", "right"] {
        space.write(&format!("twins/{folder}/same.cu"), twin);
        // Only the path tells the two files apart, not the text.
        space.write(
            &format!("twins/{folder}/which.h"),
            "extern void said(int, bool);\n#define WHICH 7\n",
        );
    }
    // A file without CUDA, which compiles in no time.
    space.write("twins/main.cpp", main);
}

#[test]
fn equal_names_in_several_folders_link_and_run() {
    let mut space = TestSpace::new("clones-twins");
    write_twins(&space);
    let work = space.work().display().to_string();
    let objects = "left.o right.o main.o";
    let mut build = |roots: Option<[&str; 2]>| -> (Outcome, Option<Outcome>) {
        let program = match roots {
            Some(_) => Program::Launcher,
            None => Program::Nvcc,
        };
        space.stand_in = "twins/build".into();
        for (name, source, root) in [
            ("left", "left/same.cu", roots.map(|r| r[0])),
            ("right", "right/same.cu", roots.map(|r| r[1])),
            ("main", "main.cpp", roots.map(|_| "twins")),
        ] {
            if let Some(root) = root {
                space.set_env("WARPCC_BASE_DIR", &format!("{work}/{root}"));
            }
            let line = format!("-arch=sm_90 -dc {work}/twins/{source} -o {name}.o");
            let outcome = space.run(&program, &space.words(&line));
            assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
        }
        let line = format!("-arch=sm_90 {objects} -o program");
        let linked = space.run(&program, &space.words(&line));
        space.unset_env("WARPCC_BASE_DIR");
        let path = space.work().join("twins/build/program");
        let ran = (linked.code == 0).then(|| {
            let own = Program::Other(path.clone(), Vec::new());
            space.run(&own, &[])
        });
        crate::space::remove_tree(&path);
        (linked, ran)
    };
    let (_, theirs) = build(None);
    let theirs = theirs.expect("nvcc links");
    assert_eq!(theirs.code, 0);
    let (linked, ours) = build(Some(["twins", "twins"]));
    assert_eq!(linked.code, 0, "{}", linked.stderr_text());
    assert_eq!(ours.expect("links"), theirs);
    // The test can fail: with each folder a root of its own both files have one name and one id.
    let (linked, _) = build(Some(["twins/left", "twins/right"]));
    assert_ne!(linked.code, 0, "equal module ids went unnoticed");
}

#[test]
fn a_host_compiler_without_prefix_maps_is_nvccs() {
    let mut space = clones("clones-old-gcc", small(Toolkit::newest()));
    // The output of gcc before version 8.
    space.script(
        "bin/g++",
        "#!/bin/sh\nfor word; do case $word in -f*-prefix-map=*)\n\
         echo \"g++: error: unrecognized command line option '$word'\" >&2; exit 1;; esac; done\n\
         exec g++ \"$@\"\n",
    );
    let root = space.work().join(CLONES[0]).display().to_string();
    space.set_env("WARPCC_BASE_DIR", &root);
    let line = "-arch=sm_90 -ptx -ccbin {work}/bin/g++ -I@/include @/src/clone.cu -o clone.ptx";
    let (outcome, files) = make(&mut space, &Program::Launcher, CLONES[0], line);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    assert!(files.contains_key("clone.ptx"));
    let stats = space.stats();
    let reason = stats.reasons.keys().next().expect("a reason");
    assert!(reason.contains("prefix map"), "{reason}");
}

#[test]
fn a_pipe_that_a_compiler_reads_is_not_read_again() {
    let mut space = clones("clones-pipe", small(Toolkit::newest()));
    let [one, _] = CLONES;
    make_dir(&space.work().join("pipes"));
    // Several may run at once, so each has its own. It stays there.
    space.script(
        "bin/g++",
        &format!(
            "#!/bin/sh\npipe={}/pipes/$$\nmkfifo $pipe\necho word > $pipe &\nread word < $pipe\n\
             wait\nexec g++ \"$@\"\n",
            space.work().display()
        ),
    );
    let root = space.work().join(one).display().to_string();
    space.set_env("WARPCC_BASE_DIR", &root);
    let line = "-arch=sm_90 -c -ccbin {work}/bin/g++ -I@/include @/src/clone.cu -o clone.o";
    for _ in 0..2 {
        let (outcome, files) = make(&mut space, &Program::Launcher, one, line);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
        assert!(files.contains_key("clone.o"));
        assert_eq!(space.stats().count("direct_hits"), 0);
    }
}

#[test]
fn a_folder_that_cannot_be_named_is_left_alone() {
    let mut space = TestSpace::new("clones-odd");
    space.write("with space/src/clone.cu", SOURCE);
    space.write("with space/include/part.cuh", PART);
    space.stand_in = Path::new("with space").into();
    let base = space.work().join("with space").display().to_string();
    space.set_env("WARPCC_BASE_DIR", &base);
    space.agree("-arch=sm_90 -c -Iinclude '{work}/with space/src/clone.cu' -o clone.o");
}
