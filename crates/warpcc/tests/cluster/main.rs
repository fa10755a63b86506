//! Tests steps on a Remote Execution cluster, which here is buildbox-casd, or BuildGrid before it: the outputs are nvcc's, a
//! step that ran there hits here and the other way round, and a cluster that fails costs no build.

mod bot;
mod clones;
mod dispatched;
mod farm;
mod host;
mod several_workers;
mod sharing;
#[path = "../space/mod.rs"]
mod space;
mod variables;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use warpcc_engine::any_lines_conditions::AnyLinesConditions;
use warpcc_engine::conditions::Conditions;
use warpcc_testkit::casd::Casd;

use space::{Build, Exactness, Program, Snapshot, TestSpace, differences};

/// Two architectures.
const TWO: &str = "-c case.cu -o out.o -gencode arch=compute_80,code=sm_80 \
                   -gencode arch=compute_90,code=sm_90";

const KERNEL: &str = "#include <cstdio>\n\
    __global__ void k(float *x, int n) {\n\
      for (int i = 0; i < n; i++) x[i] = sinf(x[i]) + powf(x[i], 3.5f);\n\
    }\n\
    int main() { float *d; cudaMalloc(&d, 128); k<<<1, 32>>>(d, 3); printf(\"%d\\n\", (int)cudaDeviceSynchronize()); }\n";

/// The steps of [`TWO`] that run elsewhere: cudafe++, twice cicc, twice ptxas, fatbinary, the host compile.
const OF_TWO: u64 = 7;

/// The tools of these, as `stats` names them.
const TOOLS: [&str; 5] = ["cudafe++", "cicc", "ptxas", "fatbinary", "host"];

/// A space whose commands go to `address` whenever they may.
fn space(name: &str, address: &str) -> TestSpace {
    let mut space = TestSpace::new(name);
    space.write("case.cu", KERNEL);
    space.set_env("WARPCC_EXECUTOR", address);
    space.set_env("WARPCC_EXECUTOR_ALWAYS", "1");
    space
}

/// One of the counters of the shared caches and the cluster.
fn remote(space: &TestSpace, counter: &str) -> u64 {
    let said = space.warpcc_with(&["stats", "--json"]).stdout;
    let stats: serde_json::Value = serde_json::from_slice(&said).expect("JSON");
    stats["remote"][counter].as_u64().expect("a counter")
}

/// How many steps ran on the cluster so far.
fn executed(space: &TestSpace) -> u64 {
    remote(space, "executed")
}

/// Adds a comment, which changes the file only for the preprocessor.
fn add_remark(space: &TestSpace) {
    space.write("case.cu", &format!("{KERNEL}// a remark\n"));
}

#[test]
fn remote_steps_give_nvccs_results() {
    let Some(casd) = Casd::start() else { return };
    let mut space = space("cluster-two", &casd.address());
    let built = space.agree(TWO);
    built.demand_no_fallback();
    assert_eq!(executed(&space), OF_TWO);
    // The tools were uploaded, and their outputs downloaded.
    let up = remote(&space, "bytes_up");
    assert!(up > 150 << 20, "{up}");
    let down = remote(&space, "bytes_down");
    assert!((30 << 10..30 << 20).contains(&down), "{down}");
    space.again(TWO, &built).demand_direct_hit();
    space.demand_no_leftovers("a build on a cluster");
    // Steps that ran on the cluster hit here.
    space.unset_env("WARPCC_EXECUTOR");
    add_remark(&space);
    space
        .agree(TWO)
        .demand_no_direct_hit()
        .demand_hits_of(&TOOLS);
    // Another machine with an empty cache: the same actions, known to the cluster.
    space.set_env("WARPCC_EXECUTOR", &casd.address());
    space.write("case.cu", KERNEL);
    space.clear_cache();
    space.agree(TWO).demand_no_direct_hit();
    assert_eq!(executed(&space), OF_TWO);
    let up = remote(&space, "bytes_up");
    assert!(up < 1 << 20, "{up}");
    assert_eq!(remote(&space, "bytes_down"), down);
    assert_eq!(remote(&space, "errors"), 0);
}

