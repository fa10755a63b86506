//! `rtc-verify`: the kernel library on a GPU, by value and by speed, as JSON. It needs the driver, NVRTC and itself.
//!
//! One process supervises. Workers compile; a runner runs the cases one after another in one context.
//! When a case breaks the context or hangs, that case has failed and a new runner goes on after it.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this program's output is its result"
)]

#[path = "../bundle.rs"]
mod bundle;
mod cases;
mod device;
mod exchange;
mod large;
mod launcher;
#[path = "../reference/mod.rs"]
mod reference;
mod report;
mod runner;
mod speed;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bundle::Bundle;
use cases::Case;
use device::Failure;
use serde_json::Value as Json;
use warpcc_rtc::Compiler;

/// Kernels of one program.
const TOGETHER: usize = 24;
/// A runner that says nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(60);

struct Settings {
    seed: u64,
    work: PathBuf,
    out: PathBuf,
    nvrtc: Option<PathBuf>,
    arch: String,
    workers: usize,
    only: Option<String>,
    role: String,
    after: usize,
    /// Of the cases for other languages, one in this many.
    every: usize,
}

fn settings() -> Result<Settings, Failure> {
    let now = std::time::UNIX_EPOCH
        .elapsed()
        .map_or(1, |t| t.as_nanos() as u64);
    let mut settings = Settings {
        seed: now,
        work: std::env::temp_dir().join(format!("rtc-verify-{}", std::process::id())),
        out: PathBuf::from("rtc-verify.json"),
        nvrtc: None,
        arch: "sm_90".to_owned(),
        workers: std::thread::available_parallelism().map_or(4, usize::from),
        only: None,
        role: String::new(),
        after: 0,
        every: 1,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| format!("{word} needs a value"))?;
        let number = || {
            value
                .parse::<u64>()
                .map_err(|_| format!("{word} {value}: a number was expected"))
        };
        match word.as_str() {
            "--seed" => settings.seed = number()?,
            "--work" => settings.work = value.into(),
            "--out" => settings.out = value.into(),
            "--nvrtc" => settings.nvrtc = Some(value.into()),
            "--arch" => settings.arch = value,
            "--workers" => settings.workers = number()?.max(1) as usize,
            "--only" => settings.only = Some(value),
            "--role" => settings.role = value,
            "--every" => settings.every = number()?.max(1) as usize,
            "--after" => settings.after = number()? as usize,
            _ => {
                return Err(format!(
                    "{word}: known are --seed, --work, --out, --nvrtc, --arch, --workers, --only, --every"
                ));
            }
        }
    }
    Ok(settings)
}

/// Everything to check, the same in every process of one run.
struct Work {
    cases: Vec<Result<Case, String>>,
    timed: Vec<speed::Timed>,
    large: Vec<large::Large>,
    bundle: Bundle,
    /// For each case, timed kernel and large array: its launches' kernels.
    kernels: Vec<Vec<usize>>,
}

fn work(settings: &Settings) -> Work {
    let wanted = |group: &str| {
        settings
            .only
            .as_deref()
            .is_none_or(|only| only.split(',').any(|o| o == group))
    };
    let mut cases = cases::all(settings.seed);
    cases.retain(|case| case.as_ref().map_or(true, |case| wanted(case.group)));
    let timed = if wanted("speed") {
        speed::timed()
    } else {
        Vec::new()
    };
    let large = if wanted("large") {
        large::large()
    } else {
        Vec::new()
    };
    let mut bundle = Bundle::default();
    let mut kernels = Vec::new();
    let mut add = |plan: &warpcc_kernels::plan::Plan| {
        kernels.push(
            plan.launches
                .iter()
                .map(|launch| bundle.add(launch))
                .collect(),
        );
    };
    for case in cases.iter().flatten() {
        add(&case.plan);
    }
    timed.iter().for_each(|timed| add(&timed.plan));
    large.iter().for_each(|large| add(&large.plan));
    Work {
        cases,
        timed,
        large,
        bundle,
        kernels,
    }
}

fn image_path(settings: &Settings, program: usize) -> PathBuf {
    settings.work.join(format!("{program}.cubin"))
}

fn programs(bundle: &Bundle) -> Vec<Vec<usize>> {
    (0..bundle.len())
        .collect::<Vec<_>>()
        .chunks(TOGETHER)
        .map(<[usize]>::to_vec)
        .collect()
}

