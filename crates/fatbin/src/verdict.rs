//! Predicts what a driver will do with every container of a file, on a given GPU.

use std::collections::BTreeSet;

use rayon::prelude::*;
use serde::Serialize;

use crate::container::{Container, Section};
use crate::demangle::demangle;
use crate::error::{Problem, ReadLimits};
use crate::image::ImageKind;
use crate::inspect::Inside;
use crate::select::{Candidate, CudaError, Gpu, Selection, Situation, choose, ptx_compiles};
use crate::source::Binary;
use crate::work;

/// The driver's choice for one container on one GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadOutcome {
    /// A cubin runs as it is.
    Run,
    /// PTX is compiled when the module is first needed, or found in the driver's cache.
    Jit,
    /// Nothing linked fits, and the runtime can link anew from the relocatable PTX (inferred).
    JitLink,
    /// It cannot be loaded.
    Fail,
    /// Relocatable code: a device link decides.
    NotLinked,
}

/// One container on one GPU.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    /// The file, and the member of a wheel.
    pub file: String,
    /// The member of a static library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// The part of the file.
    pub section: Section,
    /// The container's number in the file, from 0.
    pub container: usize,
    /// The GPU.
    pub gpu: Gpu,
    /// The driver's action.
    pub outcome: LoadOutcome,
    /// The image that decides, by its number in the container.
    pub image: Option<usize>,
    /// The target of that image: `sm_90`, `compute_80`.
    pub target: Option<String>,
    /// The driver's error: 209, 222, 223.
    pub error: Option<u32>,
    /// Its name in `cuda.h`.
    pub error_name: Option<&'static str>,
    /// In a sentence.
    pub why: String,
    /// The kernels that are concerned, with readable names. If the outcome is `fail`, these kernels cannot run.
    pub kernels: Vec<String>,
    /// Kernels that other images of the container have and the chosen one lacks.
    pub missing: Vec<String>,
}

/// All verdicts about a file.
#[derive(Debug, Default)]
pub struct Verdicts {
    /// One for each container and GPU.
    pub verdicts: Vec<Verdict>,
    /// Containers without kernels and variables, such as nvcc's device link adds; they decide
    /// nothing.
    pub empty: usize,
    /// Relocatable containers in a linked file, of which the linked one was made.
    pub linked_in: usize,
    /// The problems found. Parts that could not be read were not judged.
    pub problems: Vec<Problem>,
}

/// A container with the contents of its images; `None` for an image that could not be read.
struct DecodedContainer<'f, 'a> {
    number: usize,
    container: &'f Container<'a>,
    inside: Vec<Option<Inside>>,
}

impl DecodedContainer<'_, '_> {
    fn is_empty(&self) -> bool {
        let nothing = |inside: &Option<Inside>| {
            inside
                .as_ref()
                .is_some_and(|i| i.functions.is_empty() && i.global_bytes == 0)
        };
        let cubins = self
            .container
            .images
            .iter()
            .all(|i| i.kind == ImageKind::Cubin);
        cubins && self.inside.iter().all(nothing)
    }

    fn kernels(&self) -> BTreeSet<&str> {
        let inside = self.inside.iter().flatten();
        inside
            .flat_map(Inside::kernels)
            .map(|k| k.name.as_str())
            .collect()
    }

    fn kernels_of(&self, image: usize) -> BTreeSet<&str> {
        let inside = self.inside.get(image).into_iter().flatten();
        inside
            .flat_map(Inside::kernels)
            .map(|k| k.name.as_str())
            .collect()
    }
}

