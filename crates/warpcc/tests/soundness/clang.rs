//! clang as the CUDA compiler: what warpcc gives is what clang gives, and a change that matters is no hit.

use crate::space::{Exactness, Outcome, Program, Snapshot, Stats, TestSpace, Toolkit, differences};

/// The newest of Debian; older ones do not know the options of CUDA 13's fatbinary.
const CLANG: &str = "/usr/bin/clang++-22";

/// What clang's own tests use in place of CUDA's headers, which need cuRAND's.
const CUDA: &str = r#"
typedef unsigned long size_t;
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
struct dim3 { unsigned x, y, z; __attribute__((host)) __device__ dim3(unsigned x) : x(x), y(1), z(1) {} };
typedef struct cudaStream *cudaStream_t;
typedef enum cudaError {} cudaError_t;
extern "C" int cudaConfigureCall(dim3, dim3, size_t = 0, cudaStream_t = 0);
extern "C" int __cudaPushCallConfiguration(dim3, dim3, size_t = 0, cudaStream_t = 0);
extern "C" cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
"#;
const SOURCE: &str = "#include \"cuda.h\"\n#include \"n.h\"\n\
    __global__ void k(int *p) { *p = N; }\nint main() { k<<<1, 1>>>(nullptr); }\n";

const LINE: &str = "-x cuda -nocudainc -nocudalib --cuda-path={toolkit} --cuda-gpu-arch=sm_80 \
    --cuda-gpu-arch=sm_90 -Iinc -c k.cu -o k.o";

struct ClangSpace(TestSpace);

impl ClangSpace {
    fn new(name: &str) -> Self {
        let space = TestSpace::with_toolkit(&format!("clang-{name}"), Toolkit::newest());
        space.write("inc/cuda.h", CUDA);
        space.write("inc/n.h", "#define N 3\n");
        space.write("k.cu", SOURCE);
        for file in ["inc/cuda.h", "inc/n.h", "k.cu"] {
            space.set_old(file);
        }
        Self(space)
    }

    fn observe(&self, program: &Program, line: &str) -> (Outcome, Snapshot, Stats) {
        let before = Snapshot::take(&self.0.work());
        let (outcome, made, stats) = self.0.observe(program, &self.0.words(line));
        made.since(&before).delete_from(&self.0.work());
        (outcome, made, stats)
    }

    /// Compiles with clang and with warpcc. Whether warpcc had a direct hit.
    #[track_caller]
    fn agrees(&self, line: &str) -> bool {
        self.compiles(line).1
    }

    /// The same, with clang's exit code.
    #[track_caller]
    fn compiles(&self, line: &str) -> (i32, bool) {
        let (wanted, files, _) = self.observe(&Program::Other(CLANG.into(), Vec::new()), line);
        let launcher = Program::Other(TestSpace::warpcc(), vec![CLANG.to_owned()]);
        let (got, made, stats) = self.observe(&launcher, line);
        assert_eq!(got, wanted, "{line}");
        let scratch = self.0.beside("differences");
        let found = differences(&files, &made, Exactness::Bytes, &scratch);
        assert!(found.is_empty(), "{line}: {found:?}");
        self.0.demand_no_leftovers(line);
        (wanted.code, stats.count("direct_hits") == 1)
    }

    /// The same twice: cold, and with the result in the cache.
    #[track_caller]
    fn hits(&self, line: &str) {
        assert_eq!(self.compiles(line), (0, false), "{line}");
        assert_eq!(self.compiles(line), (0, true), "not found: {line}");
    }
}

#[test]
fn a_change_is_no_hit_and_nothing_else_is() {
    let space = ClangSpace::new("change");
    space.hits(LINE);
    space.0.write("inc/n.h", "#define N 5\n");
    space.hits(LINE);
    space.hits(&LINE.replace("sm_90", "sm_89"));
    space.hits(&format!("{LINE} -DN2"));
    // A header that was looked for comes into being before the other one.
    let line = format!("-Ifirst {LINE}");
    space.hits(&line);
    space.0.write("first/n.h", "#define N 7\n");
    space.hits(&line);
    // Another folder is another result: clang's names for variables contain its hash.
    space.0.write("first/n.h", "#define N 5\n");
    assert!(!space.agrees(&line.replace("first", "./first")));
}

#[test]
fn dependency_files_and_debug_information_are_clangs() {
    let space = ClangSpace::new("outputs");
    for more in [
        "-MD -MF k.d",
        "-MMD -MT x",
        "-g -O1",
        "-O2 -fPIC -Wall",
        "--cuda-host-only",
        "-Xcuda-fatbinary --compress-all",
        r#"'-DQ="a b\\ $HOME"'"#,
    ] {
        space.hits(&format!("{LINE} {more}"));
    }
    space.hits(&LINE.replace(" -o k.o", ""));
}

#[test]
fn messages_and_failures_are_clangs() {
    let space = ClangSpace::new("messages");
    space.0.write("k.cu", &format!("{SOURCE}#warning mind\n"));
    space.hits(LINE);
    for wrong in ["int x = y;", "__device__ int f() { return g(); }"] {
        space.0.write("k.cu", &format!("{SOURCE}{wrong}\n"));
        assert!(!space.agrees(LINE), "{wrong}");
        assert!(!space.agrees(LINE), "{wrong}");
    }
    assert!(!space.agrees(&format!("{LINE} --no-such-option")));
}

#[test]
fn a_date_in_the_source_is_not_stored() {
    let space = ClangSpace::new("date");
    for text in [
        "__device__ const char when[] = __DATE__;",
        "const char *when = __DATE__;",
    ] {
        space.0.write("k.cu", &format!("{SOURCE}{text}\n"));
        assert_eq!(space.compiles(LINE), (0, false), "{text}");
        assert_eq!(space.compiles(LINE), (0, false), "{text}");
    }
}

/// An option that makes a file besides the object, or that nobody here knows, costs hits and nothing else.
#[test]
fn other_files_are_made_as_by_clang() {
    let space = ClangSpace::new("side-files");
    for more in [
        "-fstack-usage",
        "-O2 -fsave-optimization-record",
        "-save-temps",
        "--serialize-diagnostics k.dia",
        "-fgpu-rdc",
        "-S -emit-llvm",
    ] {
        let line = format!("{LINE} {more}");
        assert!(!space.agrees(&line), "{more}");
        assert!(!space.agrees(&line), "{more}");
    }
}

#[test]
fn plain_sources_are_left_to_other_caches() {
    let space = ClangSpace::new("plain");
    space.0.write("c.cpp", "int main() {}\n");
    assert!(!space.agrees("-c c.cpp -o c.o"));
    assert!(!space.agrees("-c c.cpp -o c.o"));
    let stats = space.0.stats();
    assert_eq!((stats.count("passed"), stats.all_misses()), (0, 0));
}
