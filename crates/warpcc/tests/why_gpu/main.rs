//! `warpcc why-gpu` over environments that the test makes: one package for each answer.

mod layouts;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;
use warpcc_testkit::Toolkit;

const SOURCE: &str = "__global__ void scale(float *p) { *p *= 2; }\nextern \"C\" int go() { scale<<<1, 1>>>(nullptr); return 0; }\n";
/// In a container's root.
const PLACE: &str = "root/opt/venv/lib/python3.12/site-packages";

/// A package with one library of these images.
fn package(at: &Path, name: &str, gencode: &[&str]) {
    let site = at.join(PLACE);
    fs::create_dir_all(site.join(name)).expect("made");
    let info = site.join(format!("{name}-1.0+cu130.dist-info"));
    fs::create_dir_all(&info).expect("made");
    fs::write(
        info.join("METADATA"),
        format!("Metadata-Version: 2.1\nName: {name}\nVersion: 1.0+cu130\n\nName: not this\n"),
    )
    .expect("written");
    let mut record = format!("{name}/__init__.py,,\n{name}-1.0+cu130.dist-info/RECORD,,\n");
    if !gencode.is_empty() {
        let library = format!("{name}/lib{name}.so");
        let done = Toolkit::newest()
            .nvcc_with_small_headers(at)
            .args(["-shared", "-Xcompiler", "-fPIC", "a.cu", "-o"])
            .arg(site.join(&library))
            .args(gencode.iter().map(|code| format!("-gencode={code}")))
            .status();
        assert!(done.expect("nvcc starts").success());
        record += &format!("\"{library}\",sha256=x,1\n");
        // Named as a library, and none.
        fs::write(site.join(name).join("libscript.so"), "INPUT(-lm)\n").expect("written");
        record += &format!("{name}/libscript.so,sha256=x,1\n");
    }
    fs::write(info.join("RECORD"), record).expect("written");
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    fs::write(at.join("a.cu"), SOURCE).expect("written");
    package(
        at,
        "native",
        &["arch=compute_90,code=sm_90", "arch=compute_80,code=sm_80"],
    );
    package(at, "Old_Style", &["arch=compute_80,code=sm_80"]);
    package(at, "text", &["arch=compute_80,code=compute_80"]);
    package(at, "pure", &[]);
    folder
}

fn why_gpu(at: &Path, words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpcc"));
    command
        .current_dir(at)
        .arg("why-gpu")
        .args(words.split_whitespace());
    for name in [
        "CUDA_FORCE_PTX_JIT",
        "CUDA_DISABLE_PTX_JIT",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
    ] {
        command.env_remove(name);
    }
    command.output().expect("warpcc starts")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("an exit code")
}

/// Each package's answer and first error.
fn answers(at: &Path, words: &str) -> Vec<(String, String, Option<u64>)> {
    let output = why_gpu(at, &format!("--json {words}"));
    let said: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(said["schema"], 1);
    let packages = said["packages"].as_array().expect("a list");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let one = |p: &Value| {
        (
            text(&p["package"]),
            text(&p["answer"]),
            p["failures"][0]["error"].as_u64(),
        )
    };
    packages.iter().map(one).collect()
}

