//! The whole test suite, as CI runs it: install what it needs, run every check to its end, and
//! name the ones that failed.

pub mod casd;
pub mod fetched;
pub mod maturin;
mod ninja;
pub mod old_glibc;
mod servers;
mod setup;
mod times;

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, anyhow, bail};

use crate::workloads::cmake;
use crate::{matrix, process, repo, tidy, toolkit};

/// How long each fuzz target runs: enough to replay its corpus and try some thousand inputs more.
const FUZZ_SECONDS: &str = "2";

/// The part of the suite to run.
#[derive(clap::Args)]
pub struct SuiteOptions {
    /// Leave out the licence check, the documentation, the doctests, the fuzz targets and the
    /// CMake project, and run only a twelfth of the tests that compile, a different twelfth each day
    #[arg(long)]
    quick: bool,
    /// Run one test and no other check: its binary and its name, as nextest prints them
    #[arg(long, value_name = "BINARY TEST", conflicts_with_all = ["quick", "nextest"])]
    case: Option<String>,
    /// Compile every test with the toolkit's own headers; most use a small header of their own otherwise
    #[arg(long)]
    whole_headers: bool,
    /// For `cargo nextest run`: a test's name, -E 'EXPRESSION', --no-capture, …
    #[arg(last = true)]
    nextest: Vec<String>,
}

/// The runtime headers that most tests compile with.
#[derive(Clone, Copy, PartialEq)]
enum Headers {
    /// The tests' own runtime header (`crates/warpcc/tests/space/small`).
    Small,
    /// The toolkit's.
    Whole,
}

/// `cargo xtask test`.
pub fn main(options: &SuiteOptions) -> Result<()> {
    let mut suite = Suite::new();
    let headers = match options.whole_headers {
        true => Headers::Whole,
        false => Headers::Small,
    };
    if let Some(case) = &options.case {
        let select = times::selecting(case)?;
        let arguments = ["-E", &select, "--no-capture"].map(str::to_owned);
        suite.step("equipment", || setup::install(false));
        suite.step("nextest", || tests(&arguments, headers));
        return suite.finish();
    }
    let thorough = !options.quick;

    suite.step("equipment", || setup::install(thorough));
    // It builds in a folder of its own. clippy and rustdoc alone leave most of a second processor idle.
    let fuzzed = (thorough && repo::root().join("fuzz/Cargo.toml").exists())
        .then(|| BegunStep::begin("fuzz", fuzz));
    suite.step("fmt", || {
        // Only the names of the files: the remedy is `cargo fmt`.
        process::run(process::cargo("fmt").args(["--all", "--", "--check", "-l"]))
            .context("run `cargo fmt --all`")
    });
    suite.step("clippy", || {
        process::run(
            process::cargo("clippy")
                .args(CHECKED)
                .args(["--", "--deny", "warnings"]),
        )
    });
    suite.step("tidy", tidy::main);
    if thorough {
        suite.step("deny", || {
            // Not `advisories`: their database is fetched from a host that CI does not reach.
            process::run(process::cargo("deny").args(["check", "licenses", "bans", "sources"]))
        });
        suite.step("doc", documentation);
        if let Some(fuzzed) = fuzzed {
            suite.finish_step(fuzzed);
        }
        // All at once, so that the chain of our crates does not keep a processor waiting.
        suite.step("build", || {
            process::run(process::cargo("nextest").args([
                "run",
                "--locked",
                "--workspace",
                "--no-run",
            ]))
        });
        suite.step("doctest", || {
            process::run(process::cargo("test").args([
                "--locked",
                "--workspace",
                "--doc",
                "--quiet",
            ]))
        });
        suite.step("cmake", cmake_project);
        suite.step("matrix", || matrix::quick(None));
    }
    // The last step, so that its summary is at the end of the output.
    suite.step("nextest", || {
        match options.quick && options.nextest.is_empty() {
            true => some_tests(headers),
            false => tests(&options.nextest, headers),
        }
    });
    suite.finish()
}

/// `cargo xtask soak --tests`: the long tests that `cargo xtask test` leaves out (`default-filter` in `.config/nextest.toml`).
pub fn long_tests() -> Result<()> {
    let mut suite = Suite::new();
    suite.step("equipment", || setup::install(true));
    let select = ["-E", "not default()"].map(str::to_owned);
    suite.step("nextest", || tests(&select, Headers::Small));
    suite.finish()
}

