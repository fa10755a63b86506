//! `warpcc fatbin` as people and scripts call it: output, files, exit codes.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;
use warpcc_testkit::Toolkit;

const SOURCE: &str = "template <typename T> __global__ void scale(T *p) { *p *= 2; }\n\
                      template __global__ void scale<float>(float *);\n";

/// A folder with `a.fatbin`, `b.fatbin` of other code, `same/a.fatbin`, and text.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::create_dir(at.join("same")).expect("made");
    for (name, source) in [
        ("a", SOURCE.to_owned()),
        ("b", SOURCE.replace("*p *= 2", "*p = sinf(*p)")),
    ] {
        std::fs::write(at.join(format!("{name}.cu")), source).expect("written");
        let done = Toolkit::newest()
            .nvcc_with_small_headers(at)
            .args([
                "-fatbin",
                "-gencode",
                "arch=compute_80,code=sm_80",
                "-gencode",
            ])
            .args(["arch=compute_90,code=[sm_90,compute_90]", "-o"])
            .args([format!("{name}.fatbin"), format!("{name}.cu")])
            .status();
        assert!(done.expect("nvcc starts").success());
    }
    std::fs::copy(at.join("a.fatbin"), at.join("same/a.fatbin")).expect("copied");
    folder
}

fn warpcc(at: &Path, words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpcc"));
    command.current_dir(at).arg("fatbin");
    let output = command.args(words.split_whitespace()).output();
    output.expect("warpcc starts")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("an exit code")
}

#[test]
fn lists_for_people_and_programs_agree() {
    let folder = folder();
    let at = folder.path();
    let json = warpcc(at, "list --kernels --json a.fatbin");
    let images: Vec<serde_json::Value> = serde_json::from_slice(&json.stdout).expect("an array");
    let kinds: Vec<_> = images
        .iter()
        .map(|i| (i["kind"].as_str(), i["arch"].as_str()))
        .collect();
    assert_eq!(kinds.len(), 3);
    assert!(
        kinds.contains(&(Some("ptx"), Some("sm_90")))
            && kinds.contains(&(Some("elf"), Some("sm_80")))
    );
    assert!(images.iter().all(|i| i["size"].as_u64() > Some(100)));
    assert!(images.iter().all(|i| i["schema"] == 1));
    let kernel = &images[0]["functions"][0];
    assert_eq!(kernel["demangled"], "void scale<float>(float*)");
    let lines = |words: &str| {
        let output = warpcc(at, words);
        assert_eq!(code(&output), 0, "{words}");
        text(&output).lines().count()
    };
    assert_eq!(lines("list --csv a.fatbin"), 1 + 3);
    assert_eq!(lines("list --kernels --csv a.fatbin"), 1 + 3);
    let shown = text(&warpcc(at, "list --kernels a.fatbin"));
    for word in [
        "sm_80",
        "sm_90",
        "compute_90",
        "regs",
        "scale<float>",
        "█",
        "CUDA 13.5",
    ] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    assert!(text(&warpcc(at, "list --summary .")).contains("all 3 files: 9 images"));
}

#[test]
fn pictures_are_well_formed_and_name_the_kernels() {
    let folder = folder();
    let at = folder.path();
    assert_eq!(
        code(&warpcc(
            at,
            "list --summary a.fatbin --svg p.svg --html p.html"
        )),
        0
    );
    let svg = std::fs::read_to_string(at.join("p.svg")).expect("written");
    let tree = roxmltree::Document::parse(&svg).expect("XML");
    let titles = tree.descendants().filter(|node| node.has_tag_name("title"));
    assert!(
        titles
            .filter_map(|t| t.text())
            .any(|t| t.contains("scale<float>"))
    );
    let html = std::fs::read_to_string(at.join("p.html")).expect("written");
    assert!(html.contains("scale&lt;float&gt;(float*)") && !html.contains("http://www.example"));
}

#[test]
fn extracted_files_never_collide_or_replace() {
    let folder = folder();
    let at = folder.path();
    assert_eq!(code(&warpcc(at, "extract -o out a.fatbin same")), 0);
    let names: BTreeSet<String> = at
        .join("out")
        .read_dir()
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    assert_eq!(names.len(), 6, "{names:?}");
    assert!(
        names
            .iter()
            .any(|n| n.starts_with("a.fatbin.c000.i") && n.ends_with(".sm_80.cubin"))
    );
    let again = warpcc(at, "extract -o out a.fatbin");
    assert_eq!(code(&again), 2);
    assert_eq!(code(&warpcc(at, "extract --force -o out a.fatbin")), 0);
    assert_eq!(code(&warpcc(at, "extract -o ptx --kind ptx a.fatbin")), 0);
    assert_eq!(at.join("ptx").read_dir().expect("a folder").count(), 1);
}

