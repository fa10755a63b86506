//! The runner: every case one after another in one context, a line for each in the log.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::bundle::Bundle;
use crate::cases::{Case, GUARD, POISON};
use crate::device::{Device, Failure, Kernel};
use crate::{Settings, TOGETHER, Work, image_path, large, launcher, programs, speed};

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

/// The requests so far, and their results.
struct Runner<'a> {
    settings: &'a Settings,
    loader: Loader<'a>,
    log: fs::File,
    /// Each piece of work's kernels.
    kernels: std::slice::Iter<'a, Vec<usize>>,
    number: usize,
}

/// Runs everything after case `after`, a line for each.
pub fn run(settings: &Settings, work: &Work) -> Result<(), Failure> {
    let device = Device::open(40 << 30)?;
    let log = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(settings.work.join("log"))
        .map_err(|error| error.to_string())?;
    let mut runner = Runner {
        settings,
        loader: Loader {
            settings,
            device: &device,
            programs: programs(&work.bundle),
            loaded: BTreeMap::new(),
        },
        log,
        kernels: work.kernels.iter(),
        number: 0,
    };
    runner.say(&json!({"gpu": device.name, "capability": device.number, "driver": device.driver}));
    for case in &work.cases {
        runner.case(case);
    }
    runner.speeds(work)?;
    runner.say(&json!({"done": runner.number}));
    Ok(())
}

impl Runner<'_> {
    fn say(&mut self, line: &Json) {
        let _ = writeln!(self.log, "{line}");
        let _ = self.log.flush();
    }

    /// Runs a case, whose plan may not have been made.
    fn case(&mut self, case: &Result<Case, String>) {
        match case {
            Ok(case) => self.piece(case.group, &case.label, |loader, kernels| {
                run_case(case, kernels, loader).map(|()| Json::Null)
            }),
            Err(why) => {
                self.number += 1;
                if self.number > self.settings.after {
                    self.end("plans", why, Err(why.clone()));
                }
            }
        }
    }

    /// Does a piece of work, unless a runner before this one did.
    fn piece(
        &mut self,
        group: &str,
        label: &str,
        work: impl FnOnce(&mut Loader, &[usize]) -> Result<Json, Failure>,
    ) {
        self.number += 1;
        let kernels = self.kernels.next().map_or(&[][..], Vec::as_slice);
        if self.number <= self.settings.after {
            return;
        }
        self.say(&json!({"start": self.number, "group": group, "label": label}));
        let result = work(&mut self.loader, kernels);
        self.end(group, label, result);
    }

    fn end(&mut self, group: &str, label: &str, result: Result<Json, Failure>) {
        let mut line = json!({"end": self.number, "group": group, "label": label, "error": null});
        match result {
            Ok(Json::Null) => {}
            Ok(data) => line["data"] = data,
            Err(why) => line["error"] = why.into(),
        }
        self.say(&line);
        // A broken context breaks all later requests.
        if self.loader.device.wait().is_err() {
            std::process::exit(3);
        }
    }

    /// Speeds, large arrays, and the launcher.
    fn speeds(&mut self, work: &Work) -> Result<(), Failure> {
        let device = self.loader.device;
        let copy = match work.timed.is_empty() {
            true => 0.0,
            false => speed::copy_rate(device)?,
        };
        for timed in &work.timed {
            self.piece("speed", &timed.label, |loader, kernels| {
                let kernels = kernels.iter();
                let kernels: Result<Vec<Kernel>, Failure> = kernels
                    .map(|number| loader.kernel(*number).copied())
                    .collect();
                speed::time(device, &kernels?, timed, copy)
            });
        }
        for large in &work.large {
            self.piece("large", large.label, |loader, kernels| {
                let kernel = loader.kernel(*kernels.first().ok_or("nothing to run")?)?;
                large::check(device, kernel, large).map(|()| Json::Null)
            });
        }
        let only = self.settings.only.as_deref();
        if only.is_none_or(|only| only.split(',').any(|group| group == "launcher")) {
            for (label, check) in launcher::CHECKS {
                let nvrtc = self.settings.nvrtc.as_deref();
                self.piece("launcher", label, |_, _| check(nvrtc).map(|()| Json::Null));
            }
        }
        if !work.timed.is_empty() {
            let again = speed::copy_rate(device)?;
            self.say(&json!({"copy_gb_per_s": [copy, again]}));
        }
        Ok(())
    }
}
