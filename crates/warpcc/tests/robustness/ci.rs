//! Tests the GitHub Action and the lines that `warpcc setup --ci` prints: their shell parts run as each system's runner runs
//! them.
//!
//! The tests themselves do the work of the systems: variables between steps, a cache that is restored and saved.

mod github_job;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use warpcc_testkit::github_cache::GithubCache;

use crate::skipped;
use crate::space::{Program, TestSpace, finish};
use github_job::{Run, Step, steps};

/// A wheel of the version under test, with the program under test.
const WHEEL: &str = r#"
import sys, zipfile
folder, version, program = sys.argv[1:]
info = f"warpcc-{version}.dist-info"
files = {
    f"warpcc-{version}.data/scripts/warpcc": f'#!/bin/sh\nexec "{program}" "$@"\n',
    f"{info}/METADATA": f"Metadata-Version: 2.1\nName: warpcc\nVersion: {version}\n",
    f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
}
files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
with zipfile.ZipFile(f"{folder}/warpcc-{version}-py3-none-any.whl", "w") as wheel:
    for name, text in files.items():
        entry = zipfile.ZipInfo(name)
        entry.external_attr = 0o100755 << 16
        wheel.writestr(entry, text)
"#;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A CMake project, and a job's environment; `None` where a program is missing.
fn job(name: &str) -> Option<TestSpace> {
    for program in ["cmake", "ninja", "python3"] {
        if Command::new(program).arg("--version").output().is_err() {
            skipped(&format!("there is no {program}"));
            return None;
        }
    }
    let mut space = TestSpace::new(name);
    space.write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.18)\nproject(job LANGUAGES CXX CUDA)\n\
         add_library(kernels STATIC one.cu two.cu)\n",
    );
    space.write("one.cu", "__global__ void one(int *x) { *x += 1; }\n");
    space.write("two.cu", "__global__ void two(int *x) { *x += 2; }\n");
    let wheels = space.beside("wheels");
    fs::create_dir_all(&wheels).expect("a folder");
    let program = TestSpace::warpcc();
    let made = Command::new("python3")
        .args(["-c", WHEEL])
        .args([wheels.as_path(), Path::new(VERSION), program.as_path()])
        .status();
    assert!(made.is_ok_and(|status| status.success()), "the wheel");
    let nvcc = space.toolkit.nvcc.parent().expect("bin").to_owned();
    let path = std::env::var("PATH").expect("PATH");
    space.set_env("PATH", &format!("{}:{path}", nvcc.display()));
    space.set_env("PIP_NO_INDEX", "1");
    space.set_env("PIP_FIND_LINKS", &wheels.display().to_string());
    space.set_env("CUDAARCHS", "90");
    Some(space)
}

fn repository(name: &str) -> String {
    let file = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(name);
    fs::read_to_string(file).expect(name)
}

