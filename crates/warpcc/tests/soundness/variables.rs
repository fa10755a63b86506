//! Tests the table of variables that tools read against the variables they do read: on the suite's toolkits, and on those
//! that the user names, or else on one other toolkit of this machine with one host compiler, another pair each day.
//!
//! ```sh
//! WARPCC_TEST_MORE_NVCC=/a/bin/nvcc:/b/bin/nvcc WARPCC_TEST_MORE_HOSTS=g++-11:clang++-19 \
//!     cargo nextest run --locked --workspace --no-capture -E 'test(variables::)'
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use warpcc_engine::conditions::{is_harmless, seen_in};
use warpcc_engine::known_programs::KnownPrograms;
use warpcc_plan::Tool;

use crate::space::{Program, TestSpace, Toolkit, finish, small};

/// The compilations, in this order: host and device code, separate compilation. The first two have templates of the library,
/// which take long.
const LINES: &[&str] = &[
    "-c library.cu -o library.o -arch=sm_80",
    "-ptx library.cu -o library.ptx -arch=sm_80",
    "-c case.cu -o case.o -arch=sm_80",
    "-c case.cu -o case.o -gencode arch=compute_80,code=sm_80 -gencode arch=compute_86,code=compute_86",
    "-ptx case.cu -o case.ptx -arch=sm_80",
    "-cubin case.ptx -o case.cubin -arch=sm_80 -Xptxas -v",
    "-fatbin case.cu -o case.fatbin -arch=sm_80",
    "-c case.cu -o case.o -arch=sm_80 -g -G",
    "-c case.cu -o case.o -arch=sm_80 -lineinfo -O2 -MD -Xcompiler -Wall",
    "-dc case.cu -o case.o -arch=sm_80",
    "-dlink case.o -o linked.o -arch=sm_80",
    "-lib case.o -o libcase.a",
    "main.cu case.o -o case -arch=sm_80 -rdc=true",
    "main.cu -o case -arch=sm_80 -rdc=true -L. -lcase",
    "-dc case.cu -o case.o -gencode arch=compute_80,code=lto_80",
    "-dlink -dlto case.o -o linked.o -arch=sm_80",
    "-dlto main.cu case.o -o case -arch=sm_80 -rdc=true",
    "-optix-ir case.cu -o case.optixir -arch=sm_80",
    "-shared -Xcompiler -fPIC case.cu -o libcase.so -arch=sm_80",
];

const LIBRARY: &str = "#include <cstdio>\n#include <vector>\n\
    __global__ void k(int *x) { printf(\"%f\", sin(double(*x))); }\n\
    int host(std::vector<int> &v) { k<<<1, 1>>>(v.data()); return v.size(); }\n";

const CASE: &str = "__device__ int twice(int x) { return 2 * x; }\n\
    __global__ void k(int *x) { *x = twice(*x); }\n\
    void host(int *x) { k<<<1, 1>>>(x); }\n";

const MAIN: &str = "extern __device__ int twice(int);\n\
    __global__ void other(int *x) { *x = 1; }\n\
    int main() { other<<<1, 1>>>(nullptr); }\n";

/// The tool whose row in the table is for a program, by its file. `None`: the program is never sent to another machine.
fn tool_of(program: &Path) -> Option<Tool> {
    let name = program.file_name()?.to_str()?;
    match name {
        "cicc" => Some(Tool::Cicc),
        "cudafe++" => Some(Tool::CudaFe),
        "ptxas" => Some(Tool::Ptxas),
        "nvlink" => Some(Tool::Nvlink),
        "fatbinary" => Some(Tool::Fatbinary),
        "nvcc" => None,
        // A shell, and programs that a toolkit's scripts call.
        _ => KnownPrograms::new(None)
            .asks_by_name(program, true)
            .then_some(Tool::HostCompile),
    }
}

/// For each program and variable, the places where it was read.
type Asked = BTreeMap<(String, OsString), BTreeSet<String>>;

/// Compiles everything with one toolkit and one host compiler, and notes the variables that are in no table.
fn observe(nvcc: &Path, host: &str, missing: &mut Asked, seen: &mut Asked) {
    let release = release_of(nvcc);
    let space = TestSpace::new(&format!("variables-{release}-{host}"));
    space.write("library.cu", LIBRARY);
    space.write("case.cu", CASE);
    space.write("main.cu", MAIN);
    let folder = tempfile::tempdir().expect("a folder");
    let library = warpcc_watch::install(folder.path()).expect("the watch library");
    let place = format!("CUDA {release} with {host}");
    let program = Program::Other(nvcc.to_owned(), Vec::new());
    for (index, line) in LINES.iter().enumerate() {
        let log = folder.path().join("log");
        drop(std::fs::remove_file(&log));
        let line = format!("{line} -ccbin {host} -allow-unsupported-compiler");
        let mut command = space.command(&program, &space.words(&line));
        command.envs(warpcc_watch::environment(&library, &log, None).expect("its variables"));
        let outcome = finish(command);
        if outcome.code != 0 {
            say(&format!(
                "{place}: `{line}` fails: {}",
                first_line(&outcome.stderr_text())
            ));
            // A host compiler that this release cannot use.
            if index == 0 {
                return;
            }
        }
        let bytes = std::fs::read(&log).expect("a log");
        let observed = warpcc_watch::read_log(&bytes, nvcc, &|_| true).expect("a sound log");
        assert_eq!(observed.untracked, None, "{place}: `{line}`");
        for (program, names) in &observed.variables {
            let Some(tool) = tool_of(program) else {
                continue;
            };
            let known = seen_in(tool);
            let short = program
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            for name in names.iter().filter(|name| !is_harmless(name)) {
                let key = (short.clone(), name.clone());
                if !known.iter().any(|row| name == *row) {
                    missing
                        .entry(key.clone())
                        .or_default()
                        .insert(place.clone());
                }
                seen.entry(key).or_default().insert(place.clone());
            }
        }
    }
}