#[test]
fn a_difference_is_told_and_is_an_exit_code() {
    let folder = folder();
    let at = folder.path();
    assert_eq!(code(&warpcc(at, "diff a.fatbin same/a.fatbin")), 0);
    let other = warpcc(at, "diff a.fatbin b.fatbin");
    assert_eq!(code(&other), 1);
    let said = text(&other);
    assert!(
        said.contains("~ sm_90 void scale<float>(float*)") && said.contains("code "),
        "{said}"
    );
    assert_eq!(code(&warpcc(at, "diff a.fatbin a.cu")), 2);
}

#[test]
fn check_answers_for_ci() {
    let folder = folder();
    let at = folder.path();
    for (words, expected) in [
        ("check a.fatbin --native sm_80,sm_90", 0),
        ("check a.fatbin --native sm_90 --gpu next", 0),
        ("check a.fatbin --native sm_100", 1),
        ("check a.fatbin --gpu sm_100", 0),
        ("check a.fatbin --gpu sm_75", 1),
        // PTX 9.5 of 13.5 on a driver of 13.0.
        ("check a.fatbin --gpu sm_100 --driver 13.0", 1),
        ("check a.fatbin --gpu sm_90 --disable-ptx-jit", 0),
        ("check a.fatbin --gpu sm_100 --disable-ptx-jit", 1),
        ("check a.cu --gpu sm_90", 2),
        ("check a.fatbin", 2),
        ("check a.fatbin --gpu sm_banana", 2),
    ] {
        assert_eq!(code(&warpcc(at, words)), expected, "{words}");
    }
    let json = warpcc(at, "check a.fatbin --json --gpu sm_75,sm_90");
    let verdicts: Vec<serde_json::Value> = serde_json::from_slice(&json.stdout).expect("an array");
    assert_eq!(
        (
            verdicts[0]["error"].as_u64(),
            verdicts[1]["outcome"].as_str()
        ),
        (Some(209), Some("run"))
    );
}

#[test]
fn concatenated_images_fail_with_a_driver_that_does_not_know_them() {
    let folder = folder();
    let at = folder.path();
    let done = Toolkit::newest()
        .nvcc_with_small_headers(at)
        .args(["-fatbin", "-compress-mode=size", "-Xfatbin=--concat"])
        .args(["-gencode", "arch=compute_90,code=sm_90"])
        .args(["-gencode", "arch=compute_90a,code=sm_90a"])
        .args(["a.cu", "-o", "c.fatbin"])
        .status();
    assert!(done.expect("nvcc starts").success());
    let old = warpcc(at, "check c.fatbin --json --gpu sm_90 --driver 13.0");
    assert_eq!(code(&old), 1);
    let verdicts: Vec<serde_json::Value> = serde_json::from_slice(&old.stdout).expect("an array");
    assert_eq!(verdicts[0]["error"], 209);
    let why = verdicts[0]["why"].to_string();
    assert!(why.contains("concatenated"), "{why}");
    for words in ["--driver 13.5", ""] {
        let new = warpcc(at, &format!("check c.fatbin --native sm_90 {words}"));
        assert_eq!(code(&new), 0, "{words}");
    }
}

#[test]
fn size_adds_up_and_keeps_to_a_budget() {
    let folder = folder();
    let at = folder.path();
    let length = at.join("a.fatbin").metadata().expect("a file").len();
    let json = warpcc(at, "size a.fatbin same --duplicates --json");
    assert_eq!(code(&json), 0);
    let sizes: serde_json::Value = serde_json::from_slice(&json.stdout).expect("an object");
    assert_eq!(sizes["schema"], 1);
    assert_eq!(sizes["device_bytes"], 2 * length);
    assert_eq!(sizes["duplicates"]["images"], 3);
    let targets: Vec<_> = sizes["targets"]
        .as_array()
        .expect("a list")
        .iter()
        .collect();
    assert_eq!(targets.len(), 3);
    assert!(targets.iter().all(|t| t["images"] == 2));
    assert_eq!(sizes["families"][0]["name"], "scale");

    let within = warpcc(at, &format!("size a.fatbin --budget {length}"));
    assert_eq!(code(&within), 0);
    let over = warpcc(at, &format!("size a.fatbin --budget {}", length - 1));
    assert_eq!(code(&over), 1);
    let said = String::from_utf8_lossy(&over.stderr).into_owned();
    assert!(
        said.contains("over the budget") && said.contains("as installed"),
        "{said}"
    );
    // No device code at all is a budget too.
    let none = warpcc(at, "size a.fatbin --budget 0");
    assert_eq!(code(&none), 1);
    // Neither is silence below the budget of a file that cannot be read.
    assert_eq!(code(&warpcc(at, "size a.cu --budget 1G")), 2);
    assert_eq!(code(&warpcc(at, "size a.fatbin --budget huge")), 2);
    let shown = text(&warpcc(at, "size a.fatbin --compression"));
    for word in [
        "sm_80",
        "by template",
        "by kernel",
        "scale<float>",
        "measured:",
        "balance",
    ] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
}

