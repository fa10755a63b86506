//! Tests `warpcc compile-commands` with clangd: what it writes has no word that clangd does not understand.

use std::process::Command;

use serde_json::{Value, json};
use warpcc_testkit::Toolkit;

use crate::skipped;
use crate::space::{Outcome, Program, TestSpace, finish};

/// The newest is the one that `cargo xtask` installs.
const NAMES: [&str; 2] = ["clangd-22", "clangd"];

const KERNEL: &str = "#include <cuda_fp16.h>\n\
    #include \"own.h\"\n\
    #ifndef FOO\n#error FOO is not defined\n#endif\n\
    #if defined __NVCC__ && defined __clang__\n#error not nvcc\n#endif\n\
    constexpr int two() { return 2; }\n\
    __global__ void k(float *x, __half *h) { *x *= two() + OWN; *h = __float2half(*x); }\n\
    int main() { auto l = [] __device__(int a) { return a; }; (void)l; k<<<1, 32>>>(nullptr, nullptr);\n\
      return (int)cudaDeviceSynchronize(); }\n";

/// Options of nvcc's that clang does not have, and options of gcc's that it does not have either.
const OPTIONS: &str = "-gencode arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=[sm_90,compute_90] \
    --expt-relaxed-constexpr --extended-lambda -rdc=true -lineinfo -Xptxas -v --use_fast_math -t2 \
    -Xcompiler -fPIC,-Wall,-Werror,-fno-gnu-unique -Iinc -DFOO=1 -std=c++17";

fn clangd() -> Option<&'static str> {
    let starts = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    let found = NAMES.into_iter().find(starts);
    if found.is_none() {
        skipped("there is no clangd");
    }
    found
}

fn sources(name: &str, toolkit: Toolkit) -> TestSpace {
    let space = TestSpace::with_toolkit(name, toolkit);
    space.write("src/case.cu", KERNEL);
    space.write(
        "src/host.cpp",
        "#include \"own.h\"\nint host() { return OWN + FOO; }\n",
    );
    space.write("inc/own.h", "#define OWN 1\n");
    space
}

/// What clangd says about a source, but for code actions that do not fit.
fn errors(space: &TestSpace, clangd: &str, source: &str) -> Vec<String> {
    let mut command = Command::new(clangd);
    command
        .arg(format!("--check={source}"))
        .arg("--enable-config=0");
    command.current_dir(space.work());
    space.dress(&mut command);
    let said = finish(command).stderr_text();
    assert!(said.contains("Compile command from CDB"), "{said}");
    assert!(
        said.contains("All checks completed") || said.contains("Failed to parse"),
        "{said}"
    );
    let is_error = |line: &&str| line.starts_with("E[") && !line.contains("tweak");
    said.lines().filter(is_error).map(str::to_owned).collect()
}

fn written(space: &TestSpace, args: &[&str]) -> Outcome {
    let args: Vec<&str> = ["compile-commands"].iter().chain(args).copied().collect();
    space.warpcc_with(&args)
}

#[test]
fn a_build_through_warpcc_is_read_by_clangd() {
    let Some(clangd) = clangd() else { return };
    for toolkit in Toolkit::chosen() {
        let space = sources("clangd-calls", toolkit);
        let calls = [
            format!("{OPTIONS} -dc src/case.cu -o case.o"),
            "-DFOO=1 -Iinc -c src/host.cpp -o host.o".to_owned(),
            "case.o host.o -o program -arch=sm_90".to_owned(),
        ];
        for line in &calls {
            space.run(&Program::Launcher, &space.words(line));
        }
        let outcome = written(&space, &["--clangd", clangd]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
        let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
        assert!(
            said.contains("2 commands of nvcc translated for clang, 0 other"),
            "{said}"
        );
        for source in ["src/case.cu", "src/host.cpp"] {
            assert_eq!(errors(&space, clangd, source), [""; 0], "{source}");
        }
        // An error of the source's own is seen.
        space.write(
            "src/case.cu",
            &format!("{KERNEL}int wrong = no_such_name;\n"),
        );
        let found = errors(&space, clangd, "src/case.cu");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("no_such_name"), "{found:?}");
    }
}

#[test]
fn a_database_of_cmakes_is_translated_and_the_rest_of_it_stays() {
    let Some(clangd) = clangd() else { return };
    let space = sources("clangd-cmake", Toolkit::newest());
    let (work, nvcc) = (space.work(), space.toolkit.nvcc.clone());
    space.write("build/includes.rsp", "-Iinc");
    let others = json!({ "directory": work, "file": "x.c", "command": "cc -DA=\\\"b\\\" -c x.c" });
    let line = format!(
        "warpcc {} --options-file build/includes.rsp {} -x cu -c src/case.cu -o case.o",
        nvcc.display(),
        OPTIONS
            .replace("-Iinc", "")
            .replace("code=[sm_90,compute_90]", "'code=[sm_90,compute_90]'"),
    );
    let refused =
        json!({ "directory": work, "file": "y.cu", "arguments": [nvcc, "--no-such", "y.cu"] });
    let cuda = json!({ "directory": work, "file": work.join("src/case.cu"), "command": line });
    let database = json!([others, cuda, refused]);
    // CMake names sources from the root.
    let database = database.to_string().replace(
        "-c src/case.cu",
        &format!("-c {}", work.join("src/case.cu").display()),
    );
    space.write("build/compile_commands.json", &database);
    // As it is, clangd cannot read it.
    let mut untouched = Command::new(clangd);
    untouched
        .arg("--check=src/case.cu")
        .arg("--compile-commands-dir=build");
    untouched.current_dir(&work);
    space.dress(&mut untouched);
    assert!(finish(untouched).stderr_text().contains("\nE["));

    let outcome = written(&space, &["build/compile_commands.json", "--clangd", clangd]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert!(
        said.contains("1 command of nvcc translated for clang, 1 other"),
        "{said}"
    );
    assert!(said.contains("y.cu: nvcc fatal"), "{said}");
    let made: Value = serde_json::from_slice(&space.read("compile_commands.json")).expect("JSON");
    assert_eq!((&made[0], &made[2]), (&others, &refused));
    assert_eq!(errors(&space, clangd, "src/case.cu"), [""; 0]);
    // The database that it is made from is not replaced.
    space.link("link.json", "build/compile_commands.json");
    let same = written(&space, &["build/compile_commands.json", "-o", "link.json"]);
    assert_ne!(same.code, 0);
    assert_eq!(
        space.read("build/compile_commands.json"),
        database.as_bytes()
    );
}
