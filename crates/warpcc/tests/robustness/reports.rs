//! Tests what `warpcc report`, `monitor`, `stats` and `run` show of real builds, good and bad.

use crate::space::{Program, Snapshot, TestSpace};

pub const FIRST: &str = "__global__ void first(float *x) { x[threadIdx.x] *= 2; }\n";
const SECOND: &str = "__global__ void second(float *x) { x[threadIdx.x] += 1; }\n";

/// Two files compiled, one answered from the cache, one that fails; all of them one build.
fn built(name: &str) -> TestSpace {
    let mut space = TestSpace::new(name);
    space.set_env("WARPCC_BUILD_ID", "two-files");
    space.write("first.cu", FIRST);
    space.write("second.cu", SECOND);
    space.write("broken.cu", "this is no program\n");
    for (file, code) in [("first", 0), ("second", 0), ("first", 0), ("broken", 2)] {
        let args = space.words(&format!("-arch=sm_90 -c {file}.cu -o {file}.o"));
        let outcome = space.run(&Program::Launcher, &args);
        let failed = outcome.code != 0;
        assert_eq!(failed, code != 0, "{file}: {}", outcome.stderr_text());
    }
    space
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_build_is_reported() {
    let space = built("report");
    let said = space.json(&["report", "--json"]);
    assert_eq!(said["summary"]["build"], "two-files");
    assert_eq!(said["summary"]["calls"]["total"], 4);
    assert_eq!(said["summary"]["calls"]["direct_hits"], 1);
    assert_eq!(said["summary"]["calls"]["failed"], 1);
    let calls = said["calls"].as_array().expect("calls");
    for file in ["first.cu", "second.cu"] {
        let call = calls
            .iter()
            .find(|call| call["file"] == file && call["outcome"] == "built")
            .unwrap_or_else(|| panic!("{file} is not in {said:#}"));
        let tools: Vec<&str> = call["tasks"]
            .as_array()
            .expect("tasks")
            .iter()
            .filter_map(|task| task["tool"].as_str())
            .collect();
        for tool in ["cicc", "ptxas", "cudafe++"] {
            assert!(tools.contains(&tool), "{file}: {tools:?}");
        }
    }

    let short = text(&space.warpcc_with(&["report"]).stdout);
    for part in [
        "two-files",
        "first.cu",
        "second.cu",
        "1 failed",
        "-o build.html",
    ] {
        assert!(short.contains(part), "{part} is not in\n{short}");
    }
    let list = text(&space.warpcc_with(&["report", "--list"]).stdout);
    assert!(
        list.starts_with("two-files") && list.contains("4 calls"),
        "{list}"
    );

    let args = [
        "report",
        "--last",
        "-o",
        "page.html",
        "--trace",
        "trace.json",
    ];
    let outcome = space.warpcc_with(&args);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    assert!(outcome.stdout.is_empty(), "files were asked for");
    let page = text(&space.read("page.html"));
    assert!(page.starts_with("<!") && page.contains("first.cu") && page.contains("second.cu"));
    let trace: serde_json::Value =
        serde_json::from_slice(&space.read("trace.json")).expect("a trace is JSON");
    assert!(trace["traceEvents"].as_array().is_some_and(|e| e.len() > 8));
}

#[test]
fn a_build_that_is_not_there() {
    let space = TestSpace::new("report-none");
    let outcome = space.warpcc_with(&["report", "--build", "other"]);
    let said = outcome.stderr_text();
    assert_eq!(outcome.code, 2, "{said}");
    assert!(said.contains("`warpcc report --list`"), "{said}");
    let outcome = space.warpcc_with(&["report"]);
    assert_eq!(outcome.code, 2, "{}", outcome.stderr_text());
}

#[test]
fn a_damaged_history_is_one_warning() {
    let space = built("report-damaged");
    let log = space.cache().join("builds-v1/two-files.log");
    let mut bytes = std::fs::read(&log).expect("the log");
    let third = bytes.len() / 3;
    for at in [third, 2 * third] {
        bytes[at..at + 24].fill(0xa5);
    }
    std::fs::write(&log, bytes).expect("the log");
    let outcome = space.warpcc_with(&["report"]);
    let said = outcome.stderr_text();
    assert_eq!(outcome.code, 0, "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("could not be read"), "{said}");
}

#[test]
fn running_tasks_are_shown() {
    let mut space = TestSpace::new("monitor");
    // A board of its own: other tests run on this machine.
    let board = space.beside("board").display().to_string();
    space.set_env("WARPCC_RUNTIME_DIR", &board);
    space.write("slow.cu", &format!("{}{FIRST}", crate::KERNEL));
    let outcome = space.warpcc_with(&["monitor", "--plain"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
    let idle = text(&outcome.stdout);
    assert!(
        idle.starts_with("running 0") && idle.lines().count() == 1,
        "{idle}"
    );

    let args = space.words("-arch=all -c slow.cu -o slow.o");
    let mut build = space
        .command(&Program::Launcher, &args)
        .spawn()
        .expect("starting warpcc");
    // A monitor that comes before the first task finds nothing and ends.
    let mut seen = String::new();
    while build.try_wait().expect("waiting").is_none() {
        let args = ["monitor", "--interval", "0.1"];
        seen.push_str(&text(&space.warpcc_with(&args).stdout));
    }
    assert!(build.wait().expect("waiting").success());
    let task = |line: &str| line.starts_with("  ") && line.ends_with("slow.cu");
    assert!(seen.lines().any(task), "{seen}");
    let ptxas = |line: &str| line.contains("ptxas") && line.contains("sm_");
    assert!(seen.lines().any(ptxas), "{seen}");
}

#[test]
fn saved_time_is_counted_by_project() {
    let space = built("stats-projects");
    let said = space.json(&["stats", "--json"]);
    assert!(
        said["saved_seconds"]
            .as_f64()
            .is_some_and(|saved| saved > 0.0),
        "{said:#}"
    );
    let project = &said["projects"][0];
    let folder = space.work().display().to_string();
    assert_eq!(project["directory"], folder, "{said:#}");
    assert_eq!(
        (&project["calls"], &project["direct_hits"]),
        (&4.into(), &1.into())
    );
    let short = text(&space.warpcc_with(&["stats"]).stdout);
    assert!(
        short.contains("of compiler time") && short.contains(&folder),
        "{short}"
    );
}

#[test]
fn progress_is_a_line_that_goes_away() {
    let mut space = TestSpace::new("progress");
    space.set_env("TERM", "xterm-256color");
    space.write(
        "first.cu",
        &format!("#warning seen\n{}{FIRST}", crate::KERNEL),
    );
    let nvcc = space.toolkit.nvcc.display().to_string();
    let warpcc = TestSpace::warpcc().display().to_string();
    let run = format!("{warpcc} run --no-cache --nvcc {nvcc}");
    let rest = "-- -arch=all -c first.cu -o first.o";
    let shown = |line: &str| {
        let first = ["-qefc", line, "/dev/null"].map(str::to_owned);
        let outcome = space.run(&Program::Other("script".into(), first.to_vec()), &[]);
        assert_eq!(outcome.code, 0, "{}", text(&outcome.stdout));
        text(&outcome.stdout)
    };
    let with = shown(&format!("{run} --progress {rest}"));
    assert!(with.contains("warpcc: ") && with.contains("/"), "{with:?}");
    // The text after the last clearing of a line stays on the screen.
    let stays: String = with
        .split_inclusive('\n')
        .map(|line| line.rsplit("\r\u{1b}[K").next().unwrap_or(line))
        .collect();
    assert!(!stays.contains("warpcc: "), "{stays:?}");
    assert_eq!(stays, shown(&format!("{run} {rest}")));
    // Without a terminal there is no line.
    let outcome = space.warpcc_with(&[
        "run",
        "--no-cache",
        "--nvcc",
        &nvcc,
        "--progress",
        "--",
        "-c",
        "first.cu",
        "-o",
        "a.o",
    ]);
    assert!(
        !outcome.stderr_text().contains("warpcc: "),
        "{}",
        outcome.stderr_text()
    );
}

#[test]
fn saved_files_are_all_there_whatever_the_cache_knows() {
    let space = TestSpace::new("saved");
    space.write("first.cu", FIRST);
    let nvcc = space.toolkit.nvcc.display().to_string();
    let saved = |folder: &str| {
        let line = format!("run --nvcc {nvcc} --save {folder} -- -arch=sm_90 -c first.cu -o a.o");
        let words = space.words(&line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let outcome = space.warpcc_with(&words);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr_text());
        Snapshot::take(&space.work().join(folder)).entries
    };
    let (first, second) = (saved("one"), saved("two"));
    let is_there = |end: &str| first.keys().any(|name| name.ends_with(end));
    assert!(
        [".cudafe1.cpp", ".gpu", ".ptx", ".cubin", ".fatbin.c"]
            .iter()
            .all(|end| is_there(end))
    );
    assert_eq!(first, second);
}

#[test]
fn waiting_for_a_slot_is_told_as_such() {
    let mut space = TestSpace::new("report-waits");
    space.set_env("WARPCC_JOBS", "1");
    space.set_env(
        "WARPCC_RUNTIME_DIR",
        &space.beside("board").display().to_string(),
    );
    space.write("first.cu", FIRST);
    let args = space.words("-arch=all-major -c first.cu -o first.o");
    assert_eq!(space.run(&Program::Launcher, &args).code, 0);
    let said = space.json(&["report", "--json"]);
    let tasks = said["calls"][0]["tasks"].as_array().expect("tasks");
    let ran = tasks.iter().filter(|task| task["state"] == "ran");
    let waited = ran.filter(|task| task["waited_for"] == "cpu").count();
    assert!(waited > 3, "{said:#}");
    // The critical path is almost only work of tools, and hardly any of warpcc.
    let path = &said["summary"]["critical"]["by_tool_s"];
    let wall = said["summary"]["wall_s"].as_f64().expect("a number");
    assert!(
        path["warpcc"].as_f64().is_none_or(|ours| ours < wall / 2.0),
        "{path:#}"
    );
}
