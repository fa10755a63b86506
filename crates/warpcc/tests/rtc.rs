//! Tests `warpcc rtc` as people and CI call it: the files it writes, and the kernels that a program then finds.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use warpcc_rtc::{
    CacheSettings, CallLimits, CompileRequest, Compiler, Environment, Found, KernelCache, Target,
    Text,
};
use warpcc_testkit::Toolkit;

const SCALE: &str =
    "#include \"type.h\"\ntemplate<class T> __global__ void scale(T* x) { *x *= N; }\n";

fn nvrtc() -> PathBuf {
    let nvcc = Toolkit::newest().nvcc;
    let nvcc = nvcc.canonicalize().expect("a toolkit");
    nvcc.parent()
        .and_then(Path::parent)
        .expect("a folder")
        .join("lib")
}

fn warpcc(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warpcc"))
        .current_dir(folder)
        .env_clear()
        .env("WARPCC_NVRTC", nvrtc())
        .env("WARPCC_RTC_CACHE", folder.join("cache"))
        .args(args)
        .output()
        .expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_kernel_becomes_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("scale.cu"), SCALE).expect("written");
    std::fs::create_dir(folder.path().join("include")).expect("a folder");
    std::fs::write(folder.path().join("include/type.h"), "// a type\n").expect("written");
    let words =
        "rtc compile scale.cu --name scale<float> --name scale<int> --arch sm_90 -D N=4 -I include";
    let words: Vec<_> = words.split(' ').collect();
    let done = warpcc(folder.path(), &words);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let told = text(&done.stderr);
    assert!(told.contains("wrote scale.cubin, "), "{told}");
    assert_eq!(
        text(&done.stdout),
        "scale<float>  _Z5scaleIfEvPT_\nscale<int>  _Z5scaleIiEvPT_\n"
    );
    let cubin = std::fs::read(folder.path().join("scale.cubin")).expect("a cubin");
    assert!(cubin.starts_with(b"\x7fELF") && text(&cubin).contains(".text._Z5scaleIiEvPT_"));
    // Again, from the cache, and as JSON.
    let again: Vec<_> = words
        .iter()
        .copied()
        .chain(["--json", "-o", "again.cubin"])
        .collect();
    let done = warpcc(folder.path(), &again);
    assert!(
        text(&done.stdout).contains("\"result\": \"disk\""),
        "{}",
        text(&done.stdout)
    );
    assert_eq!(
        std::fs::read(folder.path().join("again.cubin")).expect("a cubin"),
        cubin
    );
}

#[test]
fn stats_counts_what_programs_found_and_compiled() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "__global__ void k() {}\n";
    std::fs::write(folder.path().join("k.cu"), source).expect("written");
    let stats = |words: &[&str]| {
        let mut all = vec!["stats"];
        all.extend(words);
        let done = Command::new(env!("CARGO_BIN_EXE_warpcc"))
            .env_clear()
            .env("WARPCC_DIR", folder.path().join("builds"))
            .env("WARPCC_RTC_CACHE", folder.path().join("cache"))
            .args(all)
            .output()
            .expect("it starts");
        assert!(done.status.success(), "{}", text(&done.stderr));
        text(&done.stdout)
    };
    assert!(!stats(&[]).contains("run time"));
    for _ in 0..3 {
        let words = ["rtc", "compile", "k.cu", "--name", "k", "--arch", "sm_90"];
        let done = warpcc(folder.path(), &words);
        assert!(done.status.success(), "{}", text(&done.stderr));
    }
    let told = stats(&["--zero"]);
    let expected = "Kernels at run time: 2 found on disk, 0 in shared caches (";
    assert!(
        told.contains(expected) && told.contains("), 1 compiled ("),
        "{told}"
    );
    assert!(!told.contains("(0 s)"), "{told}");
    assert!(!stats(&[]).contains("run time"), "they are reset");
}

