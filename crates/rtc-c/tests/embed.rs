//! CMake's `warpcc_rtc_embed`: builds the example, changes its files, and embeds what has difficult names.

mod built;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use built::{Nvidia, succeed};
use warpcc_testkit::folders::copy_tree;

/// A project of CMake and its build folder.
struct Project {
    source: PathBuf,
    build: PathBuf,
    cache: PathBuf,
}

impl Project {
    fn new(folder: &Path, source: &str, build: &str) -> Self {
        Self {
            source: folder.join(source),
            build: folder.join(build),
            cache: folder.join("cache"),
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        Nvidia::newest().set(&mut command);
        // No user's settings file, and no cache of the user's.
        command
            .env("HOME", &self.cache)
            .env_remove("XDG_CONFIG_HOME");
        command
            .env("WARPCC_DIR", &self.cache)
            .env("WARPCC_RTC_CACHE", &self.cache);
        command
    }

    fn configure(&self, system: &str, more: &[&str]) -> Output {
        let mut command = self.command("cmake");
        command.args(["-G", system, "-S"]).arg(&self.source);
        command.arg("-B").arg(&self.build).args(more);
        let warpcc = std::env::current_exe().expect("this program");
        let warpcc = warpcc.with_file_name("../warpcc").canonicalize();
        let warpcc = warpcc.expect("cargo builds warpcc with the workspace");
        command
            .arg(format!(
                "-DWARPCC_RTC_LIBRARY={}",
                built::library("so").display()
            ))
            .arg(format!("-DWARPCC_EXECUTABLE={}", warpcc.display()))
            .arg(format!(
                "-DWARPCC_RTC_NVCC={}",
                Nvidia::newest().nvcc().display()
            ));
        command.output().expect("cmake starts")
    }

    fn configured(&self, system: &str, more: &[&str]) {
        let output = self.configure(system, more);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }

    /// Builds; true if anything was embedded.
    fn build(&self) -> bool {
        let said = succeed(self.command("cmake").arg("--build").arg(&self.build));
        said.contains("Embedding")
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let program = self.build.join(program);
        let mut command = self.command(program.to_str().expect("UTF-8"));
        command.args(arguments).output().expect("it starts")
    }

    fn said(&self, program: &str) -> String {
        let output = self.run(program, &[]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let failed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}{failed}");
        said
    }
}

/// The example, in a folder of its own.
fn example(folder: &Path) -> Project {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let project = Project::new(folder, "project", "build");
    copy_tree(&root.join("examples/embed"), &project.source).expect("copied");
    let file = project.source.join("CMakeLists.txt");
    let text = std::fs::read_to_string(&file).expect("CMakeLists.txt");
    let here = format!(
        "add_subdirectory({:?} warpcc-rtc)",
        root.display().to_string()
    );
    let text = text.replace("add_subdirectory(../.. warpcc-rtc)", &here);
    std::fs::write(file, text).expect("written");
    project
}

fn edit(file: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(file).expect("a text");
    assert!(text.contains(from), "{}", file.display());
    std::fs::write(file, text.replace(from, to)).expect("written");
}

#[test]
fn the_example_links_once_and_follows_its_files() {
    the_example_follows_its_files("Ninja");
}

/// A long test: the projects of `difficult_names…` are built by both systems, and followed there.
#[test]
fn the_example_follows_its_files_with_make() {
    the_example_follows_its_files("Unix Makefiles");
}

fn the_example_follows_its_files(system: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let project = example(folder.path());
    project.configured(system, &[]);
    assert!(project.build());
    assert!(!project.build(), "{system}: nothing has changed");
    let first = project.said("lengths");
    let line = "_Z7lengthsIfEvPT_i for sm_90: whole, compiled and linked\n";
    assert!(first.starts_with(line), "{first}");
    let again = project.said("lengths");
    assert!(again.contains("whole, found"), "{again}");
    assert!(again.contains("nvJitLink is not loaded"), "{again}");
    assert!(again.contains("NVRTC is not loaded"), "{again}");
    // A header that only the fragment includes counts for both.
    let header = project.source.join("include/geometry/detail/length.cuh");
    edit(
        &header,
        "sqrtf(x * x + y * y)",
        "sqrtf(x * x + y * y + 0.0f)",
    );
    assert!(project.build(), "{system}: a header was edited");
    assert!(project.said("lengths").contains("compiled and linked"));
    edit(&project.source.join("functions.cu"), "2 *", "3 *");
    assert!(project.build(), "{system}: a source was edited");
    assert!(!project.build());
    assert!(project.said("lengths").contains("compiled and linked"));
    let missing = project.run("lengths", &["sm_75"]);
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(!missing.status.success());
    assert!(said.contains("embed it for 75 too"), "{said}");
}

const OTHER_MAIN: &str = r#"
#include <cstdio>
#include <warpcc_rtc.hpp>
#include "a.h"
#include "b_two.h"
#include "shared_part.h"
extern "C" int of_library(void);
int main() try {
  warpcc::rtc::request request("k", "", "sm_90");
  request.bundle(a_bundle()).bundle(b::two());
  std::size_t headers = 0;
  warpcc_rtc_bundle_count(a_bundle().get(), &headers, nullptr);
  std::printf("%zu %d\n%s\n", headers, of_library(), a_bundle().digest().c_str());
  warpcc::rtc::bundle damaged("warpcc-bundle 1\nand so on", 20);
  return 1;
} catch (const warpcc::rtc::error& error) {
  std::printf("%d %s\n", int(error.status()), error.what());
}
"#;

const LIBRARY: &str = r#"
#include "shared_part.h"
extern "C" __attribute__((visibility("default"))) int of_library(void) {
  warpcc_rtc_bundle* bundle = nullptr;
  if (shared_part_open(&bundle)) return -1;
  std::size_t headers = 0;
  warpcc_rtc_bundle_count(bundle, &headers, nullptr);
  warpcc_rtc_bundle_free(bundle);
  return int(headers);
}
"#;

/// A library and a program that each embed a bundle of the same name, among files with difficult names.
fn difficult(folder: &Path, kind: &str) -> Project {
    let project = Project::new(folder, "it's a project", "build of it");
    let headers = project.source.join("in clude/lib#1");
    std::fs::create_dir_all(&headers).expect("a folder");
    for (name, text) in [
        ("empty.h", ""),
        ("a b.h", "#define A 1\n"),
        ("it's.h", "#include \"a b.h\"\n"),
        ("$dollar.h", "//\n"),
    ] {
        std::fs::write(headers.join(name), text).expect("written");
    }
    let root = env!("CARGO_MANIFEST_DIR");
    let list = format!(
        "cmake_minimum_required(VERSION 3.20)\n\
         project(other LANGUAGES CXX C)\n\
         add_subdirectory({root:?} warpcc-rtc)\n\
         file(GLOB headers \"in clude/lib#1/*.h\")\n\
         add_library(part {kind} part.cpp)\n\
         set_target_properties(part PROPERTIES CXX_VISIBILITY_PRESET hidden)\n\
         target_link_libraries(part PUBLIC warpcc::rtc)\n\
         warpcc_rtc_embed(part shared::part HEADERS ${{headers}} BASE_DIR \"in clude\")\n\
         add_executable(other main.cpp)\n\
         target_link_libraries(other PRIVATE part)\n\
         target_compile_options(other PRIVATE -Wall -Wextra -Werror -Wno-unused-function)\n\
         warpcc_rtc_embed(other a HEADERS ${{headers}} BASE_DIR \"in clude\")\n\
         warpcc_rtc_embed(other b::two HEADERS \"in clude/lib#1/empty.h\" BASE_DIR \"in clude\" \".\")\n\
         {}",
        // A static library gives its symbols to the program; a shared one hides them.
        match kind {
            "SHARED" => "warpcc_rtc_embed(other shared::part HEADERS CMakeLists.txt)\n",
            _ =>
                "target_include_directories(other PRIVATE \"${CMAKE_CURRENT_BINARY_DIR}/warpcc_rtc_embed/part\")\n",
        }
    );
    for (name, text) in [
        ("CMakeLists.txt", list.as_str()),
        ("main.cpp", OTHER_MAIN),
        ("part.cpp", LIBRARY),
    ] {
        std::fs::write(project.source.join(name), text).expect("written");
    }
    project
}

#[test]
fn difficult_names_and_libraries_of_every_kind_embed_the_same_bytes() {
    let mut digests = Vec::new();
    for (system, kind) in [
        ("Ninja", "SHARED"),
        ("Unix Makefiles", "STATIC"),
        ("Ninja", "OBJECT"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let project = difficult(folder.path(), kind);
        project.configured(system, &[]);
        assert!(project.build());
        assert!(!project.build(), "{system}: nothing has changed");
        let said = project.said("other");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], "4 4", "{said}");
        assert!(
            lines[2].contains("bundle: it is truncated; make it again"),
            "{said}"
        );
        digests.push(lines[1].to_owned());
        std::fs::write(project.source.join("in clude/lib#1/it's.h"), "//\n").expect("written");
        assert!(project.build(), "{system}: a header was edited");
        assert_ne!(project.said("other").lines().nth(1), Some(lines[1]));
    }
    digests.dedup();
    assert_eq!(digests.len(), 1, "they depend on the folder");
}

#[test]
fn wrong_arguments_are_named_while_configuring() {
    for (call, expected) in [
        (
            "warpcc_rtc_embed(nothing a HEADERS a.h)",
            "nothing is no target",
        ),
        ("warpcc_rtc_embed(other a-b HEADERS a.h)", "a-b is no name"),
        ("warpcc_rtc_embed(other a)", "name HEADERS"),
        (
            "warpcc_rtc_embed(other a more HEADERS a.h)",
            "what is more?",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let project = difficult(folder.path(), "STATIC");
        let list = project.source.join("CMakeLists.txt");
        let text = std::fs::read_to_string(&list).expect("a text");
        std::fs::write(list, format!("{text}{call}\n")).expect("written");
        let output = project.configure("Ninja", &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            !output.status.success() && said.contains(expected),
            "{said}"
        );
    }
}