/// All tests that link a program of ours and compile nothing, and a share of the others.
fn some_tests(headers: Headers) -> Result<()> {
    let units = format!("default() & ({UNITS})");
    let units = tests(&["-E", &units].map(str::to_owned), headers);
    let days = SystemTime::UNIX_EPOCH.elapsed()?.as_secs() / (24 * 60 * 60);
    let share = format!("slice:{}/{SHARES}", days % SHARES + 1);
    println!("one in {SHARES} of the other tests: --partition {share}");
    let others = format!("default() - ({UNITS})");
    let arguments = ["-E", &others, "--partition", &share];
    units.and(tests(&arguments.map(str::to_owned), headers))
}

/// Unit tests, but for the soak's, which compile by the hundred.
const UNITS: &str = "(kind(lib) + kind(bin)) - test(/^soak::/)";
/// The number of days in which `--quick` runs every test.
const SHARES: u64 = 12;

const CHECKED: [&str; 3] = ["--locked", "--workspace", "--all-targets"];

fn documentation() -> Result<()> {
    let mut command = process::cargo("doc");
    command.args([
        "--locked",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ]);
    process::run(command.env("RUSTDOCFLAGS", "--deny warnings"))
}

fn fuzz() -> Result<String> {
    let mut command = process::cargo("run");
    command.args([
        "--release",
        "--manifest-path",
        "fuzz/Cargo.toml",
        "--target-dir",
    ]);
    command.arg(repo::target_dir().join("fuzz"));
    process::output(command.args(["--", "all", "--seconds", FUZZ_SECONDS]))
}

/// llama.cpp's ggml through CMake and Ninja. Its sources come from PyPI the first time, and stay
/// next to the toolkits.
fn cmake_project() -> Result<()> {
    // A part of nextest's build, so that nothing is built twice.
    let build = ["--locked", "--workspace", "--bin=warpcc*", "--quiet"];
    process::run(process::cargo("build").args(build))?;
    let warpcc = repo::target_dir().join("debug/warpcc");
    cmake::quick(&toolkit::find(toolkit::NEWEST)?, &warpcc)
}

fn tests(arguments: &[String], headers: Headers) -> Result<()> {
    let mut command = process::cargo("nextest");
    command
        .args(["run", "--locked", "--workspace", "--no-fail-fast"])
        // Two more than there are processors: some tests wait for a deadline, a signal or a disk.
        .args(["--test-threads", &test_threads().to_string()])
        .args(arguments);
    if !arguments.is_empty() {
        // Tests that are named run, the long ones too.
        command.arg("--ignore-default-filter");
    }
    command.env("WARPCC_TEST_NVCC", toolkit::find(toolkit::NEWEST)?);
    command.env("WARPCC_TEST_NVCC_130", toolkit::find(toolkit::OLDEST)?);
    command.env("WARPCC_TEST_NINJA", ninja::program());
    command.env("WARPCC_TEST_SERVERS", servers::packages());
    command.env("WARPCC_TEST_MATURIN", maturin::packages());
    if old_glibc::loader().exists() {
        command.env("WARPCC_TEST_OLD_LOADER", old_glibc::loader());
    }
    if casd::program().exists() {
        command.env("WARPCC_TEST_CASD", casd::program());
    }
    command.env("WARPCC_TEST_NVRTC_120", fetched::OLDEST_NVRTC.path());
    command.env("WARPCC_TEST_NVFATBIN", fetched::NVFATBIN.path());
    command.env("WARPCC_TEST_ADAPTERS", fetched::ADAPTERS.packages());
    // The user's own settings must not influence the tests.
    for name in [
        "WARPCC_DIR",
        "WARPCC_NVCC",
        "NVCC_PREPEND_FLAGS",
        "NVCC_APPEND_FLAGS",
    ] {
        command.env_remove(name);
    }
    if headers == Headers::Whole {
        command.env("WARPCC_TEST_WHOLE_HEADERS", "1");
    }
    times::forget();
    let result = process::run(&mut command);
    times::print()?;
    result
}

fn test_threads() -> usize {
    std::thread::available_parallelism().map_or(2, |n| n.get() + 2)
}