#[test]
fn the_table_has_every_variable_that_a_tool_asks_for() {
    let (mut missing, mut seen) = (Asked::new(), Asked::new());
    for (nvcc, host) in pairs() {
        observe(&nvcc, &host, &mut missing, &mut seen);
    }
    for ((program, name), places) in &seen {
        say(&format!("{program} {}: {}", name.display(), list(places)));
    }
    assert!(seen.len() > 20, "hardly anything was seen: {seen:?}");
    let rows: Vec<String> = missing
        .iter()
        .map(|((program, name), places)| {
            format!("{program} asks for {} on {}", name.display(), list(places))
        })
        .collect();
    assert!(
        rows.is_empty(),
        "add to `seen_in` in crates/engine/src/conditions/classes.rs, in the row of the program's tool (gcc's and clang's \
         are in the last):\n{}",
        rows.join("\n")
    );
}

/// Pairs of toolkit and host compiler. The suite's two toolkits have one host compiler each. Toolkits that the user names have
/// every host compiler, and so have the suite's where the user names more host compilers. Else there is one pair more: one of
/// the toolkits that `cargo xtask toolkit` and `matrix` made for this user with one of the host compilers, in turn.
fn pairs() -> BTreeSet<(PathBuf, String)> {
    // The variables that a tool reads do not depend on the runtime's header.
    let newest = small(Toolkit::newest()).nvcc;
    let older = small(Toolkit::older()).nvcc;
    let mut hosts: BTreeSet<String> = ["g++", "clang++-14"].map(str::to_owned).into();
    let more_hosts = std::env::var("WARPCC_TEST_MORE_HOSTS").ok();
    hosts.extend(
        more_hosts
            .iter()
            .flat_map(|more| more.split(':'))
            .filter(|name| !name.is_empty())
            .map(str::to_owned),
    );
    let real = [Toolkit::newest().nvcc, Toolkit::older().nvcc];
    let each_host = |nvcc: PathBuf| hosts.iter().map(move |host| (nvcc.clone(), host.clone()));
    let named = std::env::var_os("WARPCC_TEST_MORE_NVCC");
    let mut all: BTreeSet<_> = match &named {
        Some(named) => std::env::split_paths(named).collect(),
        None => installed_toolkits(),
    }
    .into_iter()
    .filter(|nvcc| !nvcc.as_os_str().is_empty() && !real.contains(nvcc))
    .flat_map(each_host)
    .collect();
    if named.is_none() {
        all = in_turn(all).into_iter().collect();
    }
    if more_hosts.is_some() {
        all.extend(
            [newest.clone(), older.clone()]
                .into_iter()
                .flat_map(each_host),
        );
    }
    all.extend([(newest, "g++".to_owned()), (older, "clang++-14".to_owned())]);
    all
}

/// One of them, another one each day: each takes a quarter of a minute.
fn in_turn<T>(all: BTreeSet<T>) -> Option<T> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let day = since.map_or(0, |since| since.as_secs() / 86_400);
    let turn = usize::try_from(day).unwrap_or(0) % all.len().max(1);
    all.into_iter().nth(turn)
}

/// The toolkits that `cargo xtask toolkit` and `matrix` made for this user.
fn installed_toolkits() -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let folder = std::fs::read_dir(home.join(".cache/warpcc/toolkits"));
    for entry in folder.into_iter().flatten().flatten() {
        for inside in ["nvidia/cu13/bin/nvcc", "bin/nvcc"] {
            all.extend(entry.path().join(inside).canonicalize());
        }
    }
    all
}

/// The compiler's release, such as `13.5`.
fn release_of(nvcc: &Path) -> String {
    let said = std::process::Command::new(nvcc).arg("--version").output();
    let said = said
        .unwrap_or_else(|e| panic!("{}: {e}", nvcc.display()))
        .stdout;
    let said = String::from_utf8_lossy(&said).into_owned();
    let release = said
        .split("release ")
        .nth(1)
        .and_then(|rest| rest.split(',').next());
    release
        .unwrap_or_else(|| panic!("{} says: {said}", nvcc.display()))
        .to_owned()
}

fn list(places: &BTreeSet<String>) -> String {
    places
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Prints a message to the test's output.
#[expect(clippy::print_stderr, reason = "tells a person what was seen")]
fn say(what: &str) {
    eprintln!("variables: {what}");
}
