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
mod launcher;
#[path = "../reference/mod.rs"]
mod reference;
mod speed;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bundle::Bundle;
use cases::{Case, GUARD, POISON};
use device::{Device, Failure, Kernel};
use serde_json::{Value as Json, json};
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
    /// Of the cases for other languages, one in so many.
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
    large: Vec<speed::Large>,
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
        speed::large()
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

/// Loads a program's kernels when its file is there.
struct Loader<'a> {
    settings: &'a Settings,
    device: &'a Device,
    programs: Vec<Vec<usize>>,
    loaded: BTreeMap<usize, Result<Kernel, String>>,
}

impl Loader<'_> {
    fn kernel(&mut self, number: usize) -> Result<&Kernel, Failure> {
        if !self.loaded.contains_key(&number) {
            let program = number / TOGETHER;
            let path = image_path(self.settings, program);
            let failed = path.with_extension("failed");
            let start = Instant::now();
            let image = loop {
                if let Ok(image) = fs::read(&path) {
                    break Ok(image);
                }
                if let Ok(why) = fs::read_to_string(&failed) {
                    break Err(why);
                }
                if start.elapsed() > Duration::from_secs(170) {
                    break Err("it was not compiled in 170 s".to_owned());
                }
                // The supervisor sees that this is no hang.
                let _ = fs::write(self.settings.work.join("waiting"), "");
                std::thread::sleep(Duration::from_millis(20));
            };
            let kernels = &self.programs[program];
            let names: Vec<String> = kernels.iter().map(|kernel| Bundle::name(*kernel)).collect();
            match image.and_then(|image| self.device.load(&image, &names)) {
                Ok(found) => self
                    .loaded
                    .extend(kernels.iter().copied().zip(found.into_iter().map(Ok))),
                Err(why) => self
                    .loaded
                    .extend(kernels.iter().map(|kernel| (*kernel, Err(why.clone())))),
            }
        }
        match self.loaded.get(&number) {
            Some(Ok(kernel)) => Ok(kernel),
            Some(Err(why)) => Err(format!(
                "not compiled: {}",
                why.chars().take(2000).collect::<String>()
            )),
            None => Err("no such kernel".to_owned()),
        }
    }
}

fn run_case(case: &Case, kernels: &[usize], loader: &mut Loader) -> Result<(), Failure> {
    let device = loader.device;
    for (address, bytes) in &case.inputs {
        device.upload(*address, bytes)?;
    }
    let (output, size) = case.output;
    let whole = size + 2 * GUARD;
    let mut surrounded = vec![POISON; whole as usize];
    if let Some(before) = &case.before {
        surrounded[GUARD as usize..(GUARD + size) as usize].copy_from_slice(before);
    }
    device.upload(output - GUARD, &surrounded)?;
    for (launch, kernel) in case.plan.launches.iter().zip(kernels) {
        device.start(loader.kernel(*kernel)?, launch, case.workspace)?;
    }
    device.wait()?;
    device.download(output - GUARD, &mut surrounded)?;
    let (front, rest) = surrounded.split_at(GUARD as usize);
    let (middle, back) = rest.split_at(size as usize);
    for (name, guard) in [("before", front), ("after", back)] {
        if let Some(place) = guard.iter().position(|byte| *byte != POISON) {
            return Err(format!(
                "it wrote {name} its output, {place} bytes into the guard"
            ));
        }
    }
    (case.judge)(middle)
}

/// What is done with a loader and the kernels of one piece of work.
type Job<'a> = dyn FnMut(&mut Loader, &[usize]) -> Result<Json, Failure> + 'a;