#[test]
fn thin_compresses_and_writes_into_a_folder() {
    let folder = folder();
    let at = folder.path();
    let done = warpcc(at, "thin --compress none a.fatbin -o out/");
    assert_eq!(code(&done), 0, "{done:?}");
    assert!(text(&done).contains("3 of 3 images kept"), "{done:?}");
    let length = |name: &str| at.join(name).metadata().expect("a file").len();
    assert!(length("out/a.fatbin") > length("a.fatbin"));
    assert_eq!(
        code(&warpcc(
            at,
            "thin --compress default out/a.fatbin -o b2.fatbin"
        )),
        0
    );
    assert_eq!(length("b2.fatbin"), length("a.fatbin"));
    assert_eq!(code(&warpcc(at, "thin --compress zip a.fatbin -o none")), 2);
}

#[test]
fn thin_writes_a_new_file_or_nothing() {
    let folder = folder();
    let at = folder.path();
    assert_eq!(
        code(&warpcc(at, "thin --keep sm_90+ptx a.fatbin -o t.fatbin")),
        0
    );
    assert!(text(&warpcc(at, "list --summary t.fatbin")).contains("2 images"));
    for words in [
        "thin --keep sm_75 a.fatbin -o none",
        "thin --keep sm_90 a.fatbin -o a.fatbin",
        "thin --keep sm_90 a.cu -o none",
    ] {
        let refused = warpcc(at, words);
        assert_eq!(code(&refused), 2, "{words}");
        assert!(
            !refused.stderr.is_empty() && !at.join("none").exists(),
            "{words}"
        );
    }
}

/// A GPU sm_90 takes machine code for sm_90a, where there is some, before that for sm_90.
#[test]
fn thin_keeps_what_a_gpu_loads() {
    let folder = folder();
    let at = folder.path();
    let arch = |arch: &str| format!("-gencode=arch=compute_{arch},code=sm_{arch}");
    let done = Toolkit::newest()
        .nvcc_with_small_headers(at)
        .args(["-fatbin", "a.cu", "-o", "both.fatbin"])
        .args([arch("80"), arch("90"), arch("90a")])
        .status();
    assert!(done.expect("nvcc starts").success());
    let images = |file: &str| {
        let listed = warpcc(at, &format!("list --json {file}"));
        let images: Vec<serde_json::Value> =
            serde_json::from_slice(&listed.stdout).expect("an array");
        let archs = images.iter().map(|image| image["arch"].to_string());
        archs.collect::<Vec<_>>()
    };
    assert_eq!(images("both.fatbin").len(), 3);
    let thinned = warpcc(at, "thin --gpu sm_90 both.fatbin -o one.fatbin");
    assert_eq!(code(&thinned), 0);
    assert_eq!(images("one.fatbin"), [images("both.fatbin")[2].clone()]);
    let listed = warpcc(at, "thin --keep sm_90 both.fatbin -o other.fatbin");
    assert_eq!(code(&listed), 0);
    assert!(
        text(&listed).contains("sm_90a is left out"),
        "{}",
        text(&listed)
    );
    let refused = warpcc(at, "thin --gpu sm_75 both.fatbin -o none");
    assert_eq!(code(&refused), 2);
    assert_eq!(code(&warpcc(at, "thin both.fatbin -o none")), 2);
}

#[test]
fn thin_replaces_no_link_and_no_pipe() {
    let folder = folder();
    let at = folder.path();
    let path = |name: &str| at.join(name);
    let keep = "thin --keep sm_90+ptx a.fatbin -o";
    assert_eq!(code(&warpcc(at, &format!("{keep} plain"))), 0);
    let plain = std::fs::read(path("plain")).expect("written");
    std::fs::write(path("target"), "old").expect("written");
    std::os::unix::fs::symlink("target", path("link")).expect("linked");
    assert_eq!(code(&warpcc(at, &format!("{keep} link"))), 0);
    assert!(path("link").is_symlink());
    assert_eq!(std::fs::read(path("target")).expect("readable"), plain);
    let made = Command::new("mkfifo").arg(path("pipe")).status();
    assert!(made.expect("mkfifo starts").success());
    let reader = path("pipe");
    let reader = std::thread::spawn(move || std::fs::read(reader).expect("readable"));
    assert_eq!(code(&warpcc(at, &format!("{keep} pipe"))), 0);
    assert_eq!(reader.join().expect("read"), plain);
    assert!(!path("pipe").is_file());
}

#[test]
fn damage_is_told_and_the_rest_is_listed() {
    let folder = folder();
    let at = folder.path();
    let whole = std::fs::read(at.join("a.fatbin")).expect("readable");
    std::fs::write(at.join("cut.fatbin"), &whole[..whole.len() - 100]).expect("written");
    let cut = warpcc(at, "list --json cut.fatbin a.fatbin");
    assert_eq!(code(&cut), 1);
    let images: Vec<serde_json::Value> = serde_json::from_slice(&cut.stdout).expect("an array");
    assert_eq!(images.len(), 2 + 3);
    assert!(String::from_utf8_lossy(&cut.stderr).contains("truncated"));
    assert_eq!(code(&warpcc(at, "list a.cu")), 2);
    assert_eq!(code(&warpcc(at, "list nowhere")), 2);
}
