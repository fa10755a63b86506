//! Kernels that include embedded headers and call functions of embedded LTO-IR.

mod space;

use std::path::Path;

use space::{Nvrtc, cache_in, cached, get, open_compiler, request};
use warpcc_rtc::{
    Bundle, BundleMaker, CacheSettings, CallLimits, CompileRequest, Environment, ErrorKind, Found,
    KernelCache, Linker, Text,
};
use warpcc_testkit::Toolkit;

const KERNEL: &str = "#include <lib/a.cuh>\n\
                      __device__ int from_fragment(int);\n\
                      template <class T> __global__ void k(T* x) { *x = from_fragment(*x) + A + B; }\n";
const FRAGMENT: &str = "__device__ int from_fragment(int x) { return 2 * x; }\n";

fn headers(b: &str) -> Bundle {
    let mut maker = BundleMaker::new();
    let a = "#pragma once\n#include \"detail/b.cuh\"\n#define A 1\n";
    maker.header("lib/a.cuh", a.as_bytes()).expect("added");
    maker
        .header("lib/detail/b.cuh", b.as_bytes())
        .expect("added");
    maker.header("lib/empty.cuh", b"").expect("added");
    Bundle::open(maker.finish().expect("made")).expect("a bundle")
}

/// LTO-IR that NVRTC makes.
fn fragment(nvrtc: &Nvrtc, source: &str, arch: &str) -> Vec<u8> {
    let mut one = request("f", source, arch);
    one.options.push("-rdc=true".into());
    let made = open_compiler(nvrtc).compile(&one, &CallLimits::default());
    made.expect("compiles").image.to_vec()
}

fn fragments(all: &[(&str, &[u8])]) -> Bundle {
    let mut maker = BundleMaker::new();
    for (name, bytes) in all {
        maker.fragment(name, bytes).expect("added");
    }
    Bundle::open(maker.finish().expect("made")).expect("a bundle")
}

fn kernel(bundles: &[&Bundle], target: &str) -> CompileRequest {
    let mut one = request("k<int>", KERNEL, target);
    one.name_expressions.push("k<int>".into());
    one.bundles = bundles.iter().map(|bundle| (*bundle).clone()).collect();
    one
}

fn linker(nvrtc: &Nvrtc) -> Linker {
    // 12.0 has a wheel for each library.
    let folder = match nvrtc.version {
        "12.0" => nvrtc.folder.join("../../nvjitlink/lib"),
        _ => nvrtc.folder.clone(),
    };
    Linker::find_with(None, Some(&folder), &Environment::default()).expect("nvJitLink")
}

#[test]
fn a_kernel_includes_headers_and_is_linked_with_fragments_once() {
    for nvrtc in Nvrtc::all() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || {
            let settings = CacheSettings::in_folder(folder.path());
            KernelCache::with(open_compiler(&nvrtc), settings, None).linked_with(linker(&nvrtc))
        };
        let bytes = fragment(&nvrtc, FRAGMENT, "lto_80");
        let two = fragment(
            &nvrtc,
            "__device__ int unused(int x) { return x; }",
            "lto_80",
        );
        let ours = fragments(&[("f.cu", &bytes), ("g.cu", &two)]);
        // The same piece in another bundle is linked once.
        let again = fragments(&[("copy.cu", &bytes)]);
        let one = kernel(&[&headers("#define B 2\n"), &ours, &again], "sm_80");
        let made = get(&open(), &one);
        assert_eq!(made.found, Found::Made);
        assert!(made.compiled.image.starts_with(b"\x7fELF"));
        let name = made.compiled.lowered_name("k<int>").expect("its name");
        assert_eq!(name, "_Z1kIiEvPT_");
        let section = format!(".text.{name}\0");
        let has = |part: &[u8]| made.compiled.image.windows(part.len()).any(|w| w == part);
        assert!(has(section.as_bytes()), "{}", nvrtc.version);
        let cache = open();
        let found = get(&cache, &one);
        assert_eq!(found.found, Found::Disk);
        assert_eq!(found.compiled, made.compiled);
        // Equal bundles from elsewhere are the same.
        let other = kernel(&[&headers("#define B 2\n"), &ours.clone(), &again], "sm_80");
        assert_eq!(get(&cache, &other).found, Found::Memory);
        let other = kernel(&[&headers("#define B 3\n"), &ours, &again], "sm_80");
        assert!(cached(&cache, &other).is_none(), "a header was edited");
        let other = kernel(&[&headers("#define B 2\n"), &ours], "sm_80");
        assert!(cached(&cache, &other).is_none(), "a bundle is missing");
    }
}