/// Judges the containers of a file on each of the GPUs.
pub fn judge(
    binary: &Binary,
    gpus: &[Gpu],
    situation: &Situation,
    limits: &ReadLimits,
) -> Verdicts {
    let found = binary.contents(limits);
    let file = binary.input.to_string();
    let mut verdicts = Verdicts {
        problems: found.problems.clone(),
        ..Verdicts::default()
    };
    let looked: Vec<(DecodedContainer<'_, '_>, Vec<Problem>)> = found
        .containers
        .par_iter()
        .enumerate()
        .map(|(number, container)| judge_container(number, container, limits))
        .collect();
    let (looked, problems): (Vec<_>, Vec<_>) = looked.into_iter().unzip();
    verdicts.problems.extend(problems.into_iter().flatten());
    let (judged, inputs): (Vec<_>, Vec<_>) = looked
        .iter()
        .partition(|l| !(l.container.linked && l.container.section == Section::Relocatable));
    verdicts.linked_in = inputs.len();
    let links = Links::new(&inputs, gpus, situation);
    for container in judged {
        if container.is_empty() {
            verdicts.empty += 1;
            continue;
        }
        for &gpu in gpus {
            let mut verdict = one(&file, container, gpu, situation);
            if verdict.outcome == LoadOutcome::Fail {
                links.try_linking(&mut verdict, container);
            }
            verdicts.verdicts.push(verdict);
        }
    }
    verdicts
}

fn judge_container<'f, 'a>(
    number: usize,
    container: &'f Container<'a>,
    limits: &ReadLimits,
) -> (DecodedContainer<'f, 'a>, Vec<Problem>) {
    let mut problems = Vec::new();
    let inside = container.images.iter().map(|image| {
        let inside = image.inside(limits);
        inside
            .map_err(|flaw| {
                problems.push(Problem {
                    member: container.member.clone(),
                    offset: image.place.offset,
                    flaw,
                });
            })
            .ok()
    });
    let inside = inside.collect();
    let looked = DecodedContainer {
        number,
        container,
        inside,
    };
    (looked, problems)
}

fn one(file: &str, looked: &DecodedContainer<'_, '_>, gpu: Gpu, situation: &Situation) -> Verdict {
    let container = looked.container;
    let candidates: Vec<Candidate> = container.images.iter().map(Candidate::from).collect();
    // For a single cubin there is no choice, so the variables have no effect.
    let situation = match container.section {
        Section::Cubin => &Situation::default(),
        _ => situation,
    };
    let choice = choose(&candidates, gpu, situation);
    let (mut outcome, image, error) = match choice {
        Selection::Run(image) => (LoadOutcome::Run, Some(image), None),
        Selection::Jit(image) => (LoadOutcome::Jit, Some(image), None),
        Selection::Fail(error, image) => (LoadOutcome::Fail, image, Some(error)),
    };
    let not_linked = match container.section {
        Section::Relocatable => true,
        _ => image
            .and_then(|image| looked.inside.get(image)?.as_ref()?.relocatable)
            .unwrap_or(false),
    };
    let target = image.map(|image| container.images[image].target());
    let mut why = explain(choice, &candidates, gpu, situation, target.as_deref());
    if not_linked {
        outcome = LoadOutcome::NotLinked;
        why = format!("relocatable code, which a device link must finish; then: {why}");
    }
    let all = looked.kernels();
    let chosen = match (outcome, image) {
        (LoadOutcome::Fail, _) | (_, None) => all.clone(),
        (_, Some(image)) => looked.kernels_of(image),
    };
    let missing = all.difference(&chosen).map(|name| demangle(name)).collect();
    Verdict {
        file: file.to_owned(),
        member: container.member.clone(),
        section: container.section,
        container: looked.number,
        gpu,
        outcome,
        image,
        target,
        error: error.map(CudaError::number),
        error_name: error.map(CudaError::name),
        why,
        kernels: chosen.iter().map(|name| demangle(name)).collect(),
        missing,
    }
}