#[test]
fn modes_that_others_leave_out() {
    let Some(casd) = Casd::start() else { return };
    let space = space("cluster-modes", &casd.address());
    space.write(
        "other.cu",
        "__device__ float twice(float x) { return x * 2; }\n",
    );
    // PTX only, where ptxas checks and writes nothing; relocatable code, to a program, with nvlink and two host
    // compiles; with link-time optimization, where the folder stands in cicc's packed code; PTX as a
    // file; messages of ptxas; objects and archives of the user's.
    for line in [
        "-c case.cu -o ptx.o -gencode arch=compute_90,code=compute_90",
        "-rdc=true case.cu -o program -arch=sm_80",
        "-dlto case.cu -o lto -arch=sm_80",
        "-ptx case.cu -o case.ptx -arch=compute_80",
        "-cubin case.cu -o case.cubin -arch=sm_80 -Xptxas -warn-spills -Werror cross-execution-space-call",
        "-rdc=true -c case.cu -o case.o -arch=sm_80 -O3 -Xcompiler -fPIC,-march=native",
        "-rdc=true -lib other.cu -o libother.a -arch=sm_80",
        "-rdc=true case.o -L. -lother -o linked -arch=sm_80",
        "-dlink {work}/case.o libother.a -o device.o -arch=sm_80",
    ] {
        let (before, steps) = (executed(&space), space.stats());
        space.agree(line).demand_no_fallback();
        let steps = space.stats().since(&steps);
        let away = i64::try_from(executed(&space) - before).expect("a few");
        assert!(away > 0, "{line}");
        assert_eq!(away, steps.all_misses(), "{line}: {steps:?}");
        let links = !["-c ", "-ptx", "-cubin", "-lib"]
            .iter()
            .any(|word| line.contains(word));
        assert_eq!(steps.missed("nvlink"), i64::from(links), "{line}");
    }
    // These commands name folders of this machine.
    let before = executed(&space);
    space.agree("-cubin case.cu -o line.cubin -arch=sm_80 -lineinfo");
    assert_eq!(executed(&space), before);
    // The compiler's own verdict, in its own words.
    space.write("wrong.cu", "__global__ void k() { int x = \"no\"; }\n");
    let failed = space.agree("-c wrong.cu -o wrong.o -arch=sm_80");
    assert_ne!(failed.outcome.code, 0);
}

/// For each record's name: the parts that must be the same, and the variables that count.
type StepRecords = BTreeMap<String, (Vec<String>, BTreeSet<OsString>)>;

/// The steps' records in the store: name, inputs and result. Times are left out.
fn step_records(cache: &Path) -> StepRecords {
    let mut records = BTreeMap::new();
    let mut folders = vec![cache.join("steps-v4")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("steps").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = fs::read(&path).expect("a record");
            let mut known = Vec::new();
            let mut asked = BTreeSet::new();
            for variant in warpcc_cache::decode_record(&bytes).expect("a record") {
                let outcome = variant.outcome;
                let mut files: Vec<_> = variant
                    .manifest
                    .files()
                    .map(|f| (f.path, f.content))
                    .collect();
                // libdl comes with the library that watches runs here; cicc has itself under two names here, and
                // there is given the library that it reads only where a source calls for it.
                let apart = ["libdl.so.2", "libdevice.10.bc"];
                files.retain(|(path, _)| !apart.iter().any(|name| path.ends_with(name)));
                let mut contents: Vec<_> = files.iter().map(|(_, content)| *content).collect();
                contents.sort();
                contents.dedup();
                known.push(format!("contents {contents:?}"));
                // The options of cicc's memory allocator are no part of the input tree; and where includes are
                // resolved for another machine, gcc looks for one precompiled header more.
                let absent = variant.manifest.directories().map(|d| {
                    let names = d.absent.into_iter();
                    let names: Vec<_> = names.filter(|n| n != "host_runtime.h.gch").collect();
                    (d.path, names)
                });
                let absent: Vec<_> = absent
                    .filter(|(folder, names)| folder != Path::new("/etc") && !names.is_empty())
                    .collect();
                known.push(format!("absent {absent:?}"));
                known.push(format!("outputs {:?}", outcome.outputs));
                // One that may be used for texts with other lines has more.
                let of_any_lines = || AnyLinesConditions::decode(&outcome.extra);
                let conditions = Conditions::decode(&outcome.extra)
                    .or_else(|| of_any_lines().map(|all| all.conditions))
                    .expect("conditions");
                known.push(format!(
                    "streams {:?} {:?} {:?}",
                    outcome.stdout, outcome.stderr, conditions.times
                ));
                known.push(format!("programs {:?}", conditions.asked().programs));
                asked.extend(conditions.asked().variables);
            }
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            records.insert(name, (known, asked));
        }
    }
    records
}