#[test]
fn every_answer_has_its_reason_and_its_advice() {
    let folder = folder();
    let at = folder.path();
    let answer =
        |package: &str, answer: &str, error| (package.to_owned(), answer.to_owned(), error);
    assert_eq!(
        answers(at, "--root root --gpu H100 --driver 13.5"),
        [
            answer("native", "native", None),
            answer("Old_Style", "fails", Some(209)),
            answer("text", "compiles", None)
        ]
    );
    // PTX 9.5 of CUDA 13.5 is newer than the driver.
    assert_eq!(
        answers(at, "text --root root --gpu sm_90 --driver 580.65"),
        [answer("text", "fails", Some(222))]
    );
    // A runtime of CUDA 13 does not start with a driver of 12.
    assert_eq!(
        answers(at, "native --root root --gpu sm_90 --driver 550.54"),
        [answer("native", "fails", Some(35))]
    );
    assert_eq!(
        answers(at, "pure --root root --gpu sm_90"),
        [answer("pure", "no-device-code", None)]
    );

    let shown = why_gpu(at, "--root root --gpu H100 --driver 13.5");
    assert_eq!(code(&shown), 1);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    for part in [
        "sm_90, a driver of CUDA 13.5",
        "ok        native 1.0+cu130: ",
        "FAILS     Old_Style 1.0+cu130: ",
        "CUDA_ERROR_NO_BINARY_FOR_GPU (209)",
        "CUDA 11.8 or newer with sm_90",
        "of one core",
        "such as scale(float*)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let newer = why_gpu(at, "text --root root --gpu sm_90 --driver 13.0");
    let text = String::from_utf8_lossy(&newer.stdout).into_owned();
    assert!(
        text.contains("a driver of CUDA 13.5") && text.contains("cuda-compat-13-5"),
        "{text}"
    );
    let older = why_gpu(at, "old-style --root root --gpu sm_70");
    let text = String::from_utf8_lossy(&older.stdout).into_owned();
    assert!(text.contains("CUDA 12.9 or older"), "{text}");
}

#[test]
fn exit_codes_tell_scripts() {
    let folder = folder();
    let at = folder.path();
    for (words, expected) in [
        ("native text --root root --gpu sm_90", 0),
        ("old-style --root root --gpu sm_90", 1),
        ("OLD.style --root root --gpu A100", 0),
        ("missing --root root --gpu sm_90", 2),
        ("--root root/opt/venv/bin --gpu sm_90", 2),
        ("--root root --gpu RTX-9999", 2),
        ("--root root --python python3 --gpu sm_90", 2),
    ] {
        assert_eq!(code(&why_gpu(at, words)), expected, "{words}");
    }
    // The folder itself.
    assert_eq!(
        code(&why_gpu(at, &format!("native --root {PLACE} --gpu sm_90"))),
        0
    );
}

/// What Python says of its own folders.
#[test]
fn the_environment_of_a_python_is_found() {
    let folder = folder();
    let at = folder.path();
    let made = Command::new("python3")
        .current_dir(at)
        .args(["-m", "venv", "--without-pip", "env"])
        .status();
    assert!(made.expect("python3 starts").success());
    let lib = at
        .join("env/lib")
        .read_dir()
        .expect("a folder")
        .next()
        .expect("one");
    let site = lib.expect("an entry").path().join("site-packages");
    // A line in such a file is a further folder of packages.
    let line = at.join(PLACE).to_str().expect("text").to_owned() + "\n";
    fs::write(site.join("more.pth"), line).expect("written");
    let found = why_gpu(at, "native --python env/bin/python --gpu sm_90");
    assert_eq!(code(&found), 0, "{found:?}");
    let none = why_gpu(at, "--python no-such-python --gpu sm_90");
    assert_eq!(code(&none), 2);
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(
        said.contains("--python") && said.contains("--root"),
        "{said}"
    );
}

/// The variables of a process change what a driver does.
#[test]
fn variables_that_forbid_compiling_are_named() {
    let folder = folder();
    let at = folder.path();
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpcc"));
    let python = at.join("python");
    // What `--python` starts, and nothing else about it.
    fs::write(
        &python,
        format!("#!/bin/sh\necho '[\"{}\"]'\n", at.join(PLACE).display()),
    )
    .expect("written");
    let set = Command::new("chmod").args(["+x"]).arg(&python).status();
    assert!(set.expect("chmod starts").success());
    let output = command
        .args(["why-gpu", "text", "--gpu", "sm_90", "--python"])
        .arg(&python)
        .env("CUDA_DISABLE_PTX_JIT", "1")
        .output()
        .expect("warpcc starts");
    assert_eq!(code(&output), 1);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.contains("(223)") && said.contains("unset CUDA_DISABLE_PTX_JIT"),
        "{said}"
    );
}