#[test]
fn what_is_missing_is_named_before_anything_is_linked() {
    let nvrtc = Nvrtc::newest();
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache_in(folder.path());
    let error = |one: &CompileRequest| {
        let error = cache.get(one, &CallLimits::default());
        error.expect_err("refused")
    };
    let fat = fat_fragment(folder.path(), "--generate-code=arch=compute_90,code=lto_90");
    let headers = headers("#define B 2\n");
    let fragment = fragments(&[("f.cu", &fat)]);
    let refused = error(&kernel(&[&headers, &fragment], "sm_80"));
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    let text = refused.to_string();
    let expected = "fragment \"f.cu\": it has LTO-IR for lto_90 only, and nothing that links for sm_80: embed it for 80 too";
    assert_eq!(text, expected);
    // Newer GPUs take it.
    for target in ["sm_90", "sm_90a", "sm_100"] {
        get(&cache, &kernel(&[&headers, &fragment], target));
    }
    // A fat binary with machine code only.
    let fat = fat_fragment(folder.path(), "--generate-code=arch=compute_90,code=sm_90");
    let none = error(&kernel(&[&headers, &fragments(&[("f.cu", &fat)])], "sm_90"));
    assert!(none.to_string().contains("it has no LTO-IR"), "{none}");
    // The function is in no fragment.
    let other = self::fragment(
        &nvrtc,
        "__device__ int other(int x) { return x; }",
        "lto_90",
    );
    let unresolved = error(&kernel(
        &[&headers, &fragments(&[("g.cu", &other)])],
        "sm_90",
    ));
    assert_eq!(unresolved.kind(), ErrorKind::Link);
    assert!(
        unresolved.to_string().contains("from_fragment"),
        "{unresolved}"
    );
    let ptx = error(&kernel(&[&headers, &fragment], "compute_90"));
    assert_eq!(ptx.kind(), ErrorKind::Invalid);
    // Garbage as LTO-IR.
    let garbage = error(&kernel(
        &[&headers, &fragments(&[("f.cu", b"no LTO-IR")])],
        "sm_90",
    ));
    assert_eq!(garbage.kind(), ErrorKind::Link, "{garbage}");
    // An error in a header names the header.
    let broken = self::headers("#error on purpose\n");
    let broken = error(&kernel(&[&broken], "sm_90"));
    let text = broken.to_string();
    assert!(
        text.contains("lib/detail/b.cuh(1)") && text.contains("on purpose"),
        "{text}"
    );
    assert!(cache.remarks().is_empty(), "{:?}", cache.remarks());
}

/// A fat binary of the fragment, by nvcc.
fn fat_fragment(folder: &Path, code: &str) -> Vec<u8> {
    let source = folder.join("f.cu");
    std::fs::write(&source, FRAGMENT).expect("written");
    let output = folder.join("f.fatbin");
    let mut command = Toolkit::newest().nvcc_with_small_headers(folder);
    command.args(["-fatbin", "-rdc=true", code, "-o"]);
    let status = command.args([&output, &source]).status();
    assert!(status.expect("nvcc starts").success());
    std::fs::read(output).expect("a fat binary")
}

#[test]
fn embedded_headers_that_include_files_are_searched_for_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache_in(&folder.path().join("cache"));
    let file = folder.path().join("outside.h");
    std::fs::write(&file, "#define B 1\n").expect("written");
    let mut one = kernel(&[&headers("#include <outside.h>\n")], "lto_90");
    one.include_folders.push(folder.path().to_path_buf());
    assert_eq!(get(&cache, &one).found, Found::Made);
    assert_eq!(get(&cache, &one).found, Found::Memory);
    std::fs::write(&file, "#define B 2\n").expect("written");
    assert_eq!(get(&cache, &one).found, Found::Made);
}

#[test]
fn a_header_as_text_does_not_hide_an_embedded_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache_in(folder.path());
    let mut one = kernel(&[&headers("#define B 2\n")], "lto_90");
    one.headers.push(Text::new("lib/a.cuh", "#define A 7\n"));
    let error = cache
        .get(&one, &CallLimits::default())
        .expect_err("two headers");
    assert!(error.to_string().contains("lib/a.cuh"), "{error}");
}

