//! A file that gcc closes unread: it compares the file's time, as `#pragma GCC dependency` asks. And what the hook of `close` does
//! to other programs.

use std::path::PathBuf;

use crate::support::Bench;

/// A pragma whose words stand in no text.
const COMPARE: &str =
    "#define JOIN(a, b) a##b\n#define MAKE2(x) _Pragma(#x)\n#define MAKE(x) MAKE2(x)\n";

/// The files that were closed unread.
fn unread(bench: &Bench, words: &str) -> Vec<PathBuf> {
    let observed = bench.watch(words);
    observed.closed_unread.into_values().collect()
}

/// The C library closes a precompiled header itself, and the next file has its descriptor.
#[test]
fn a_file_after_a_precompiled_header() {
    let bench = Bench::new();
    bench.file("all.h", COMPARE);
    bench.file("made.y", "grammar\n");
    bench.file("empty.y", "");
    bench.file(
        "a.c",
        "#include \"all.h\"\nMAKE(GCC JOIN(depen, dency) \"made.y\")\n",
    );
    bench.file("b.c", "MAKE(GCC JOIN(depen, dency) \"empty.y\")\n");
    let folder = bench.dir.path().canonicalize().unwrap();
    for is_precompiled in [false, true] {
        if is_precompiled {
            assert_eq!(
                unread(&bench, "gcc -x c-header all.h -o all.h.gch"),
                [""; 0].map(PathBuf::from)
            );
        }
        for (words, file) in [
            ("gcc -E a.c", "made.y"),
            ("gcc -Winvalid-pch -Werror=invalid-pch -c a.c", "made.y"),
            ("gcc -include all.h -c b.c", "empty.y"),
        ] {
            assert_eq!(unread(&bench, words), [folder.join(file)], "{words}");
        }
    }
}

/// A program may close a file on a stack of one page, as a signal handler's may be.
#[test]
fn a_small_stack_has_room_for_a_close() {
    let bench = Bench::new();
    bench.file(
        "small.c",
        "#include <fcntl.h>\n#include <sys/mman.h>\n#include <ucontext.h>\n#include <unistd.h>\n\
         static ucontext_t before, on_page;\nstatic int file, result = 1;\n\
         static void body(void) { result = close(file); }\n\
         int main(void) {\n\
         char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n\
         mprotect(pages, 4096, PROT_NONE);\nfile = open(\"small.c\", O_RDONLY);\ngetcontext(&on_page);\n\
         on_page.uc_stack.ss_sp = pages + 4096;\non_page.uc_stack.ss_size = 4096;\n\
         on_page.uc_link = &before;\nmakecontext(&on_page, body, 0);\nswapcontext(&before, &on_page);\n\
         return result;\n}\n",
    );
    assert!(bench.plain("gcc small.c -o small").status.success());
    assert!(bench.plain("./small").status.success());
    assert!(bench.watched("./small").status().unwrap().success());
}
