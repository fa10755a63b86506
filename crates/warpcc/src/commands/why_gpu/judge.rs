//! Judges a package: the driver's verdict about each container of its files, added up.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use warpcc_fatbin::{
    Binary, BinaryInput, DriverVersion, ImageKind, LoadOutcome, ReadLimits, Verdicts, judge,
};
use warpcc_jit::{estimate, what_is_compiled};

use super::environment::Package;
use super::mend;
use super::target::Target;

/// Containers whose toolkit is looked for: those of one library have the same.
const ASKED: usize = 4;
/// `cudaErrorInsufficientDriver`.
pub const OLD_DRIVER: u32 = 35;

/// What happens to a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Everything in it runs as it is.
    Native,
    /// Something is compiled when it is first needed; all runs.
    Compiles,
    /// Some kernels are not for this GPU. Libraries that choose at run time have such.
    Partly,
    /// Nothing in it runs.
    Fails,
    /// It holds no code for a GPU.
    NoDeviceCode,
    /// Its files cannot be read.
    Unreadable,
}

/// Containers by what the driver does with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Run as they are.
    pub run: usize,
    /// Compiled.
    pub compile: usize,
    /// Not loaded.
    pub fail: usize,
}

/// One reason why something does not load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The error's number in `cuda.h`.
    pub error: u32,
    /// Its name there.
    pub name: String,
    /// In how many containers.
    pub containers: usize,
    /// In a sentence.
    pub why: String,
    /// A kernel that it is about.
    pub kernel: Option<String>,
}

/// What is known of a package.
#[derive(Debug, Clone, Serialize)]
pub struct Judged {
    /// Its name.
    pub package: String,
    /// Its version.
    pub version: String,
    /// What happens to it.
    pub answer: Answer,
    /// Its containers.
    pub containers: Counts,
    /// For what there is code: `sm_80`, `compute_90`.
    pub targets: Vec<String>,
    /// The newest toolkit that made its code, as far as images say.
    pub toolkit: Option<String>,
    /// Seconds of one core for all that is compiled: an estimate.
    pub compile_seconds: Option<f64>,
    /// Why something does not load.
    pub failures: Vec<Failure>,
    /// What mends it, the surest first.
    pub mend: Vec<String>,
    /// Files that could not be read, or not as a whole.
    pub problems: Vec<String>,
    /// The newest PTX that the driver refuses.
    #[serde(skip)]
    pub refused_ptx: Option<(u16, u16)>,
    /// Numbers of the architectures that there is machine code for.
    #[serde(skip)]
    pub numbers: BTreeSet<u32>,
}

/// Judges all files of a package.
pub fn judge_package(package: &Package, target: &Target) -> Judged {
    let limits = ReadLimits::default();
    let mut sum = Sum::default();
    for path in &package.files {
        let input = BinaryInput::file(path);
        match Binary::open(input, &limits) {
            Ok(binary) => sum.add(&binary, target, &limits),
            // A linker script is named as a library, and an empty file marks a package.
            Err(error) if error.is_no_binary() => {}
            Err(error) => sum.problems.push(error.to_string()),
        }
    }
    sum.finish(package, target)
}

#[derive(Default)]
struct Sum {
    counts: Counts,
    targets: BTreeSet<(ImageKind, u32, String)>,
    toolkits: BTreeSet<(u32, u32, String)>,
    texts: BTreeMap<[u8; 32], u64>,
    failures: BTreeMap<(u32, String), Failure>,
    refused_ptx: Option<(u16, u16)>,
    problems: Vec<String>,
}

