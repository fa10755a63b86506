//! Files that real compilers and linkers look for are logged, and their output stays the same.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod announce;
mod attempts;
mod held;
mod processes;
#[path = "../support/mod.rs"]
mod support;
mod unread;

use std::ffi::OsStr;

use support::{Bench, has};

#[test]
fn candidates_before_the_header_found_are_missing() {
    let bench = Bench::new();
    bench
        .file("a.c", "#include <x.h>\n")
        .file("d1/y.h", "")
        .file("d2/y.h", "")
        .file("d3/x.h", "int x;\n");
    let seen = bench.watch("gcc -E -Id1 -Id2 -Id3 a.c -o a.i");
    assert!(
        has(&seen.missing, "d1/x.h") && has(&seen.missing, "d2/x.h"),
        "{seen:?}"
    );
    assert!(
        has(&seen.read, "d3/x.h") && has(&seen.read, "a.c") && has(&seen.written, "a.i"),
        "{seen:?}"
    );
    assert!(!has(&seen.missing, "d3/x.h"));
    assert_eq!(seen.processes.len(), 2, "{:?}", seen.processes);
    assert!(seen.processes[1].ends_with("cc1"));
    assert!(
        seen.libraries
            .keys()
            .any(|path| path.ends_with("libc.so.6"))
    );
    assert!(
        !seen
            .libraries
            .keys()
            .any(|path| path.starts_with(bench.dir.path())),
        "the library names itself"
    );
}

#[test]
fn has_include_of_nothing_is_missing() {
    let bench = Bench::new();
    bench
        .file("a.cpp", "#if __has_include(<nope.h>)\n#error\n#endif\n")
        .file("d/y.h", "");
    let seen = bench.watch("g++ -E -Id a.cpp -o a.i");
    assert!(
        has(&seen.missing, "d/nope.h") && has(&seen.missing, "/usr/include/nope.h"),
        "{seen:?}"
    );
}

#[test]
fn the_assembler_reads_what_is_included_in_binary() {
    let bench = Bench::new();
    bench
        .file("a.c", "__asm__(\".incbin \\\"blob\\\"\");\n")
        .file("blob", "bytes");
    let seen = bench.watch("gcc -c a.c -o a.o");
    assert!(
        has(&seen.read, "blob") && has(&seen.written, "a.o"),
        "{seen:?}"
    );
    assert!(
        seen.processes
            .iter()
            .any(|path| path.ends_with("x86_64-linux-gnu-as") || path.ends_with("as"))
    );
}

#[test]
fn a_link_is_logged_as_spelled() {
    let bench = Bench::new();
    bench
        .file("a.c", "#include \"link.h\"\n")
        .file("real.h", "");
    std::os::unix::fs::symlink("real.h", bench.path("link.h")).unwrap();
    let seen = bench.watch("gcc -E a.c -o a.i");
    assert!(
        has(&seen.read, "link.h") && !has(&seen.read, "real.h"),
        "{seen:?}"
    );
}

#[test]
fn outputs_are_the_same_with_and_without() {
    let bench = Bench::new();
    bench.file(
        "a.cpp",
        "#include <vector>\n#warning here\nint f(std::vector<int> v) { int u; return v[0]; }\n",
    );
    let plain = bench.plain("g++ -Wall -O1 -g -c a.cpp -o a.o");
    let object = std::fs::read(bench.path("a.o")).unwrap();
    std::fs::remove_file(bench.path("a.o")).unwrap();
    let watched = bench
        .watched("g++ -Wall -O1 -g -c a.cpp -o a.o")
        .output()
        .unwrap();
    assert_eq!(bench.log_of("g++").untracked, None);
    assert_eq!(
        (plain.status, plain.stdout, plain.stderr),
        (watched.status, watched.stdout, watched.stderr)
    );
    assert_eq!(object, std::fs::read(bench.path("a.o")).unwrap());
    // And when they fail.
    bench.file("b.c", "#include <nope.h>\n");
    let plain = bench.plain("gcc -c b.c");
    let watched = bench.watched("gcc -c b.c").output().unwrap();
    assert_eq!(
        (plain.status, plain.stdout, plain.stderr),
        (watched.status, watched.stdout, watched.stderr)
    );
    assert!(has(&bench.log_of("gcc").missing, "/usr/include/nope.h"));
}