fn explain(
    choice: Selection,
    images: &[Candidate],
    gpu: Gpu,
    situation: &Situation,
    target: Option<&str>,
) -> String {
    let target = target.unwrap_or_default();
    let version = |image: usize| match images[image].version {
        Some((major, minor)) => format!("PTX {major}.{minor}"),
        None => "PTX".to_owned(),
    };
    match choice {
        Selection::Run(_) => format!("runs the cubin for {target}"),
        Selection::Jit(image) if situation.force_jit => {
            format!("compiles {} for {target}: JIT is forced", version(image))
        }
        Selection::Jit(image) => {
            format!(
                "compiles {} for {target}: no cubin runs on {gpu}",
                version(image)
            )
        }
        Selection::Fail(CudaError::UnsupportedPtxVersion, Some(image)) => {
            let (driver, newest) = situation.driver.map_or_else(Default::default, |driver| {
                let (major, minor) = driver.newest_ptx();
                (driver.to_string(), format!("{major}.{minor}"))
            });
            format!(
                "takes {} for {target}, which a driver of CUDA {driver} (up to {newest}) cannot \
                 compile; another PTX is not tried",
                version(image)
            )
        }
        Selection::Fail(CudaError::JitDisabled, _) => {
            format!("would have to compile {target}, and JIT is disabled")
        }
        // A driver that reads them would not have failed.
        Selection::Fail(..)
            if situation.driver.is_some_and(|d| !d.reads_concatenated())
                && images.iter().any(|c| c.concatenated) =>
        {
            format!(
                "nothing for {gpu} but concatenated images (fatbinary --concat), which a driver of \
                 CUDA {} does not load",
                situation.driver.map_or_else(String::new, |d| d.to_string())
            )
        }
        Selection::Fail(..) => {
            let cubin = images
                .iter()
                .any(|c| c.kind == ImageKind::Cubin && crate::select::cubin_runs(c.arch, gpu));
            match cubin {
                true => "no PTX to compile, and JIT is forced, which ignores cubins".to_owned(),
                false => format!("neither a cubin nor PTX for {gpu}"),
            }
        }
    }
}

/// The relocatable code of which a linked file was made: looked into once, for all containers.
struct Links<'l> {
    /// Its kernels.
    kernels: BTreeSet<&'l str>,
    /// The GPUs for which all of it has PTX that a driver compiles.
    compiles: Vec<Gpu>,
}

impl<'l> Links<'l> {
    fn new(inputs: &[&'l DecodedContainer<'_, '_>], gpus: &[Gpu], situation: &Situation) -> Self {
        let kernels = inputs.iter().flat_map(|input| input.kernels()).collect();
        let can = |gpu: &&Gpu| inputs.iter().all(|input| has_text(input, **gpu, situation));
        let compiles = match situation.disable_jit {
            true => Vec::new(),
            false => gpus.iter().filter(can).copied().collect(),
        };
        Self { kernels, compiles }
    }

    /// The runtime can link anew from relocatable PTX when the linked container has nothing that fits.
    fn try_linking(&self, verdict: &mut Verdict, looked: &DecodedContainer<'_, '_>) {
        // Whether this container came out of the device link: its kernels are those of the inputs.
        let own = looked.kernels();
        work::count(own.len());
        let from_link = !self.kernels.is_empty() && own.is_subset(&self.kernels);
        if from_link && self.compiles.contains(&verdict.gpu) {
            verdict.outcome = LoadOutcome::JitLink;
            verdict.why = format!(
                "the linked code has nothing for {}; the runtime can compile and link the relocatable \
                 PTX anew",
                verdict.gpu
            );
        }
    }
}

fn has_text(input: &DecodedContainer<'_, '_>, gpu: Gpu, situation: &Situation) -> bool {
    work::count(input.container.images.len());
    input.container.images.iter().any(|image| {
        let too_new = situation
            .driver
            .zip(image.code_version)
            .is_some_and(|(driver, version)| version > driver.newest_ptx());
        let unread = Candidate::from(image).concatenated
            && situation.driver.is_some_and(|d| !d.reads_concatenated());
        let fits = image.kind == ImageKind::Ptx && ptx_compiles(image.arch, gpu);
        fits && !too_new && !unread
    })
}
