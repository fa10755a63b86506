//! `warpcc jit prove`: checks that the PTX in binaries works, before a newer GPU needs it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use warpcc_fatbin::{Arch, Binary, Gpu, Problem, ReadLimits, demangle, ptx_compiles};
use warpcc_jit::{
    AssembleJob, Assembled, CompileCause, Item, LoadResult, Loading, PtxText, Ptxas, assemble,
    complaints, every_text,
};

use super::args::{By, ProveArgs};
use super::binaries::{contents, open_all, report};
use super::exit_code::{FAILED, FINE, TO_FIX};
use super::print;
use super::print::prove::{ByDriver, Proof, RefusedText, Tried};
use super::ptxas::find_ptxas;
use crate::commands::output;
use crate::config::Config;
use crate::process_context::ProcessContext;

/// A text of a file.
type TextInFile<'f> = (&'f Binary, &'f PtxText<'f>);

pub(super) fn prove(
    args: &ProveArgs,
    config: &Config,
    context: &ProcessContext,
) -> anyhow::Result<i32> {
    let limits = ReadLimits::default();
    let ptxas = find_ptxas(args.tool.ptxas.as_deref(), config, context)?;
    let loading = Loading {
        longest: Duration::from_secs(args.tool.timeout),
        // The proof is that a text compiles, not that it was compiled before.
        variables: vec![("CUDA_CACHE_DISABLE", "1".into())],
        ..super::warm::loading(args.device, By::Logged, context)
    };
    let gpu = match args.load {
        true => Some(loading.gpu().map_err(anyhow::Error::msg)?),
        false => None,
    };
    let (binaries, errors) = open_all(&args.files);
    let found = contents(&binaries);
    let mut problems: Vec<Vec<Problem>> = found.iter().map(|f| f.problems.clone()).collect();
    let mut texts: Vec<(&Binary, PtxText<'_>)> = Vec::new();
    for (index, (binary, found)) in binaries.iter().zip(&found).enumerate() {
        let (mine, wrong) = every_text(found, &limits);
        problems[index].extend(wrong);
        texts.extend(mine.into_iter().map(|text| (binary, text)));
    }
    // Each text is tried and reported once.
    let mut seen = BTreeSet::new();
    let different: Vec<TextInFile<'_>> = texts
        .iter()
        .filter(|(_, text)| seen.insert(text.content))
        .map(|(binary, text)| (*binary, text))
        .collect();
    let mut proof = Proof {
        texts: texts.len(),
        different: different.len(),
        ptxas: ptxas.program.clone(),
        tried: Vec::new(),
        not_for_any: 0,
        failures: Vec::new(),
        unknown: Vec::new(),
        driver: None,
    };
    by_assembler(&ptxas, &different, args, config, &mut proof)?;
    if let Some(gpu) = &gpu {
        proof.driver = Some(by_driver(&loading, gpu, &different, &mut proof)?);
    }
    output::print(|out| match args.json {
        true => print::parts::write_json(&proof, out),
        // The reason is printed below.
        false if binaries.is_empty() => Ok(()),
        false => print::prove::write(&proof, out),
    })?;
    let with_problems: Vec<_> = binaries.iter().zip(problems).collect();
    if report(&errors, &with_problems) || !proof.unknown.is_empty() {
        return Ok(FAILED);
    }
    let proven = proof.failures.is_empty() && proof.texts > 0;
    Ok(if proven { FINE } else { TO_FIX })
}

/// The architectures to assemble a text for.
fn targets(ptxas: &Ptxas, text: Arch, asked: &[Gpu]) -> BTreeSet<Arch> {
    let numbers: Vec<u32> = match asked {
        [] => {
            let known = ptxas.targets.iter().map(|arch| arch.number);
            let fits = known.filter(|number| ptx_compiles(text, Gpu::Known(*number)));
            fits.max().into_iter().chain([text.number]).collect()
        }
        some => some
            .iter()
            .filter_map(|gpu| match gpu {
                Gpu::Known(number) => Some(*number),
                Gpu::Next => ptxas.newest(),
            })
            .collect(),
    };
    let targets = numbers.into_iter().filter_map(|n| ptxas.target(text, n));
    targets.collect()
}

fn by_assembler(
    ptxas: &Ptxas,
    different: &[TextInFile<'_>],
    args: &ProveArgs,
    config: &Config,
    proof: &mut Proof,
) -> anyhow::Result<()> {
    let limits = ReadLimits::default();
    let mut jobs: Vec<(TextInFile<'_>, AssembleJob<'_>)> = Vec::new();
    for placed in different {
        let text = placed.1;
        let targets = targets(ptxas, text.source.arch, &args.gpu);
        proof.not_for_any += usize::from(targets.is_empty());
        jobs.extend(targets.into_iter().map(|target| {
            let job = AssembleJob {
                image: text.source,
                target,
                used: text.used,
            };
            (*placed, job)
        }));
    }
    let only: Vec<AssembleJob<'_>> = jobs.iter().map(|(_, job)| *job).collect();
    let longest = Duration::from_secs(args.tool.timeout);
    let done = assemble(ptxas, &only, config.job_limit(), longest, &limits)?;
    let mut tried: BTreeMap<Arch, Tried> = BTreeMap::new();
    for ((placed, job), answer) in jobs.iter().zip(done) {
        let by = format!("sm_{}", job.target);
        let sums = tried.entry(job.target).or_insert_with(|| Tried {
            target: by.clone(),
            assembled: 0,
            refused: 0,
        });
        match answer {
            Assembled::Made(_) => sums.assembled += 1,
            // A `ptxas` that is too old proves nothing about the PTX.
            Assembled::Refused(said) if said.contains("Unsupported .version") => {
                let version = placed.1.source.code_version.unwrap_or_default();
                let why = format!("PTX {}.{} is newer than this ptxas", version.0, version.1);
                proof.unknown.push(failure(*placed, &by, &why, &limits));
            }
            Assembled::Refused(said) => {
                sums.refused += 1;
                proof.failures.push(failure(*placed, &by, &said, &limits));
            }
            Assembled::Unknown(why) => {
                proof.unknown.push(failure(*placed, &by, &why, &limits));
            }
        }
    }
    proof.tried = tried.into_values().collect();
    Ok(())
}

fn failure(
    (binary, text): TextInFile<'_>,
    by: &str,
    said: &str,
    limits: &ReadLimits,
) -> RefusedText {
    let payload = text.source.payload(limits).unwrap_or_default();
    let mut complaints = complaints(said, &payload);
    for complaint in &mut complaints {
        complaint.kernel = complaint.kernel.as_deref().map(demangle);
    }
    RefusedText {
        file: binary.input.to_string(),
        member: text.member.map(str::to_owned),
        container: text.container,
        image: text.image,
        target: text.source.target(),
        by: by.to_owned(),
        complaints,
        kernels: text.kernels.iter().map(|name| demangle(name)).collect(),
    }
}

/// Lets the driver compile each text by itself.
fn by_driver(
    loading: &Loading,
    gpu: &warpcc_jit::GpuWithDriver,
    different: &[TextInFile<'_>],
    proof: &mut Proof,
) -> anyhow::Result<ByDriver> {
    let limits = ReadLimits::default();
    let mut sums = ByDriver {
        gpu: format!("sm_{}", gpu.number),
        name: gpu.name.clone(),
        driver: gpu.driver.to_string(),
        compiled: 0,
        refused: 0,
        not_for_it: 0,
    };
    let mut files: Vec<(&Binary, Vec<(Item, &PtxText<'_>)>)> = Vec::new();
    for (binary, text) in different {
        let fits = ptx_compiles(text.source.arch, Gpu::Known(gpu.number));
        // Relocatable texts are completed only by a link.
        if !fits || text.used == CompileCause::Link {
            sums.not_for_it += 1;
            continue;
        }
        let item = (Item::Image(text.container, text.image), *text);
        match files.last_mut() {
            Some((last, items)) if std::ptr::eq(*last, *binary) => items.push(item),
            _ => files.push((binary, vec![item])),
        }
    }
    for (binary, texts) in files {
        let items: Vec<Item> = texts.iter().map(|(item, _)| *item).collect();
        let done = loading.load(&binary.input, &items);
        for ((_, text), (_, outcome)) in texts.iter().zip(done.map_err(anyhow::Error::msg)?) {
            let placed = (binary, *text);
            let by = format!("the driver, sm_{}", gpu.number);
            match outcome {
                LoadResult::In(_) => sums.compiled += 1,
                LoadResult::Refused { number, name, log } => {
                    sums.refused += 1;
                    let said = match log.is_empty() {
                        true => format!("error {number}: {name}"),
                        false => format!("{log}\nerror {number}: {name}"),
                    };
                    proof.failures.push(failure(placed, &by, &said, &limits));
                }
                LoadResult::Lost(why) => {
                    proof.unknown.push(failure(placed, &by, &why, &limits));
                }
            }
        }
    }
    Ok(sums)
}