/// Compiles programs `after`, `after + workers`, … into files.
fn worker(settings: &Settings) -> Result<(), Failure> {
    let work = work(settings);
    let compiler = match &settings.nvrtc {
        Some(path) => Compiler::open(path),
        None => Compiler::find(),
    }
    .map_err(|error| error.to_string())?;
    let target = settings.arch.parse().map_err(|error| format!("{error}"))?;
    let programs = programs(&work.bundle);
    let bundle = Arc::new(work.bundle);
    for (number, kernels) in programs
        .iter()
        .enumerate()
        .skip(settings.after)
        .step_by(settings.workers)
    {
        let (path, bytes) = match bundle.image(&compiler, target, kernels) {
            Ok(image) => (image_path(settings, number), image.to_vec()),
            Err(error) => (
                image_path(settings, number).with_extension("failed"),
                error.into_bytes(),
            ),
        };
        let part = path.with_extension(format!("part{}", settings.after));
        fs::write(&part, bytes)
            .and_then(|()| fs::rename(&part, &path))
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn spawn(settings: &Settings, role: &str, after: usize) -> Result<Child, Failure> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command
        .args(["--role", role, "--after", &after.to_string()])
        .args(["--seed", &settings.seed.to_string()])
        .args([
            "--arch",
            &settings.arch,
            "--workers",
            &settings.workers.to_string(),
        ])
        .arg("--work")
        .arg(&settings.work);
    if let Some(only) = &settings.only {
        command.args(["--only", only]);
    }
    if let Some(nvrtc) = &settings.nvrtc {
        command.arg("--nvrtc").arg(nvrtc);
    }
    command
        .spawn()
        .map_err(|error| format!("starting a {role}: {error}"))
}

fn lines(settings: &Settings) -> Vec<Json> {
    let text = fs::read_to_string(settings.work.join("log")).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

fn newest(folder: &Path) -> Option<Duration> {
    ["log", "waiting"]
        .iter()
        .filter_map(|name| {
            fs::metadata(folder.join(name))
                .ok()?
                .modified()
                .ok()?
                .elapsed()
                .ok()
        })
        .min()
}

fn supervise(settings: &Settings) -> Result<bool, Failure> {
    let begun = Instant::now();
    fs::create_dir_all(&settings.work)
        .map_err(|error| format!("{}: {error}", settings.work.display()))?;
    println!(
        "seed {}, {} workers, work in {}",
        settings.seed,
        settings.workers,
        settings.work.display()
    );
    let mut workers = Vec::new();
    for number in 0..settings.workers {
        workers.push(spawn(settings, "worker", number)?);
    }
    let mut broken: Vec<(usize, String)> = Vec::new();
    let mut after = 0;
    let done = loop {
        let mut runner = spawn(settings, "runner", after)?;
        let started = Instant::now();
        let status = loop {
            match runner.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) => {}
                Err(error) => return Err(error.to_string()),
            }
            let quiet = newest(&settings.work).unwrap_or(started.elapsed());
            if quiet > PATIENCE && started.elapsed() > PATIENCE {
                let _ = runner.kill();
                let _ = runner.wait();
                break None;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        let lines = lines(settings);
        if lines.iter().any(|line| line.get("done").is_some()) {
            break true;
        }
        let reached = |what: &str| {
            lines
                .iter()
                .filter_map(|line| line.get(what)?.as_u64())
                .max()
                .unwrap_or(0) as usize
        };
        let (start, end) = (reached("start"), reached("end"));
        if start > end {
            broken.push((
                start,
                if status.is_none() {
                    "it hung".to_owned()
                } else {
                    "it ended the process".to_owned()
                },
            ));
        }
        let next = start.max(end);
        if next <= after || broken.len() > 20 || begun.elapsed() > Duration::from_secs(400) {
            eprintln!("the runner makes no progress: {status:?}");
            break false;
        }
        after = next;
    };
    for mut worker in workers {
        // Only kernels that are no longer needed are still being compiled.
        let _ = worker.kill();
        let _ = worker.wait();
    }
    report::report(settings, &lines(settings), &broken, done, begun)
}

fn main() -> ExitCode {
    let answer = settings().and_then(|settings| match settings.role.as_str() {
        "worker" => worker(&settings).map(|()| true),
        "runner" => runner::run(&settings, &work(&settings)).map(|()| true),
        "export" => exchange::export(&work(&settings).cases, settings.every, &settings.out),
        "judge" => exchange::judge(&work(&settings).cases, settings.every, &settings.out),
        // Prints the amount of work; needs no GPU.
        "count" => {
            let work = work(&settings);
            for why in work.cases.iter().filter_map(|case| case.as_ref().err()) {
                println!("no plan: {why}");
            }
            println!(
                "{} cases, {} timed, {} large, {} kernels",
                work.cases.len(),
                work.timed.len(),
                work.large.len(),
                work.bundle.len()
            );
            Ok(true)
        }
        _ => supervise(&settings),
    });
    match answer {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("rtc-verify: {why}");
            ExitCode::FAILURE
        }
    }
}