/// `cargo xtask tutorial`: the test that compares the tutorial with nvcc writes it instead.
pub fn tutorial() -> Result<()> {
    let mut command = process::cargo("test");
    command
        .args([
            "--locked",
            "--package",
            "warpcc",
            "--test",
            "explain",
            "tutorial",
        ])
        .env("WARPCC_TUTORIAL", "write")
        .env("WARPCC_TEST_NVCC", toolkit::find(toolkit::NEWEST)?)
        .env_remove("NVCC_PREPEND_FLAGS")
        .env_remove("NVCC_APPEND_FLAGS");
    process::run(&mut command)
}

/// `cargo xtask header`: the test that compares the C header with its sources writes it instead.
pub fn header() -> Result<()> {
    let mut command = process::cargo("test");
    command
        .args(["--locked", "--workspace", "--test", "header"])
        .env("WARPCC_HEADER", "write");
    process::run(&mut command)
}

/// The steps run so far: how long each took, and whether it passed.
struct Suite {
    start: Instant,
    steps: Vec<(&'static str, Duration, bool)>,
}

/// A step that runs beside others. Its output waits for its turn.
struct BegunStep {
    name: &'static str,
    thread: JoinHandle<(Result<String>, Duration)>,
}

impl BegunStep {
    fn begin(name: &'static str, run: fn() -> Result<String>) -> Self {
        let thread = thread::spawn(move || {
            let start = Instant::now();
            (run(), start.elapsed())
        });
        Self { name, thread }
    }
}

impl Suite {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            steps: Vec::new(),
        }
    }

    /// Runs a step, and goes on after a failure, so that one run shows everything that has to be fixed.
    fn step(&mut self, name: &'static str, run: impl FnOnce() -> Result<()>) {
        println!("── {name}");
        let start = Instant::now();
        let result = run();
        self.note(name, start.elapsed(), result);
    }

    /// Waits for a step that was begun before.
    fn finish_step(&mut self, step: BegunStep) {
        println!("── {}", step.name);
        let (result, took) = match step.thread.join() {
            Ok(ended) => ended,
            Err(_) => (Err(anyhow!("it panicked")), Duration::ZERO),
        };
        let result = result.map(|said| print!("{said}"));
        self.note(step.name, took, result);
    }

    fn note(&mut self, name: &'static str, took: Duration, result: Result<()>) {
        if let Err(error) = &result {
            eprintln!("{name}: {error:#}");
        }
        self.steps.push((name, took, result.is_ok()));
    }

    fn finish(&self) -> Result<()> {
        println!("\n{}", self.summary());
        let failed: Vec<_> = self
            .steps
            .iter()
            .filter(|(_, _, passed)| !passed)
            .map(|(name, ..)| *name)
            .collect();
        if failed.is_empty() {
            return Ok(());
        }
        bail!("failed: {}", failed.join(", "))
    }

    fn summary(&self) -> String {
        let lines = self.steps.iter().map(|(name, took, passed)| {
            let verdict = if *passed { "ok" } else { "FAILED" };
            format!("{name:<10} {:>7.1} s  {verdict}", took.as_secs_f64())
        });
        // Less than the sum: some ran beside others.
        let total = self.start.elapsed();
        let last = format!("{:<10} {:>7.1} s", "all", total.as_secs_f64());
        lines.chain([last]).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_steps_run_and_the_failed_one_is_named() {
        let mut suite = Suite::new();
        let mut ran = false;
        suite.step("first", || bail!("broken"));
        suite.step("second", || {
            ran = true;
            Ok(())
        });
        assert!(ran);
        let error = suite.finish().expect_err("a step failed");
        assert_eq!(error.to_string(), "failed: first");
        assert!(suite.summary().contains("FAILED") && suite.summary().contains("second"));
    }

    #[test]
    fn a_step_that_runs_beside_others_fails_as_they_do() {
        let mut suite = Suite::new();
        let begun = [
            BegunStep::begin("broken", || bail!("broken")),
            BegunStep::begin("lost", || panic!("lost")),
            BegunStep::begin("well", || Ok(String::new())),
        ];
        begun.into_iter().for_each(|step| suite.finish_step(step));
        let error = suite.finish().expect_err("two steps failed");
        assert_eq!(error.to_string(), "failed: broken, lost");
    }
}
