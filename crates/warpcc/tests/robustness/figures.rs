//! Tests the figures of `warpcc stats` and `warpcc report` that are sums over calls: the compiler time avoided, nvcc's own traces.

use std::collections::BTreeMap;

use serde_json::Value;
use warpcc_testkit::Toolkit;

use crate::space::{Program, TestSpace, small};

const KERNEL: &str =
    "#include \"twice.h\"\n__global__ void k(float *x) { x[threadIdx.x] = twice(x[0]); }\n";
const HEADER: &str = "template <class T> __device__ T twice(T x) { return x + x; }\n";

fn space(name: &str, toolkit: Toolkit) -> TestSpace {
    let mut space = TestSpace::with_toolkit(name, small(toolkit));
    space.set_env("WARPCC_BUILD_ID", "figures");
    space.write("case.cu", KERNEL);
    space.write("twice.h", HEADER);
    space
}

fn compile(space: &TestSpace, line: &str) {
    let outcome = space.run(&Program::Launcher, &space.words(line));
    assert_eq!(outcome.code, 0, "{line}: {}", outcome.stderr_text());
}

fn said(space: &TestSpace, args: &[&str]) -> String {
    let outcome = space.warpcc_with(args);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    String::from_utf8_lossy(&outcome.stdout).into_owned()
}

fn json(space: &TestSpace, args: &[&str]) -> Value {
    serde_json::from_str(&said(space, args)).expect("JSON")
}

#[test]
fn steps_found_in_a_miss_count_and_a_bypassed_call_makes_a_limit() {
    let mut space = space("figures-avoided", Toolkit::newest());
    compile(&space, "-arch=sm_90 -c case.cu -o one.o");
    let text = said(&space, &["stats"]);
    assert!(text.starts_with("0% of compiler time avoided: "), "{text}");
    // A miss as a whole: the other architecture is new, the first one's steps are not.
    let two = "-gencode arch=compute_90,code=sm_90 -gencode arch=compute_80,code=sm_80";
    compile(&space, &format!("{two} -c case.cu -o two.o"));
    let stats = json(&space, &["stats", "--json"]);
    assert_eq!(stats["invocations"]["direct_hits"], 0);
    let [saved, spent] = ["saved_seconds", "spent_seconds"].map(|n| stats[n].as_f64().expect(n));
    assert!(saved > 0.0 && spent > 0.0, "{stats}");
    let share = (100.0 * saved / (saved + spent)).floor();
    let line = format!("{share}% of compiler time avoided: ");
    for command in [&["stats"][..], &["report"], &["stats", "--github-summary"]] {
        let text = said(&space, command);
        assert!(text.contains(&line), "{command:?}: {line}: {text}");
    }
    let report = json(&space, &["report", "--json"]);
    let found = report["summary"]["avoided_share"]
        .as_f64()
        .expect("a share");
    assert!((found - saved / (saved + spent)).abs() < 0.01, "{found}");
    // An option that warpcc does not know: nvcc runs alone, and nobody knows what it took.
    space.write("plain.cpp", "int plain;\n");
    space.set_env("NVCC_APPEND_FLAGS", "#");
    space.run(&Program::Launcher, &space.words("-c plain.cpp -o plain.o"));
    space.unset_env("NVCC_APPEND_FLAGS");
    for command in ["stats", "report"] {
        let text = said(&space, &[command]);
        assert!(text.contains("At most "), "{text}");
        assert!(text.contains("what 1 bypassed call took"), "{text}");
    }
}

/// Microseconds of a trace's events by name, and of its headers.
fn sums(trace: &Value, into: &mut [BTreeMap<String, u64>; 2]) {
    for event in trace["traceEvents"].as_array().expect("events") {
        let (Some(name), Some(micros)) = (event["name"].as_str(), event["dur"].as_u64()) else {
            continue;
        };
        *into[0].entry(name.to_owned()).or_default() += micros;
        if let ("Processing Header File", Some(header)) = (name, event["args"]["detail"].as_str()) {
            *into[1].entry(header.to_owned()).or_default() += micros;
        }
    }
}

#[test]
fn the_sums_of_device_traces_are_those_of_nvccs_files() {
    for toolkit in Toolkit::all() {
        let space = space("figures-traces", toolkit);
        compile(
            &space,
            "-arch=sm_90 -fdevice-time-trace - -c case.cu -o one.o",
        );
        compile(
            &space,
            "-arch=sm_80 -fdevice-time-trace two -c case.cu -o two.o",
        );
        compile(&space, "-arch=sm_80 -c case.cu -o three.o");
        let mut expected = [BTreeMap::new(), BTreeMap::new()];
        for file in ["one.o.json", "two.json"] {
            let trace = serde_json::from_slice(&space.read(file)).expect("a trace");
            sums(&trace, &mut expected);
        }
        let found = json(&space, &["report", "--device-trace", "--json"]);
        assert_eq!(found["traces"], 2);
        for (kind, expected) in ["phases", "headers"].iter().zip(expected) {
            let rows = found[kind].as_array().expect("rows");
            let row = |row: &Value| {
                let micros = (row["total_s"].as_f64().expect("seconds") * 1e6).round();
                (
                    row["name"].as_str().expect("a name").to_owned(),
                    micros as u64,
                )
            };
            let found: BTreeMap<String, u64> = rows.iter().map(row).collect();
            assert_eq!(found, expected, "{kind}");
        }
        assert!(said(&space, &["report", "--device-trace"]).contains("Templates"));
        assert!(found["headers"].to_string().contains("twice.h"), "{found}");
    }
}