/// The output of `warpcc setup --ci`.
fn printed(space: &TestSpace, system: &str) -> String {
    let outcome = space.warpcc_with(&["setup", "--ci", system]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert!(text.contains(&format!("warpcc=={VERSION}")), "{text}");
    text
}

/// Runs a script as a runner does, and gives what it printed.
fn shell(space: &TestSpace, script: &str) -> String {
    let bash = Program::Other("bash".into(), Vec::new());
    let args = ["--noprofile", "--norc", "-eo", "pipefail", "-c", script];
    let outcome = finish(space.command(&bash, &args.map(str::to_owned)));
    let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let all = format!("{script}\n{said}{}", outcome.stderr_text());
    assert_eq!(outcome.code, 0, "{all}");
    said
}

/// The number of calls of the last build that were built, and that were hits. CMake's own checks are another build.
fn counts(space: &TestSpace) -> (i64, i64) {
    let said = shell(space, "warpcc report --json");
    let json: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let of = |name: &str| json["summary"]["calls"][name].as_i64().expect("a number");
    (of("built"), of("direct_hits"))
}

#[test]
fn the_github_action_keeps_bundles() {
    the_github_action_keeps("bundles", 3);
}

#[test]
fn the_github_action_keeps_a_folder() {
    the_github_action_keeps("folder", 4);
}

fn the_github_action_keeps(mode: &str, number_of_steps: usize) {
    let Some(mut space) = job(&format!("ci-{mode}")) else {
        return;
    };
    let action = repository("action.yml");
    assert!(
        action.contains(&format!("default: warpcc=={VERSION}\n")),
        "{action}"
    );
    let is_done = |step: &Step| {
        let (_, wanted) = step.text.split_once("inputs.cache == '").unzip();
        wanted.is_none_or(|wanted| wanted.starts_with(mode))
    };
    let steps: Vec<Step> = steps(&action).into_iter().filter(is_done).collect();
    assert_eq!(steps.len(), number_of_steps);
    space.set_env("CACHE", mode);
    build_three_times(&mut space, mode, &steps);
}

/// A push, a pull request that changes a file, and a push with the same change.
fn build_three_times(space: &mut TestSpace, mode: &str, steps: &[Step]) {
    let service = GithubCache::start();
    let saved = space.beside("saved");
    space.set_env("PACKAGE", &format!("warpcc=={VERSION}"));
    space.set_env("MAX_SIZE", "1G");
    space.set_env("KEY", "Linux-X64-a job");
    let mut found = Vec::new();
    for (name, event) in [
        ("first", "push"),
        ("second", "pull_request"),
        ("third", "push"),
    ] {
        if name != "first" {
            space.write("two.cu", "__global__ void two(int *x) { *x += 22; }\n");
        }
        space.remove("build");
        let run = Run::new(space, event, &service);
        let phase = |name: &str| {
            let text = format!("phase == '{name}'");
            steps.iter().filter(move |step| step.text.contains(&text))
        };
        for step in phase("start") {
            run.step(space, step, &saved);
        }
        shell(space, "cmake -G Ninja -B build && cmake --build build");
        found.push(counts(space));
        for step in phase("finish") {
            run.step(space, step, &saved);
        }
        let summary = fs::read_to_string(run.temporary.join("summary")).expect("the summary");
        assert!(summary.starts_with("### warpcc\n\n**"), "{summary}");
        assert!(summary.contains(" of compiler time avoided: "), "{summary}");
        assert!(summary.contains(" answered from the cache"), "{summary}");
        let env = fs::read_to_string(run.temporary.join("env")).expect("the variables");
        assert_eq!(
            env.contains("WARPCC_REMOTE_READONLY=1"),
            event == "pull_request"
        );
        assert_eq!(
            env.contains("WARPCC_REMOTE=ghac://Linux-X64-a_job\n"),
            mode == "bundles"
        );
    }
    // The results of the pull request were not saved.
    assert_eq!(found, [(2, 0), (1, 1), (1, 1)], "{mode}");
    let bundles = if mode == "bundles" { 2 } else { 0 };
    assert_eq!(service.blobs().len(), bundles, "{mode}");
}

#[test]
fn the_lines_for_github_build_and_hit() {
    let Some(mut space) = job("ci-github") else {
        return;
    };
    let steps = steps(&printed(&space, "github"));
    let service = GithubCache::start();
    let saved = space.beside("saved");
    for (name, event, expected, bundles) in [
        ("first", "pull_request", (2, 0), 0),
        ("second", "push", (2, 0), 1),
        ("third", "pull_request", (0, 2), 1),
    ] {
        space.remove("build");
        let run = Run::new(&mut space, event, &service);
        for step in &steps {
            run.step(&mut space, step, &saved);
        }
        assert_eq!(counts(&space), expected, "{name}");
        let summary = fs::read_to_string(run.temporary.join("summary")).expect("the summary");
        assert!(summary.starts_with("### warpcc\n\n**"), "{summary}");
        assert_eq!(service.blobs().len(), bundles, "{name}");
    }
}

/// The commands of a list in GitLab's file.
fn list(file: &str, name: &str) -> String {
    let (_, rest) = file.split_once(&format!("  {name}:\n")).expect(name);
    let lines = rest.lines().map_while(|line| line.strip_prefix("    - "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_lines_for_gitlab_build_and_hit() {
    let Some(mut space) = job("ci-gitlab") else {
        return;
    };
    let file = printed(&space, "gitlab");
    let work = space.work().display().to_string();
    let (_, variables) = file.split_once("  variables:\n").expect("variables");
    for line in variables
        .lines()
        .map_while(|line| line.strip_prefix("    "))
    {
        let (name, value) = line.split_once(": ").expect("NAME: VALUE");
        space.set_env(name, &value.replace("$CI_PROJECT_DIR", &work));
    }
    let build = format!(
        "{}\n{}",
        list(&file, "before_script"),
        list(&file, "script")
    );
    let path = shell(&space, "printf %s \"$PATH\"");
    for expected in [(2, 0), (0, 2)] {
        space.remove("build");
        shell(&space, &build);
        let said = shell(&space, &list(&file, "after_script"));
        assert!(said.contains(" answered from the cache"), "{said}");
        space.set_env("PATH", &format!("{work}/.venv/bin:{path}"));
        assert_eq!(counts(&space), expected);
        space.set_env("PATH", &path);
    }
    assert!(space.exists(".warpcc"), "the folder that GitLab keeps");
}

#[test]
fn the_lines_for_jenkins_build_and_hit() {
    let Some(mut space) = job("ci-jenkins") else {
        return;
    };
    let file = printed(&space, "jenkins");
    let commands: Vec<&str> = file
        .lines()
        .filter_map(|line| line.trim().strip_prefix("sh '")?.strip_suffix('\''))
        .collect();
    assert_eq!(commands.len(), 6, "{commands:?}");
    space.set_env("CMAKE_CUDA_COMPILER_LAUNCHER", "warpcc");
    let venv = space.work().join("venv/bin").display().to_string();
    let path = shell(&space, "printf %s \"$PATH\"");
    space.set_env("PATH", &format!("{venv}:{path}"));
    for expected in [(2, 0), (0, 2)] {
        space.remove("build");
        let said: String = commands.iter().map(|one| shell(&space, one)).collect();
        assert!(said.contains(" answered from the cache"), "{said}");
        assert_eq!(counts(&space), expected);
    }
}

#[test]
fn scripts_are_for_every_bash() {
    for name in ["start.sh", "finish.sh"] {
        let file = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ci/github")).join(name);
        let mode = fs::metadata(&file).expect(name).permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "{name} can be run");
        let checked = Command::new("bash").arg("-n").arg(&file).status();
        assert!(checked.is_ok_and(|status| status.success()), "{name}");
    }
}
