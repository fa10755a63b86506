//! Builds the fuzz targets with coverage counters, which stable Rust can do, and runs them.
//!
//! ```sh
//! cargo run --release --manifest-path fuzz/Cargo.toml -- all --seconds 60
//! cargo run --release --manifest-path fuzz/Cargo.toml -- words --replay fuzz/artifacts/words/crash-…
//! ```
//!
//! What it finds on the way is kept next to the build and is where the next run starts; what makes a
//! target fail is kept in `fuzz/artifacts/`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::sync::Mutex;
use std::thread;

/// A target, and what it starts from besides its own folder in `corpus/`.
struct Target {
    name: &'static str,
    more_seeds: &'static [&'static str],
    dictionary: Option<&'static str>,
}

const TRANSCRIPTS: &str = "../crates/plan/tests/transcripts";
const TARGETS: [Target; 10] = [
    Target {
        name: "transcript",
        more_seeds: &["13.5", "13.0", "older"],
        dictionary: Some("plan.dict"),
    },
    Target {
        name: "words",
        more_seeds: &[],
        dictionary: Some("plan.dict"),
    },
    Target {
        name: "invocation",
        more_seeds: &[],
        dictionary: Some("plan.dict"),
    },
    Target {
        name: "record",
        more_seeds: &[],
        dictionary: None,
    },
    Target {
        name: "watch-log",
        more_seeds: &[],
        dictionary: None,
    },
    Target {
        name: "fatbin",
        more_seeds: &[],
        dictionary: Some("fatbin.dict"),
    },
    Target {
        name: "fatbin-host",
        more_seeds: &[],
        dictionary: Some("fatbin.dict"),
    },
    Target {
        name: "kernel",
        more_seeds: &[],
        dictionary: None,
    },
    Target {
        name: "pack",
        more_seeds: &[],
        dictionary: None,
    },
    Target {
        name: "bundle-index",
        more_seeds: &[],
        dictionary: None,
    },
];

/// What `cargo fuzz --sanitizer none` gives the compiler: counters on every edge, and what is
/// compared with what.
const COVERAGE: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// The longest an input may take before it counts as a failure, in seconds.
const TOO_LONG: u32 = 10;
const LARGEST_INPUT: u32 = 32 << 10;

struct Arguments {
    targets: Vec<&'static Target>,
    seconds: u32,
    replay: Option<PathBuf>,
}

fn main() -> ExitCode {
    let result = arguments(env::args().skip(1)).and_then(|arguments| run(&arguments));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("warpcc-fuzz: {why}");
            ExitCode::FAILURE
        }
    }
}