#[test]
fn a_step_leaves_the_record_of_a_run_here_wherever_it_ran() {
    let Some(casd) = Casd::start() else { return };
    let mut space = space("cluster-records", &casd.address());
    // With a diagnostic of cicc's and one of cudafe++'s.
    let unused = "__global__ void warned() { int never = 1; }\n";
    space.write("case.cu", &format!("{KERNEL}{unused}"));
    let there = space.agree(TWO);
    assert!(
        there.outcome.stderr_text().contains("never"),
        "{}",
        there.outcome.stderr_text()
    );
    assert_eq!(executed(&space), OF_TWO);
    let away = step_records(&space.cache());
    space.unset_env("WARPCC_EXECUTOR");
    space.clear_cache();
    space.agree(TWO);
    let here = step_records(&space.cache());
    assert!(away.len() >= 7);
    demand_equal_records(&away, &here);
    // A step that ran here is not sent.
    let before = executed(&space);
    space.set_env("WARPCC_EXECUTOR", &casd.address());
    space.write("case.cu", &format!("{KERNEL}{unused}// a remark\n"));
    space
        .agree(TWO)
        .demand_no_direct_hit()
        .demand_hits_of(&TOOLS);
    assert_eq!(executed(&space), before);
}

/// Fails where a step on the cluster left another record than here. The cluster's record must count every variable that a
/// tool asked for here. It may count more, because tools are not watched there.
fn demand_equal_records(away: &StepRecords, here: &StepRecords) {
    let agree = |name: &String| {
        let ((there, counted), (here, asked)) = (away.get(name)?, here.get(name)?);
        (there == here && asked.is_subset(counted)).then_some(())
    };
    if let Some(name) = away.keys().chain(here.keys()).find(|n| agree(n).is_none()) {
        panic!(
            "{name}: away {:#?}\nhere {:#?}",
            away.get(name),
            here.get(name)
        );
    }
}

/// Runs the line with nvcc and with warpcc, and gives warpcc's one warning. Everything else is the same.
fn agrees_but_warns(space: &TestSpace, line: &str, meanwhile: impl FnOnce() + Send) -> String {
    let args = space.words(line);
    let before = Snapshot::take(&space.work());
    let want = space.run(&space.reference(), &args);
    let wanted = Snapshot::take(&space.work()).since(&before);
    wanted.delete_from(&space.work());
    let before = Snapshot::take(&space.work());
    let got = thread::scope(|scope| {
        let run = scope.spawn(|| space.run(&Program::Launcher, &args));
        meanwhile();
        run.join().expect("warpcc")
    });
    let outputs = Snapshot::take(&space.work()).since(&before);
    let found = differences(
        &wanted,
        &outputs,
        Exactness::Bytes,
        &space.beside("compare"),
    );
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert_eq!(want.code, got.code);
    let said = got.stderr_text();
    let (warnings, rest): (Vec<&str>, Vec<&str>) = said
        .lines()
        .partition(|line| line.starts_with("warpcc: warning: "));
    assert_eq!(rest.join("\n"), want.stderr_text().trim_end());
    assert!(warnings.len() <= 1, "{said}");
    warnings.concat()
}

#[test]
fn a_cluster_that_dies_in_mid_build_costs_a_warning() {
    let Some(mut casd) = Casd::start() else {
        return;
    };
    let space = space("cluster-dies", &casd.address());
    let warning = agrees_but_warns(&space, TWO, || {
        // The first commands have come.
        let patience = Instant::now();
        while !casd.has_work() {
            assert!(
                patience.elapsed() < Duration::from_secs(120),
                "nothing came"
            );
            thread::sleep(Duration::from_millis(5));
        }
        casd.kill();
    });
    assert!(warning.contains("127.0.0.1"), "{warning}");
    assert!(remote(&space, "errors") > 0);
    // The next call does not ask again.
    space.write("case.cu", &format!("{KERNEL}int other() {{ return 1; }}\n"));
    space.agree(TWO);
}

#[test]
fn a_black_hole_costs_a_warning() {
    let hole = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("grpc://{}", hole.local_addr().expect("an address"));
    thread::spawn(move || hole.incoming().flatten().collect::<Vec<_>>());
    let space = space("cluster-hole", &address);
    let warning = agrees_but_warns(&space, TWO, || {});
    assert!(warning.contains("did not answer within"), "{warning}");
    assert_eq!(executed(&space), 0);
}

#[test]
fn with_a_free_slot_nothing_leaves() {
    let Some(casd) = Casd::start() else { return };
    let mut space = space("cluster-free", &casd.address());
    space.unset_env("WARPCC_EXECUTOR_ALWAYS");
    let runtime = space.beside("runtime");
    space.set_env("WARPCC_RUNTIME_DIR", &runtime.to_string_lossy());
    space.set_env("WARPCC_JOBS", "64");
    let _: Build = space.agree(TWO);
    assert_eq!(executed(&space), 0);
    // One slot: a command that finds it taken is sent to the cluster.
    space.set_env("WARPCC_JOBS", "1");
    space.clear_cache();
    space::remove_tree(Path::new(&runtime));
    space.agree(TWO);
    assert!(executed(&space) > 0);
}