impl Sum {
    fn add(&mut self, binary: &Binary, target: &Target, limits: &ReadLimits) {
        let situation = target.situation();
        let verdicts = judge(binary, &[target.gpu], &situation, limits);
        let problems = verdicts.problems.iter();
        self.problems.extend(problems.map(|problem| {
            format!(
                "{} at {:#x}: {}",
                binary.input, problem.offset, problem.flaw
            )
        }));
        if verdicts.verdicts.is_empty() {
            return;
        }
        let found = binary.contents(limits);
        for image in found.containers.iter().flat_map(|c| &c.images) {
            self.targets
                .insert((image.kind, image.arch.number, image.target()));
        }
        let firsts = found.containers.iter().filter_map(|c| c.images.first());
        for toolkit in firsts.take(ASKED).filter_map(|image| image.toolkit(limits)) {
            let mut numbers = toolkit
                .split('.')
                .map_while(|word| word.parse::<u32>().ok());
            let key = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
            self.toolkits.insert((key.0, key.1, toolkit));
        }
        self.count(&verdicts);
        for verdict in verdicts.verdicts.iter().filter(|v| v.error == Some(222)) {
            let image = verdict.image.and_then(|image| {
                let container = found.containers.get(verdict.container)?;
                container.images.get(image)?.code_version
            });
            self.refused_ptx = self.refused_ptx.max(image);
        }
        let (texts, _) = what_is_compiled(&found, &verdicts, target.gpu, &situation, limits);
        // Equal texts are compiled once.
        self.texts
            .extend(texts.iter().map(|text| (text.content, text.bytes)));
    }

    fn count(&mut self, verdicts: &Verdicts) {
        for verdict in &verdicts.verdicts {
            match verdict.outcome {
                LoadOutcome::Run => self.counts.run += 1,
                LoadOutcome::Jit | LoadOutcome::JitLink => self.counts.compile += 1,
                // Relocatable code in a library is the input of a link that is done.
                LoadOutcome::NotLinked => {}
                LoadOutcome::Fail => {
                    self.counts.fail += 1;
                    let error = verdict.error.unwrap_or_default();
                    let new = || Failure {
                        error,
                        name: verdict.error_name.unwrap_or_default().to_owned(),
                        containers: 0,
                        why: verdict.why.clone(),
                        kernel: verdict.kernels.first().cloned(),
                    };
                    let key = (error, verdict.why.clone());
                    self.failures.entry(key).or_insert_with(new).containers += 1;
                }
            }
        }
    }

    fn finish(self, package: &Package, target: &Target) -> Judged {
        let seconds = self.texts.values().map(|bytes| estimate(*bytes).seconds);
        let seconds: f64 = seconds.sum();
        let toolkit = self.toolkits.last();
        let mut failures: Vec<Failure> = self.failures.into_values().collect();
        failures.sort_by_key(|failure| std::cmp::Reverse(failure.containers));
        let counts = self.counts;
        let judged = counts.run + counts.compile + counts.fail;
        let mut answer = match counts {
            _ if judged == 0 && !self.problems.is_empty() => Answer::Unreadable,
            _ if judged == 0 => Answer::NoDeviceCode,
            Counts {
                run: 0, compile: 0, ..
            } => Answer::Fails,
            Counts { fail: 1.., .. } => Answer::Partly,
            Counts { compile: 1.., .. } => Answer::Compiles,
            _ => Answer::Native,
        };
        if judged > 0
            && let Some((major, _, toolkit)) = toolkit
            && let Some(driver) = target
                .driver
                .filter(|driver| u32::from(driver.major) < *major)
        {
            answer = Answer::Fails;
            failures.insert(0, old_driver(driver, toolkit, judged));
        }
        let mut judged = Judged {
            package: package.name.clone(),
            version: package.version.clone(),
            answer,
            containers: counts,
            numbers: self
                .targets
                .iter()
                .filter(|(kind, ..)| *kind == ImageKind::Cubin)
                .map(|(_, number, _)| *number)
                .collect(),
            targets: self
                .targets
                .into_iter()
                .map(|(_, _, target)| target)
                .collect(),
            toolkit: toolkit.map(|(_, _, text)| text.clone()),
            compile_seconds: (counts.compile > 0).then_some(seconds),
            failures,
            mend: Vec::new(),
            problems: self.problems,
            refused_ptx: self.refused_ptx,
        };
        judged.mend = mend::advice(&judged, target);
        judged
    }
}

/// A runtime of a newer major version does not start. That the code's toolkit is the runtime's is inferred.
fn old_driver(driver: DriverVersion, toolkit: &str, containers: usize) -> Failure {
    Failure {
        error: OLD_DRIVER,
        name: "cudaErrorInsufficientDriver".to_owned(),
        containers,
        why: format!(
            "its code was made by CUDA {toolkit}, whose runtime does not start with a driver of CUDA {driver}"
        ),
        kernel: None,
    }
}