#[test]
fn the_linker_passes_by_directories_without_the_library() {
    let bench = Bench::new();
    bench
        .file("main.cpp", "int f(); int main() { return f(); }\n")
        .file("foo.cpp", "int f() { return 0; }\n");
    bench.file("a/none", "").file("b/none", "");
    for words in [
        "g++ -c main.cpp",
        "g++ -c foo.cpp",
        "ar rc b/libfoo.a foo.o",
    ] {
        assert!(bench.plain(words).status.success());
    }
    let seen = bench.watch("g++ main.o -L a -L b -lfoo -o main");
    assert!(
        has(&seen.missing, "a/libfoo.so") && has(&seen.missing, "a/libfoo.a"),
        "{seen:?}"
    );
    assert!(
        has(&seen.missing, "b/libfoo.so") && has(&seen.read, "b/libfoo.a"),
        "{seen:?}"
    );
    assert!(has(&seen.written, "main"));
    assert!(
        seen.libraries
            .keys()
            .any(|path| path.ends_with("liblto_plugin.so")),
        "dlopen is seen at the end"
    );
}

#[test]
fn a_log_that_cannot_be_written_harms_nobody() {
    let bench = Bench::new();
    bench.file("a.c", "int x;\n");
    let mut command = bench.watched("gcc -c a.c -o a.o");
    let output = command
        .env("WARPCC_WATCH_LOG", "/nonexistent/log")
        .output()
        .unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    assert!(bench.path("a.o").exists());
}

/// The kernel ends a process that writes beyond its limit. Ours is not the process's own write.
#[test]
fn a_log_beyond_the_limit_of_a_file_ends_nobody() {
    let bench = Bench::new();
    bench.file("folder/x", "");
    let names: String = (0..64).map(|n| format!(" missing/{n}")).collect();
    let command = format!("ulimit -f 1; ls{names}; ln -sf x folder/link; ln -sf y folder/link");
    let output = bench.watched("/bin/bash -c").arg(command).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let left = std::fs::read_dir(bench.path("folder")).unwrap();
    assert_eq!(left.count(), 2, "a link that ln made and did not rename");
    let lost = bench.log_of("/bin/bash").untracked;
    assert!(lost.is_some(), "a log without its end is not trusted");
}

/// A program that has blocked the signal finds none waiting, unless its own write was too long.
#[test]
fn a_log_beyond_the_limit_leaves_no_signal_behind() {
    let bench = Bench::new();
    let script = "import os, signal\n\
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGXFSZ])\n\
        def looks():\n\
        \x20   for n in range(3000): os.access('missing/%d' % n, os.R_OK)\n\
        \x20   return signal.SIGXFSZ in signal.sigpending()\n\
        print(looks())\n\
        try: os.truncate('long', 1 << 20)\n\
        except OSError: pass\n\
        print(looks())\n";
    bench.file("script.py", script);
    bench.file("long", "");
    let command = "ulimit -f 1; python3 script.py";
    let output = bench.watched("/bin/bash -c").arg(command).output().unwrap();
    assert_eq!(output.stdout, b"False\nTrue\n", "{output:?}");
}

/// With a toolkit at hand: `WARPCC_TEST_NVCC=/usr/local/cuda/bin/nvcc cargo test -p warpcc-watch`.
#[test]
fn the_tools_of_nvcc_are_seen() {
    let Some(nvcc) = std::env::var_os("WARPCC_TEST_NVCC") else {
        return;
    };
    let bench = Bench::new();
    bench.file(
        "x.cu",
        "#include <math.h>\n__global__ void k(float *p) { *p = sinf(*p); }\n",
    );
    let nvcc: &OsStr = &nvcc;
    let seen = bench.watch(&format!("{} -rdc=true -c x.cu -o x.o", nvcc.display()));
    // Not libdevice.10.bc: cicc 13 carries it inside and opens no file for it (strace agrees).
    for file in ["x.cu", "cuda_runtime.h", "nvcc.profile"] {
        assert!(
            seen.read.keys().any(|path| path.ends_with(file)),
            "{file}: {:?}",
            seen.read
        );
    }
    for tool in ["cicc", "ptxas", "cudafe++", "fatbinary", "cc1plus"] {
        assert!(
            seen.processes.iter().any(|path| path.ends_with(tool)),
            "{tool}: {:?}",
            seen.processes
        );
    }
    let seen = bench.watch(&format!("{} -dlink x.o -o y.o", nvcc.display()));
    assert!(
        seen.processes.iter().any(|path| path.ends_with("nvlink")) && has(&seen.read, "x.o"),
        "{seen:?}"
    );
}