fn arguments(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let names = TARGETS.map(|target| target.name).join(", ");
    let usage =
        format!("usage: warpcc-fuzz all|TARGET [--seconds N] [--replay FILE]; targets: {names}");
    let mut arguments = Arguments {
        targets: Vec::new(),
        seconds: 60,
        replay: None,
    };
    while let Some(word) = words.next() {
        match word.as_str() {
            "all" => arguments.targets.extend(&TARGETS),
            "--seconds" => {
                let number = words.next().and_then(|number| number.parse().ok());
                // libFuzzer takes 0 for no end.
                arguments.seconds = number.filter(|n| *n > 0).ok_or_else(|| usage.clone())?;
            }
            "--replay" => {
                arguments.replay = Some(words.next().ok_or_else(|| usage.clone())?.into())
            }
            name => {
                let target = TARGETS.iter().find(|target| target.name == name);
                arguments.targets.push(target.ok_or_else(|| usage.clone())?);
            }
        }
    }
    match arguments.targets.len() {
        0 => Err(usage),
        2.. if arguments.replay.is_some() => Err("--replay is for one target".to_owned()),
        _ => Ok(arguments),
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let place = env::current_exe().map_err(|e| format!("this program's own place: {e}"))?;
    let place = place.parent().unwrap_or(Path::new(".")).join("guided");
    let program = build(&place)?;
    let failed = Mutex::new(Vec::new());
    let waiting = Mutex::new(arguments.targets.iter());
    let next = || {
        waiting
            .lock()
            .expect("no panic under the lock")
            .next()
            .copied()
    };
    let side_by_side = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..side_by_side {
            scope.spawn(|| {
                while let Some(target) = next() {
                    let result = fuzz(target, &program, &place, arguments);
                    // One call, so that the lines of two targets do not mix.
                    match result {
                        Ok(summary) => println!("{summary}"),
                        Err(why) => {
                            eprintln!("{why}");
                            failed
                                .lock()
                                .expect("no panic under the lock")
                                .push(target.name);
                        }
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no panic under the lock");
    if failed.is_empty() {
        return Ok(());
    }
    Err(format!("failed: {}", failed.join(", ")))
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Builds `guided.rs`. A target is named so that build scripts are spared the counters.
fn build(place: &Path) -> Result<PathBuf, String> {
    let output = started(Command::new("rustc").arg("-vV"))?;
    let version = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc -vV names no host")?;
    let mut command = Command::new("cargo");
    command
        .args([
            "build",
            "--quiet",
            "--release",
            "--locked",
            "--bin",
            "guided",
        ])
        .args(["--features", "guided", "--target", host, "--manifest-path"])
        .arg(here().join("Cargo.toml"))
        .arg("--target-dir")
        .arg(place)
        .env("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join("\x1f"));
    let status = command.status().map_err(|e| format!("cargo: {e}"))?;
    if !status.success() {
        return Err("the targets do not build".to_owned());
    }
    Ok(place.join(host).join("release/guided"))
}

fn started(command: &mut Command) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.output().map_err(|e| format!("{name}: {e}"))
}

/// Runs one target; the summary has the number of inputs tried, and the speed.
fn fuzz(
    target: &Target,
    program: &Path,
    place: &Path,
    arguments: &Arguments,
) -> Result<String, String> {
    let name = target.name;
    let found = place.join("corpus").join(name);
    let artifacts = here().join("artifacts").join(name);
    for folder in [&found, &artifacts] {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let mut command = Command::new(program);
    command
        .env("WARPCC_FUZZ_TARGET", name)
        .arg(format!("-timeout={TOO_LONG}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()));
    if let Some(file) = &arguments.replay {
        command.arg(file);
    } else {
        command
            .arg(format!("-max_total_time={}", arguments.seconds))
            .arg(format!("-max_len={LARGEST_INPUT}"))
            .arg("-print_final_stats=1");
        if let Some(file) = target.dictionary {
            command.arg(format!("-dict={}", here().join(file).display()));
        }
        // The first folder is where libFuzzer puts what it finds.
        command.arg(found);
        let own = here().join("corpus").join(name);
        let more = target.more_seeds.iter();
        let more = more.map(|folder| here().join(TRANSCRIPTS).join(folder));
        command.args(
            std::iter::once(own)
                .chain(more)
                .filter(|folder| folder.is_dir()),
        );
    }
    let output = started(&mut command)?;
    let log = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let from = log.lines().count().saturating_sub(60);
        let end: Vec<&str> = log.lines().skip(from).collect();
        return Err(format!("{}\n{name}: {}", end.join("\n"), output.status));
    }
    if arguments.replay.is_some() {
        return Ok(format!("{name}: the input passes"));
    }
    let stat = |key: &str| {
        let line = log.lines().find_map(|line| line.strip_prefix(key));
        line.map_or("?", |value| value.trim_start_matches(':').trim())
    };
    let coverage = log.lines().rev().find_map(|line| line.split_once(" cov: "));
    let coverage = coverage
        .and_then(|(_, rest)| rest.split(' ').next())
        .unwrap_or("?");
    Ok(format!(
        "{name:<10} {:>10} inputs, {:>7} a second, {coverage} edges, {} new in the corpus",
        stat("stat::number_of_executed_units"),
        stat("stat::average_exec_per_sec"),
        stat("stat::new_units_added"),
    ))
}
