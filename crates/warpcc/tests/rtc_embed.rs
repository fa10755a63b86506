//! `warpcc rtc embed`: the bundles that it writes, what a program links with them, and what it refuses.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use warpcc_rtc::{Bundle, CacheSettings, CallLimits, CompileRequest, Compiler, KernelCache};
use warpcc_testkit::Toolkit;

fn nvrtc() -> PathBuf {
    let nvcc = Toolkit::newest().nvcc.canonicalize().expect("a toolkit");
    nvcc.with_file_name("../lib")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// warpcc with an nvcc, in a folder.
fn embed(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warpcc"))
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("WARPCC_DIR", folder.join("warpcc"))
        .env("WARPCC_NVCC", Toolkit::newest().nvcc)
        .args(["rtc", "embed"])
        .args(words)
        .output()
        .expect("it starts")
}

fn library(folder: &Path) {
    std::fs::create_dir_all(folder.join("include/lib/detail")).expect("folders");
    for (name, content) in [
        (
            "include/lib/a.cuh",
            "#pragma once\n#include \"detail/b c.cuh\"\n",
        ),
        ("include/lib/detail/b c.cuh", "#define B 2\n"),
        ("include/lib/notes.txt", "no header"),
        (
            "f.cu",
            "#include <lib/a.cuh>\n__device__ int f(int x) { return B * x; }\n",
        ),
        ("g.cu", "__device__ int g(int x) { return x; }\n"),
    ] {
        std::fs::write(folder.join(name), content).expect("written");
    }
}

#[test]
fn headers_and_sources_become_a_bundle() {
    let (one, other) = (tempfile::tempdir(), tempfile::tempdir());
    let folders = [one.expect("a folder"), other.expect("a folder")];
    let mut made = Vec::new();
    for folder in &folders {
        let folder = folder.path();
        library(folder);
        let done = embed(folder, &["--header-dir", "include", "-o", "h.bundle"]);
        assert!(done.status.success(), "{}", text(&done.stderr));
        made.push(std::fs::read(folder.join("h.bundle")).expect("a bundle"));
        // One by one, with a base folder, from a list, and in another order.
        std::fs::write(folder.join("list"), "include/lib/detail/b c.cuh\n").expect("written");
        let words = [
            "--base-dir",
            "include",
            "./include/lib/../lib/a.cuh",
            "--headers-from",
            "list",
        ];
        let done = embed(folder, &[&words[..], &["-o", "h2.bundle"]].concat());
        assert!(done.status.success(), "{}", text(&done.stderr));
        made.push(std::fs::read(folder.join("h2.bundle")).expect("a bundle"));
    }
    assert!(
        made.iter().all(|bytes| *bytes == made[0]),
        "the folder counts"
    );
    let bundle = Bundle::open(made[0].clone()).expect("a bundle");
    let names: Vec<_> = bundle.items().map(|item| item.1.to_string()).collect();
    assert_eq!(names, ["lib/a.cuh", "lib/detail/b c.cuh"]);

    let folder = folders[0].path();
    let words = [
        "--lto", "f.cu", "--lto", "g.cu", "--arch", "80", "--arch", "sm_90",
    ];
    let more = ["--option=-Iinclude", "-o", "f.bundle", "--depfile", "f.d"];
    let done = embed(folder, &[&words[..], &more].concat());
    assert!(done.status.success(), "{}", text(&done.stderr));
    let rule = std::fs::read_to_string(folder.join("f.d")).expect("a rule");
    assert!(rule.starts_with("f.bundle:"), "{rule}");
    assert!(rule.contains("include/lib/detail/b\\ c.cuh"), "{rule}");
    // A program links both with its kernel.
    let read = |name: &str| {
        let bytes = std::fs::read(folder.join(name)).expect("a bundle");
        Bundle::open(bytes).expect("a bundle")
    };
    let source = "#include <lib/a.cuh>\n__device__ int f(int);\n__device__ int g(int);\n\
                  __global__ void k(int* x) { *x = f(*x) + g(B); }\n";
    let mut request = CompileRequest::new("k", source, "sm_90".parse().expect("a target"));
    request.bundles = vec![read("h.bundle"), read("f.bundle")];
    let compiler = Compiler::open(&nvrtc()).expect("NVRTC");
    let settings = CacheSettings::in_folder(&folder.join("cache"));
    let cache = KernelCache::with(compiler, settings, None);
    let image = cache.get(&request, &CallLimits::default()).expect("linked");
    assert!(image.compiled.image.starts_with(b"\x7fELF"));
}

#[test]
fn what_cannot_be_embedded_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    library(folder);
    std::fs::write(folder.join("bad.cu"), "this is no C++;\n").expect("written");
    std::fs::write(folder.join("latin.h"), b"// \xe9\n").expect("written");
    for (words, expected) in [
        ("missing.h -o b", "missing.h cannot be read"),
        ("/etc/passwd -o b", "/etc/passwd is in no base folder"),
        ("latin.h -o b", "not UTF-8 at byte 3 (line 1)"),
        ("--header-dir missing -o b", "missing cannot be read"),
        ("--lto f.cu -o b", "f.cu: name the architectures"),
        (
            "--lto f.cu --arch native -o b",
            "\"native\" is no architecture",
        ),
        (
            "--lto bad.cu --arch 90 -o b",
            "bad.cu: it does not compile to LTO-IR",
        ),
        (
            "--lto f.cu --arch 20 -o b",
            "f.cu: it does not compile to LTO-IR",
        ),
        (
            "--lto missing.cu --arch 90 -o b",
            "missing.cu: it does not compile",
        ),
        ("--headers-from missing -o b", "missing cannot be read"),
        ("f.cu -o no/such/folder", "cannot write no/such/folder"),
        ("f.cu -o b --c-source b.c", "--accessor"),
        ("f.cu -o b --accessor a-b", "a-b"),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let done = embed(folder, &words);
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(expected), "{words:?}: {said}");
        assert!(!folder.join("b").exists(), "{words:?}");
    }
}
