//! Judges a package: the driver's verdict about each container of its files, added up.

use std::collections::{BTreeMap, BTreeSet};

use warpcc_fatbin::{
    Binary, BinaryInput, DriverVersion, ImageKind, LoadOutcome, ReadLimits, Verdicts, judge,
};
use warpcc_jit::{estimate, what_is_compiled};

use super::judged::{Counts, Judged, LoadFailure, OLD_DRIVER, PackageVerdict};
use super::mend;
use super::package::Package;
use super::target::Target;

/// Containers whose toolkit is looked for: those of one library have the same.
const ASKED: usize = 4;
/// Judges all files of a package.
pub fn judge_package(package: &Package, target: &Target) -> Judged {
    let limits = ReadLimits::default();
    let mut sum = PackageSum::default();
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
struct PackageSum {
    counts: Counts,
    targets: BTreeSet<(ImageKind, u32, String)>,
    toolkits: BTreeSet<(u32, u32, String)>,
    texts: BTreeMap<[u8; 32], u64>,
    failures: BTreeMap<(u32, String), LoadFailure>,
    refused_ptx: Option<(u16, u16)>,
    problems: Vec<String>,
}

impl PackageSum {
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
        let toolkits = firsts.take(ASKED).filter_map(|image| image.toolkit(limits));
        let newest = toolkits.map(numbered).max();
        self.toolkits.extend(newest.clone());
        // Each library has a runtime of its own: one wheel may have some for several.
        if let Some((major, _, toolkit)) = newest
            && let Some(driver) = target.driver
            && u32::from(driver.major) < major
        {
            self.refuse(&old_driver(driver, &toolkit), verdicts.verdicts.len());
            return;
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

    /// So many containers fail for this reason.
    fn refuse(&mut self, failure: &LoadFailure, containers: usize) {
        self.counts.fail += containers;
        let key = (failure.error, failure.why.clone());
        let known = self.failures.entry(key);
        known.or_insert_with(|| failure.clone()).containers += containers;
    }

    fn count(&mut self, verdicts: &Verdicts) {
        for verdict in &verdicts.verdicts {
            match verdict.outcome {
                LoadOutcome::Run => self.counts.run += 1,
                LoadOutcome::Jit | LoadOutcome::JitLink => self.counts.compile += 1,
                // Relocatable code in a library is the input of a link that is done.
                LoadOutcome::NotLinked => {}
                LoadOutcome::Fail => {
                    let failure = LoadFailure {
                        error: verdict.error.unwrap_or_default(),
                        name: verdict.error_name.unwrap_or_default().to_owned(),
                        containers: 0,
                        why: verdict.why.clone(),
                        kernel: verdict.kernels.first().cloned(),
                    };
                    self.refuse(&failure, 1);
                }
            }
        }
    }

    fn finish(self, package: &Package, target: &Target) -> Judged {
        let seconds = self.texts.values().map(|bytes| estimate(*bytes).seconds);
        let seconds: f64 = seconds.sum();
        let toolkit = self.toolkits.last();
        let mut failures: Vec<LoadFailure> = self.failures.into_values().collect();
        failures.sort_by_key(|failure| std::cmp::Reverse(failure.containers));
        let counts = self.counts;
        let judged = counts.run + counts.compile + counts.fail;
        let answer = match counts {
            _ if judged == 0 && !self.problems.is_empty() => PackageVerdict::Unreadable,
            _ if judged == 0 => PackageVerdict::NoDeviceCode,
            Counts {
                run: 0, compile: 0, ..
            } => PackageVerdict::Fails,
            Counts { fail: 1.., .. } => PackageVerdict::Partly,
            Counts { compile: 1.., .. } => PackageVerdict::Compiles,
            _ => PackageVerdict::Native,
        };
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
            problems: package
                .missing
                .iter()
                .cloned()
                .chain(self.problems)
                .collect(),
            refused_ptx: self.refused_ptx,
        };
        judged.mend = mend::advice(&judged, target);
        judged
    }
}

/// A toolkit's version with its first two numbers, by which it is compared.
fn numbered(toolkit: String) -> (u32, u32, String) {
    let mut numbers = toolkit.split('.').map_while(|word| word.parse().ok());
    let key = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    (key.0, key.1, toolkit)
}

/// A runtime of a newer major version does not start. That the code's toolkit is the runtime's is inferred.
fn old_driver(driver: DriverVersion, toolkit: &str) -> LoadFailure {
    LoadFailure {
        error: OLD_DRIVER,
        name: "cudaErrorInsufficientDriver".to_owned(),
        containers: 0,
        why: format!(
            "its code was made by CUDA {toolkit}, whose runtime does not start with a driver of CUDA {driver}"
        ),
        kernel: None,
    }
}