#[test]
fn why_names_what_differs_from_the_most_similar_kernel() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str, text: &str| std::fs::write(at(name), text).expect("written");
    write("scale.cu", SCALE);
    write("type.h", "// a type\n");
    let options = "scale.cu --name scale<float> -I .";
    let run = |command: &str, more: &str| {
        let words = format!("rtc {command} {options} {more}");
        let done = warpcc(folder.path(), &words.split(' ').collect::<Vec<_>>());
        (done.status.code(), text(&done.stdout) + &text(&done.stderr))
    };
    let asked = |more: &str, code: i32, expected: &[&str]| {
        let (exit, told) = run("why", more);
        assert_eq!(exit, Some(code), "{told}");
        let lines: Vec<_> = told.lines().filter(|line| line.starts_with("  ")).collect();
        assert_eq!(lines, expected, "{told}");
        told
    };
    let usual = "--arch sm_90 -D N=4";
    assert!(asked(usual, 1, &[]).starts_with("No kernel named scale<float>"));
    for more in [usual, "--arch sm_80 -D N=4 -D M=1"] {
        assert_eq!(run("compile", more).0, Some(0));
    }
    assert!(asked(usual, 0, &[]).contains("is in the cache"));
    // Each is compared with the one that it has most in common with.
    asked(
        "--arch sm_90 -D N=5",
        1,
        &["  option: -DN=5 now, -DN=4 before"],
    );
    asked("--arch sm_80 -D N=4", 1, &["  option: -DM=1 is gone"]);
    write("type.h", "// another type\n");
    asked(usual, 1, &["  file type.h: different content"]);
    write("type.h", "// a type\n");
    write("scale.cu", &SCALE.replace("*x *=", "*x +="));
    asked(usual, 1, &["  source: first differs in line 2"]);
    let (_, json) = run("why", &format!("{usual} --json"));
    assert!(
        json.contains("\"differs\"") && json.contains("\"line\": 2"),
        "{json}"
    );
    write("scale.cu", SCALE);
    std::fs::remove_dir_all(at("cache/kernels-v4")).expect("removed");
    assert!(asked(usual, 1, &[]).contains("was removed later"));
    // Asking compiles and keeps nothing.
    assert!(asked(usual, 1, &[]).contains("was removed later"));
}

#[test]
fn failures_have_exit_codes() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(
        folder.path().join("bad.cu"),
        "\n__global__ void k() { oops; }\n",
    )
    .expect("written");
    let run = |words: &str| warpcc(folder.path(), &words.split(' ').collect::<Vec<_>>());
    let done = run("rtc compile bad.cu --name k --arch sm_90");
    assert_eq!(done.status.code(), Some(1));
    let told = text(&done.stderr);
    assert!(
        told.contains("bad.cu:2: ")
            && told.contains("bad.cu(2): error")
            && told.contains("oops")
            && told.contains("/failed/k-"),
        "{told}"
    );
    assert!(!folder.path().join("bad.cubin").exists());
    for words in [
        "rtc compile bad.cu --name k --arch sm_90 --option=-arch=sm_80",
        "rtc compile missing.cu --name k --arch sm_90",
        "rtc compile bad.cu --name k --arch sm_90 --nvrtc /nowhere",
        "rtc compile bad.cu --name k --arch 90",
        "rtc warm missing.toml",
    ] {
        assert_eq!(run(words).status.code(), Some(2), "{words}");
    }
}