#[test]
fn damaged_contents_are_an_error_only_where_they_are_needed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut maker = BundleMaker::new();
    maker
        .header("lib/a.cuh", b"#define A 1\n#define B 2\n")
        .expect("added");
    let mut bytes = maker.finish().expect("made");
    let whole = Bundle::open(bytes.clone()).expect("a bundle");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let damaged = Bundle::open(bytes).expect("its list is whole");
    let cache = cache_in(folder.path());
    let error = cache.get(&kernel(&[&damaged], "lto_90"), &CallLimits::default());
    let error = error.expect_err("damaged");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error.to_string().contains("damaged; make it again"),
        "{error}"
    );
    assert_eq!(get(&cache, &kernel(&[&whole], "lto_90")).found, Found::Made);
    // What was made of the whole one is what the damaged one means.
    let again = cache_in(folder.path());
    assert_eq!(
        get(&again, &kernel(&[&damaged], "lto_90")).found,
        Found::Disk
    );
}

#[test]
fn options_of_code_generation_reach_the_linker() {
    for nvrtc in Nvrtc::all() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = CacheSettings::in_folder(folder.path());
        let cache =
            KernelCache::with(open_compiler(&nvrtc), settings, None).linked_with(linker(&nvrtc));
        let source = "__device__ float from_fragment(float);\n\
                      extern \"C\" __global__ void k(float* x) { *x = from_fragment(*x) / x[1]; }\n";
        let fragment = "__device__ float from_fragment(float x) { return x / 3.7f; }\n";
        let fragment = fragments(&[("f.cu", &fragment_of(&nvrtc, fragment))]);
        let image = |options: &[&str]| {
            let mut one = request("k", source, "sm_90");
            one.bundles.push(fragment.clone());
            one.options = options.iter().map(|option| (*option).into()).collect();
            get(&cache, &one).compiled.image.clone()
        };
        let plain = image(&[]);
        let fast = image(&["--use_fast_math"]);
        assert!(fast.len() < plain.len(), "{}", nvrtc.version);
        for options in [
            &["-use_fast_math"][..],
            &[
                "--ftz=true",
                "--prec-div=false",
                "--prec-sqrt=false",
                "--fmad=true",
            ],
            &["-ftz=false", "-prec-div=true"],
            &["--maxrregcount=32"],
            &["-maxrregcount=32", "-rdc=true"],
            &["-lineinfo"],
            &["--generate-line-info"],
            &["--device-debug"],
            &["-G"],
        ] {
            assert!(image(options).starts_with(b"\x7fELF"), "{options:?}");
        }
        let lines = image(&["-lineinfo"]);
        let has = |image: &[u8], part: &[u8]| image.windows(part.len()).any(|w| w == part);
        assert!(has(&lines, b".debug_line"), "{}", nvrtc.version);
        assert!(!has(&plain, b".debug_line"), "{}", nvrtc.version);
    }
}

fn fragment_of(nvrtc: &Nvrtc, source: &str) -> Vec<u8> {
    fragment(nvrtc, source, "lto_80")
}

#[test]
fn many_kernels_with_bundles_are_made_in_threads() {
    let nvrtc = Nvrtc::newest();
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache_in(folder.path());
    let ours = fragments(&[("f.cu", &fragment(&nvrtc, FRAGMENT, "lto_80"))]);
    let headers = headers("#define B 2\n");
    let all: Vec<CompileRequest> = (0..8)
        .map(|number| {
            let mut one = kernel(&[&headers, &ours], "sm_90");
            one.options.push(format!("-DN={number}").into());
            one
        })
        .collect();
    let options = warpcc_rtc::ManyOptions::default();
    let images = cache.get_many(&all, &options, &CallLimits::default(), |_| true);
    assert_eq!(images.len(), 8);
    for image in images {
        assert!(
            image
                .expect("linked")
                .compiled
                .image
                .starts_with(b"\x7fELF")
        );
    }
}

#[test]
fn what_has_bundles_is_not_recorded_and_that_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("recorded.toml");
    let cache = cache_in(&folder.path().join("cache")).recorded_in(&file);
    let one = kernel(&[&headers("#define B 2\n")], "lto_90");
    get(&cache, &one);
    get(&cache, &one);
    let remarks = cache.remarks();
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    assert!(remarks[0].contains("embedded headers"), "{remarks:?}");
    assert!(!file.exists());
}
