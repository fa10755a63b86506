//! `find_package(warpcc)` in a real CMake project: separable compilation, `try_compile`, Ninja and Makefiles, on and off.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use crate::skipped;
use crate::space::{Outcome, Program, TestSpace};

const PROJECT: &str = r#"cmake_minimum_required(VERSION 3.18)
project(with_warpcc LANGUAGES CXX)
if(NOT COPIED)
  find_package(warpcc 0.0.1 QUIET)
  message(STATUS "found: ${warpcc_FOUND}")
else()
  list(APPEND CMAKE_MODULE_PATH "${COPIED}")
  include(warpcc)
endif()
enable_language(CUDA)
try_compile(WORKS "${CMAKE_BINARY_DIR}/probe" SOURCES "${CMAKE_SOURCE_DIR}/probe.cu")
if(NOT WORKS)
  message(FATAL_ERROR "try_compile failed")
endif()
add_library(parts STATIC one.cu two.cu)
set_target_properties(parts PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
add_executable(program main.cu)
set_target_properties(program PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
target_link_libraries(program PRIVATE parts)
"#;

const FILES: [(&str, &str); 4] = [
    (
        "probe.cu",
        "__global__ void probe() {}\nint main() { return 0; }\n",
    ),
    ("one.cu", "__device__ int one(int x) { return x + 1; }\n"),
    (
        "two.cu",
        "__device__ int one(int);\n__global__ void two(int *x) { *x = one(*x); }\n",
    ),
    (
        "main.cu",
        "__global__ void two(int *);\nint main() { two<<<1, 1>>>(nullptr); return 0; }\n",
    ),
];

/// A project, and a prefix with the package as it is installed.
fn project(name: &str) -> (TestSpace, PathBuf) {
    let space = TestSpace::new(name);
    space.write("CMakeLists.txt", PROJECT);
    for (file, text) in FILES {
        space.write(file, text);
    }
    let prefix = space.beside("prefix");
    let package = prefix.join("share/cmake/warpcc");
    fs::create_dir_all(&package).expect("folders");
    fs::create_dir_all(prefix.join("bin")).expect("folders");
    symlink(TestSpace::warpcc(), prefix.join("bin/warpcc")).expect("a link");
    for file in ["warpcc.cmake", "warpccConfig.cmake"] {
        fs::copy(sources().join(file), package.join(file)).expect(file);
    }
    let version = fs::read_to_string(sources().join("warpccConfigVersion.cmake.in"));
    let version = version
        .expect("the version file")
        .replace("@VERSION@", "0.1.0");
    fs::write(package.join("warpccConfigVersion.cmake"), version).expect("the version file");
    (space, prefix)
}

fn sources() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../cmake"))
}

/// Another CMake under test, or the one in PATH; nothing where there is none.
fn cmake() -> Option<PathBuf> {
    let named = std::env::var_os("WARPCC_TEST_CMAKE").map(PathBuf::from);
    let cmake = named.unwrap_or_else(|| "cmake".into());
    let there = Command::new(&cmake).arg("--version").output().is_ok();
    if !there {
        skipped("there is no cmake");
    }
    there.then_some(cmake)
}

fn run(space: &TestSpace, cmake: &std::path::Path, args: &[&str]) -> Outcome {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let outcome = space.run(&Program::Other(cmake.to_owned(), Vec::new()), &args);
    let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert_eq!(outcome.code, 0, "{args:?}: {said}{}", outcome.stderr_text());
    outcome
}

/// Configures into `folder`, builds, and gives how many calls were built and how many were hits.
fn build(
    space: &TestSpace,
    cmake: &std::path::Path,
    generator: &str,
    folder: &str,
    settings: &[&str],
) -> (i64, i64) {
    let nvcc = format!("-DCMAKE_CUDA_COMPILER={}", space.toolkit.nvcc.display());
    let mut args = vec!["-S", ".", "-B", folder, "-G", generator, &nvcc];
    args.extend(["-DCMAKE_CUDA_ARCHITECTURES=90"]);
    args.extend(settings);
    run(space, cmake, &args);
    let before = space.stats();
    run(space, cmake, &["--build", folder]);
    assert!(space.exists(&format!("{folder}/program")), "the program");
    let stats = space.stats().since(&before);
    (stats.count("built"), stats.count("direct_hits"))
}

#[test]
fn a_project_compiles_through_warpcc_where_there_is_one() {
    compiles_through_warpcc("Unix Makefiles");
}

#[test]
fn a_project_compiles_through_warpcc_with_ninja() {
    compiles_through_warpcc("Ninja");
}

fn compiles_through_warpcc(generator: &str) {
    let Some(cmake) = cmake() else { return };
    let (space, prefix) = project(&format!("cmake-{}", generator.replace(' ', "-")));
    let prefix = format!("-DCMAKE_PREFIX_PATH={}", prefix.display());
    let found = [prefix.as_str()];
    let first = build(&space, &cmake, generator, "build", &found);
    assert_eq!(first, (3, 0));
    space.remove("build");
    let again = build(&space, &cmake, generator, "build", &found);
    assert_eq!(again, (0, 3));
    // In the same folder, and back.
    space.remove("build/program");
    let off = [prefix.as_str(), "-DWARPCC=OFF"];
    assert_eq!(build(&space, &cmake, generator, "build", &off), (0, 0));
    let on = [prefix.as_str(), "-DWARPCC=ON"];
    run(&space, &cmake, &["--build", "build", "--target", "clean"]);
    assert_eq!(build(&space, &cmake, generator, "build", &on), (0, 3));
}

#[test]
fn a_project_builds_as_ever_where_there_is_none_or_another_launcher() {
    let Some(cmake) = cmake() else { return };
    let (mut space, prefix) = project("cmake-none");
    let generator = "Unix Makefiles";
    assert_eq!(build(&space, &cmake, generator, "none", &[]), (0, 0));
    // The file alone, and a program that was found and is gone.
    let copied = format!("-DCOPIED={}", sources().display());
    let program = prefix.join("bin/warpcc");
    let named = format!("-DWARPCC_PROGRAM={}", program.display());
    let settings = [copied.as_str(), named.as_str()];
    assert_eq!(
        build(&space, &cmake, generator, "copied", &settings),
        (3, 0)
    );
    fs::remove_file(&program).expect("the link");
    run(&space, &cmake, &["--build", "copied", "--target", "clean"]);
    assert_eq!(build(&space, &cmake, generator, "copied", &[]), (0, 0));
    symlink(TestSpace::warpcc(), &program).expect("the link");
    // Somebody else's launcher stays; the environment's warpcc goes with OFF.
    space.script(
        "launcher",
        "#!/bin/sh\necho \"$2\" >> \"$LAUNCHED\"\nexec \"$@\"\n",
    );
    let log = space.beside("launched");
    space.set_env("LAUNCHED", &log.display().to_string());
    let launcher = space.work().join("launcher");
    let launcher = format!("-DCMAKE_CUDA_COMPILER_LAUNCHER={}", launcher.display());
    let prefix_path = format!("-DCMAKE_PREFIX_PATH={}", prefix.display());
    let settings = [prefix_path.as_str(), launcher.as_str()];
    assert_eq!(build(&space, &cmake, generator, "other", &settings), (0, 0));
    assert!(log.is_file(), "the project's own launcher ran");
    space.set_env(
        "CMAKE_CUDA_COMPILER_LAUNCHER",
        &program.display().to_string(),
    );
    let off = [prefix_path.as_str(), "-DWARPCC=OFF"];
    assert_eq!(build(&space, &cmake, generator, "off", &off), (0, 0));
}