const MANIFEST: &str = "\
targets = [\"sm_80\", \"sm_90\"]
options = [\"--std=c++17\"]
preamble = [\"common.h\"]

[headers]
\"type.h\" = \"common.h\"

[[kernel]]
source = \"scale.cu\"
names = [\"scale<float>\", \"scale<double>\"]
parameters = [\"#define N 2\", \"#define N 3\"]
";

#[test]
fn a_program_finds_what_was_warmed_and_compiles_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, content) in [
        ("scale.cu", SCALE),
        ("common.h", "#pragma once\n"),
        ("kernels.toml", MANIFEST),
    ] {
        std::fs::write(folder.path().join(name), content).expect("written");
    }
    let done = warpcc(folder.path(), &["rtc", "warm", "kernels.toml"]);
    assert!(
        done.status.success(),
        "{}{}",
        text(&done.stdout),
        text(&done.stderr)
    );
    assert!(
        text(&done.stdout).starts_with("8 images"),
        "{}",
        text(&done.stdout)
    );
    assert!(text(&done.stdout).contains("8 compiled now, 0 there already"));
    // The program's own settings, as in docs/rtc.md.
    let mut common = CompileRequest::new("", "", "sm_90".parse().expect("a target"));
    common.options = vec!["--std=c++17".into()];
    common.preamble = vec![Text::new("common.h", "#pragma once\n")];
    common.headers = vec![Text::new("type.h", "#pragma once\n")];
    let compiler = Compiler::open(&nvrtc()).expect("NVRTC");
    let settings = CacheSettings::in_folder(&folder.path().join("cache"));
    let cache = KernelCache::with(compiler, settings, None).compiled_with(common.clone());
    for target in ["sm_80", "sm_90"] {
        let target: Target = target.parse().expect("a target");
        for name in ["scale<float>", "scale<double>"] {
            for parameters in ["#define N 2", "#define N 3"] {
                let image =
                    cache.get_image(parameters, name, SCALE, target, &CallLimits::default());
                assert_eq!(image.expect("there").found, Found::Disk);
            }
        }
    }
    let done = warpcc(folder.path(), &["rtc", "warm", "kernels.toml"]);
    assert!(
        text(&done.stdout).contains("0 compiled now, 8 there already"),
        "{}",
        text(&done.stdout)
    );
    // The same as one file, for a program that has an empty cache; also where everything was there already.
    let packed = ["rtc", "warm", "kernels.toml", "--pack", "ours.warpcc-pack"];
    let done = warpcc(folder.path(), &packed);
    assert!(text(&done.stdout).ends_with("pack: ours.warpcc-pack\n"));
    let environment = Environment::from_variables([
        ("WARPCC_RTC_CACHE", folder.path().join("empty")),
        ("WARPCC_RTC_PACKS", folder.path().join("ours.warpcc-pack")),
    ]);
    let settings = CacheSettings::from_environment(&environment);
    let compiler = Compiler::open(&nvrtc()).expect("NVRTC");
    let cache = KernelCache::with(compiler, settings, None).compiled_with(common);
    let (sm_90, limits) = ("sm_90".parse().expect("a target"), CallLimits::default());
    let image = cache.get_image("#define N 3", "scale<double>", SCALE, sm_90, &limits);
    assert_eq!(image.expect("there").found, Found::Disk);
    assert_eq!(cache.counts().made, 0);
    // A kernel that does not compile does not stop the others from being kept.
    let more = format!("{MANIFEST}\n[[kernel]]\nsource = \"common.h\"\nnames = [\"missing\"]\n");
    std::fs::write(folder.path().join("kernels.toml"), more).expect("written");
    let done = warpcc(folder.path(), &["rtc", "warm", "kernels.toml"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(
        text(&done.stdout).contains("FAILED  missing for sm_90"),
        "{}",
        text(&done.stdout)
    );
}

#[test]
fn many_kernels_are_warmed_without_a_remark() {
    let folder = tempfile::tempdir().expect("a folder");
    let text_of = |number| format!("\"#define N {number}\"");
    let parameters: Vec<String> = (0..24).map(text_of).collect();
    let manifest = format!(
        "targets = [\"sm_90\"]\n[[kernel]]\nsource = \"k.cu\"\nnames = [\"k<float>\"]\nparameters = [{}]\n",
        parameters.join(", ")
    );
    let source = "template<class T> __global__ void k(T* x) { *x = N; }\n";
    std::fs::write(folder.path().join("k.cu"), source).expect("written");
    std::fs::write(folder.path().join("kernels.toml"), manifest).expect("written");
    let done = warpcc(folder.path(), &["rtc", "warm", "kernels.toml"]);
    assert!(
        text(&done.stdout).contains("24 compiled now"),
        "{}",
        text(&done.stdout)
    );
    // A process that compiles would leave a remark if it failed.
    let told = text(&done.stderr);
    assert!(done.status.success() && !told.contains("process"), "{told}");
    // People cannot use the command that `warm` starts.
    let done = warpcc(folder.path(), &["rtc", "worker"]);
    assert_eq!(done.status.code(), Some(2));
    let why = "only that can start it";
    assert!(text(&done.stderr).contains(why), "{}", text(&done.stderr));
}

#[test]
fn recorded_kernels_are_compiled_ahead_for_other_gpus() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("include")).expect("a folder");
    std::fs::write(at("include/type.h"), "// a type\n").expect("written");
    let record = at("recorded.toml");
    // Characters that TOML could take for the end of a string, or for other line endings.
    let odd = "// ''' \"\"\" \\ \u{7f} \u{e9}\r\n__global__ void odd() {}'";
    let odd = odd.replace("{}'", "{} // '");
    let program = |target: &str, cache: &str, record: Option<&Path>| -> Vec<Found> {
        let target: Target = target.parse().expect("a target");
        let mut common = CompileRequest::new("", "", target);
        common.include_folders = vec![at("include")];
        common.options = vec!["-DN=4".into(), "--std=c++20".into()];
        common.headers = vec![Text::new("b.h", "\n// b\n"), Text::new("a.h", "")];
        let compiler = Compiler::open(&nvrtc()).expect("NVRTC");
        let settings = CacheSettings::in_folder(&at(cache));
        let mut cache = KernelCache::with(compiler, settings, None).compiled_with(common);
        if let Some(record) = record {
            cache = cache.recorded_in(record);
        }
        let limits = CallLimits::default();
        let kernels = [("", "scale<float>", SCALE), ("#define P 1", "odd", &*odd)];
        let mut found: Vec<_> = kernels
            .iter()
            .map(|(parameters, name, source)| {
                let image = cache.get_image(parameters, name, source, target, &limits);
                image.expect("it compiles").found
            })
            .collect();
        let intermediate = "lto_80".parse().expect("a target");
        let image = cache.get_image("", "odd", &odd, intermediate, &limits);
        found.push(image.expect("it compiles").found);
        let Target::Cubin(arch) = target else {
            panic!("machine code")
        };
        let ptx = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\0";
        let image = cache.load_ptx("old", ptx, arch, &limits);
        found.push(image.expect("it compiles").found);
        assert!(cache.remarks().is_empty(), "{:?}", cache.remarks());
        found
    };
    assert_eq!(program("sm_90", "asked", Some(&record)), [Found::Made; 4]);
    let words = [
        "rtc",
        "warm",
        "recorded.toml",
        "--arch",
        "sm_80",
        "--arch",
        "sm_86",
    ];
    let done = warpcc(folder.path(), &words);
    let said = text(&done.stdout);
    assert!(done.status.success(), "{said}{}", text(&done.stderr));
    // Machine code for both targets, and one intermediate form for all.
    assert!(said.starts_with("7 images"), "{said}");
    for target in ["sm_80", "sm_86"] {
        assert_eq!(program(target, "cache", None), [Found::Disk; 4], "{target}");
    }
    // A program whose record cannot be written goes on.
    let compiler = Compiler::open(&nvrtc()).expect("NVRTC");
    let settings = CacheSettings::in_folder(&at("asked"));
    let cache = KernelCache::with(compiler, settings, None).recorded_in(&at("missing/file"));
    let target = "sm_80".parse().expect("a target");
    let limits = CallLimits::default();
    let image = cache.get_image("", "k", "__global__ void k() {}", target, &limits);
    assert_eq!(image.expect("it compiles").found, Found::Made);
    let remarks = cache.remarks().join(" ");
    assert!(remarks.contains("missing/file"), "{remarks}");
}

#[test]
fn without_a_folder_there_is_nothing_to_warm() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, content) in [
        ("scale.cu", SCALE),
        ("common.h", ""),
        ("kernels.toml", MANIFEST),
    ] {
        std::fs::write(folder.path().join(name), content).expect("written");
    }
    let done = Command::new(env!("CARGO_BIN_EXE_warpcc"))
        .current_dir(folder.path())
        .env_clear()
        .env("WARPCC_NVRTC", nvrtc())
        .env("CUDA_CACHE_DISABLE", "1")
        .args(["rtc", "warm", "kernels.toml"])
        .output()
        .expect("it starts");
    assert_eq!(done.status.code(), Some(2), "{}", text(&done.stderr));
}