/// Runs everything after case `after`, a line for each.
fn runner(settings: &Settings) -> Result<(), Failure> {
    let work = work(settings);
    let device = Device::open(40 << 30)?;
    let mut log = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(settings.work.join("log"))
        .map_err(|error| error.to_string())?;
    let mut say = |line: Json| {
        let _ = writeln!(log, "{line}");
        let _ = log.flush();
    };
    say(json!({"gpu": device.name, "capability": device.number, "driver": device.driver}));
    let mut loader = Loader {
        settings,
        device: &device,
        programs: programs(&work.bundle),
        loaded: BTreeMap::new(),
    };
    let mut kernels = work.kernels.iter();
    let mut number = 0;
    for case in &work.cases {
        number += 1;
        let of = match case {
            Ok(_) => kernels.next().map_or(&[][..], Vec::as_slice),
            Err(_) => &[],
        };
        if number <= settings.after {
            continue;
        }
        let (group, label, result) = match case {
            Err(why) => ("plans", why.clone(), Err(why.clone())),
            Ok(case) => {
                say(json!({"start": number, "group": case.group, "label": case.label}));
                (
                    case.group,
                    case.label.clone(),
                    run_case(case, of, &mut loader),
                )
            }
        };
        say(json!({"end": number, "group": group, "label": label, "error": result.err()}));
        // What broke the context breaks all that follows.
        if device.wait().is_err() {
            std::process::exit(3);
        }
    }
    let mut rest = |group: &'static str, label: &str, run: &mut Job| {
        number += 1;
        let of = kernels.next().map_or(&[][..], Vec::as_slice);
        if number <= settings.after {
            return;
        }
        say(json!({"start": number, "group": group, "label": label}));
        match run(&mut loader, of) {
            Ok(data) => say(
                json!({"end": number, "group": group, "label": label, "error": null, "data": data}),
            ),
            Err(why) => say(json!({"end": number, "group": group, "label": label, "error": why})),
        }
        if device.wait().is_err() {
            std::process::exit(3);
        }
    };
    let copy = if work.timed.is_empty() {
        0.0
    } else {
        speed::copy_rate(&device)?
    };
    for timed in &work.timed {
        rest("speed", &timed.label, &mut |loader, of| {
            let kernels: Result<Vec<Kernel>, Failure> = of
                .iter()
                .map(|number| loader.kernel(*number).copied())
                .collect();
            speed::time(&device, &kernels?, timed, copy)
        });
    }
    for large in &work.large {
        rest("large", large.label, &mut |loader, of| {
            let kernel = loader.kernel(*of.first().ok_or("nothing to run")?)?;
            speed::check_large(&device, kernel, large).map(|()| Json::Null)
        });
    }
    if settings
        .only
        .as_deref()
        .is_none_or(|only| only.split(',').any(|o| o == "launcher"))
    {
        for (label, check) in launcher::CHECKS {
            rest("launcher", label, &mut |_, _| {
                check(settings.nvrtc.as_deref()).map(|()| Json::Null)
            });
        }
    }
    if !work.timed.is_empty() {
        let again = speed::copy_rate(&device)?;
        say(json!({"copy_gb_per_s": [copy, again]}));
    }
    say(json!({"done": number}));
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
        // Only what nobody waits for any longer is still being compiled.
        let _ = worker.kill();
        let _ = worker.wait();
    }
    report(settings, &broken, done, begun)
}

fn report(
    settings: &Settings,
    broken: &[(usize, String)],
    done: bool,
    begun: Instant,
) -> Result<bool, Failure> {
    let lines = lines(settings);
    let mut groups: BTreeMap<String, (usize, Vec<Json>)> = BTreeMap::new();
    let mut speeds = Vec::new();
    let word = |line: &Json, key: &str| {
        line.get(key)
            .and_then(Json::as_str)
            .unwrap_or("")
            .to_owned()
    };
    for line in &lines {
        if line.get("end").is_none() {
            continue;
        }
        let group = groups.entry(word(line, "group")).or_default();
        group.0 += 1;
        if !line["error"].is_null() {
            group.1.push(line.clone());
        }
        if line.get("data").is_some_and(|data| !data.is_null()) {
            speeds.push(line["data"].clone());
        }
    }
    for (number, why) in broken {
        let at = lines
            .iter()
            .find(|line| line.get("start").and_then(Json::as_u64) == Some(*number as u64));
        if let Some(line) = at {
            let group = groups.entry(word(line, "group")).or_default();
            group.0 += 1;
            group
                .1
                .push(json!({"label": word(line, "label"), "error": why}));
        }
    }
    for speed in &speeds {
        println!(
            "{:6.1} GB/s {:5.3} of copy  {}",
            speed["gb_per_s"].as_f64().unwrap_or(0.0),
            speed["of_copy"].as_f64().unwrap_or(0.0),
            word(speed, "label")
        );
    }
    let mut right = done;
    for (name, (count, failures)) in &groups {
        for failure in failures.iter().take(25) {
            println!(
                "WRONG {name}: {}: {}",
                word(failure, "label"),
                word(failure, "error").chars().take(600).collect::<String>()
            );
        }
        right &= failures.is_empty();
        println!("{name}: {count} checked, {} wrong", failures.len());
    }
    let find = |key: &str| {
        lines
            .iter()
            .rev()
            .find_map(|line| line.get(key).cloned())
            .unwrap_or(Json::Null)
    };
    println!(
        "copy: {} GB/s; {:.1} s; {}",
        find("copy_gb_per_s"),
        begun.elapsed().as_secs_f64(),
        if right { "all right" } else { "NOT all right" }
    );
    let summary: BTreeMap<&String, Json> = groups
        .iter()
        .map(|(name, (count, failures))| {
            (
                name,
                json!({"checked": count, "wrong": failures.len(), "failures": failures}),
            )
        })
        .collect();
    let result = json!({
        "seed": settings.seed, "gpu": find("gpu"), "capability": find("capability"), "driver": find("driver"),
        "arch": settings.arch, "finished": done, "seconds": begun.elapsed().as_secs_f64(),
        "copy_gb_per_s": find("copy_gb_per_s"), "groups": summary, "speeds": speeds,
    });
    fs::write(&settings.out, format!("{result:#}\n"))
        .map_err(|error| format!("{}: {error}", settings.out.display()))?;
    Ok(right)
}

fn main() -> ExitCode {
    let answer = settings().and_then(|settings| match settings.role.as_str() {
        "worker" => worker(&settings).map(|()| true),
        "runner" => runner(&settings).map(|()| true),
        "export" => exchange::export(&work(&settings).cases, settings.every, &settings.out),
        "judge" => exchange::judge(&work(&settings).cases, settings.every, &settings.out),
        // What there is to do, where there is no GPU.
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
