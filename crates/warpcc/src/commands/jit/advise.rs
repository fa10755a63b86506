//! `warpcc jit advise`: measures or estimates what the first start on a GPU compiles, and gives advice.

mod findings;

use std::collections::BTreeMap;
use std::time::Duration;

use warpcc_fatbin::{
    FoundImages, Gpu, LoadOutcome, Problem, ReadLimits, Situation, Verdicts, demangle, judge,
};
use warpcc_jit::{
    AssembleJob, Assembled, CompileCause, Cost, JitSettings, MaxSize, PtxText, Ptxas, Remark,
    Weight, assemble, estimate, what_is_compiled,
};

use super::args::AdviseArgs;
use super::binaries::{contents, open_all, report};
use super::cache;
use super::exit_code::{FAILED, FINE, TO_FIX};
use super::print;
use super::print::advise::{JitAdvice, OfFile, OnGpu, TextRow};
use super::ptxas::find_ptxas;
use crate::commands::output;
use crate::config::Config;
use crate::log;
use crate::process_context::ProcessContext;
use findings::{gencode, of_gpu};

pub(super) fn advise(
    args: &AdviseArgs,
    config: &Config,
    context: &ProcessContext,
) -> anyhow::Result<i32> {
    let limits = ReadLimits::default();
    let settings = JitSettings::read(&context.environment);
    let situation = Situation {
        driver: args.driver,
        force_jit: settings.force_jit,
        disable_jit: settings.disable_jit,
    };
    let mut gpus = args.gpu.clone();
    gpus.sort_unstable();
    gpus.dedup();
    let (binaries, errors) = open_all(&args.files);
    let found = contents(&binaries);
    let verdicts: Vec<Verdicts> = binaries
        .iter()
        .map(|binary| judge(binary, &gpus, &situation, &limits))
        .collect();
    let mut problems: Vec<Vec<Problem>> = verdicts.iter().map(|v| v.problems.clone()).collect();
    let compiles = |v: &Verdicts| {
        let mut all = v.verdicts.iter();
        all.any(|v| matches!(v.outcome, LoadOutcome::Jit | LoadOutcome::JitLink))
    };
    let ptxas = match verdicts.iter().any(compiles) && !args.estimate {
        true => find_ptxas(args.tool.ptxas.as_deref(), config, context)
            .map_err(|error| log::warn(&format!("{error:#}; the figures are estimates")))
            .ok(),
        false => None,
    };
    let mut on_gpus = Vec::new();
    for gpu in gpus {
        let mut files: Vec<(OfFile, Vec<PtxText<'_>>)> = Vec::new();
        for (index, (binary, found)) in binaries.iter().zip(&found).enumerate() {
            let verdicts = &verdicts[index];
            let (texts, wrong) = what_is_compiled(found, verdicts, gpu, &situation, &limits);
            add_new(&mut problems[index], wrong);
            files.push((of_file(binary.input.to_string(), verdicts, gpu), texts));
        }
        let costs = measure(&files, gpu, ptxas.as_ref(), args, config)?;
        on_gpus.push(on_gpu(gpu, files, &found, &costs, settings.max_size));
    }
    let advice = conclude(on_gpus, &settings, context, ptxas);
    output::print(|out| match args.json {
        true => print::parts::write_json(&advice, out),
        // The reason is printed below.
        false if binaries.is_empty() => Ok(()),
        false => print::advise::write(&advice, out),
    })?;
    let with_problems: Vec<_> = binaries.iter().zip(problems).collect();
    if report(&errors, &with_problems) {
        return Ok(FAILED);
    }
    let to_fix = advice.remarks.iter().any(|r| r.weight == Weight::Fix);
    Ok(if to_fix { TO_FIX } else { FINE })
}

/// The cost of one text, and whether it was measured.
#[derive(Debug, Clone)]
struct TextCost {
    cost: Cost,
    measured: bool,
    note: Option<String>,
    refused: bool,
}

type Costs = BTreeMap<[u8; 32], TextCost>;

/// Measures or estimates the cost of each different text: equal ones are compiled once and stored once.
fn measure(
    files: &[(OfFile, Vec<PtxText<'_>>)],
    gpu: Gpu,
    ptxas: Option<&Ptxas>,
    args: &AdviseArgs,
    config: &Config,
) -> anyhow::Result<Costs> {
    let mut costs = Costs::new();
    let mut jobs: Vec<(&PtxText<'_>, AssembleJob<'_>)> = Vec::new();
    for text in files.iter().flat_map(|(_, texts)| texts) {
        if costs.contains_key(&text.content) {
            continue;
        }
        let target = match (ptxas, gpu) {
            (Some(ptxas), Gpu::Known(number)) => ptxas.target(text.source.arch, number),
            _ => None,
        };
        let note = (target.is_none() && ptxas.is_some()).then(|| match gpu {
            Gpu::Known(_) => format!("estimated: this ptxas makes no code for {gpu}"),
            Gpu::Next => "estimated: there is no such GPU yet".to_owned(),
        });
        costs.insert(text.content, guess(text, note));
        if let Some(target) = target {
            let job = AssembleJob {
                image: text.source,
                target,
                used: text.used,
            };
            jobs.push((text, job));
        }
    }
    let Some(ptxas) = ptxas else { return Ok(costs) };
    let only: Vec<AssembleJob<'_>> = jobs.iter().map(|(_, job)| *job).collect();
    let longest = Duration::from_secs(args.tool.timeout);
    let done = assemble(
        ptxas,
        &only,
        config.job_limit(),
        longest,
        &ReadLimits::default(),
    )?;
    for ((text, _), answer) in jobs.iter().zip(done) {
        let known = match answer {
            Assembled::Made(made) => TextCost {
                cost: Cost {
                    cubin_bytes: made.cubin_bytes,
                    seconds: made.seconds,
                },
                measured: true,
                note: None,
                refused: false,
            },
            Assembled::Refused(said) => TextCost {
                refused: true,
                ..guess(
                    text,
                    Some(format!("ptxas refuses it: {}", first_line(&said))),
                )
            },
            Assembled::Unknown(why) => {
                guess(text, Some(format!("estimated: {}", first_line(&why))))
            }
        };
        costs.insert(text.content, known);
    }
    Ok(costs)
}

fn guess(text: &PtxText<'_>, note: Option<String>) -> TextCost {
    TextCost {
        cost: estimate(text.bytes),
        measured: false,
        note,
        refused: false,
    }
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}

/// Adds the problems that are new, because each GPU finds the same damaged files.
fn add_new(problems: &mut Vec<Problem>, more: Vec<Problem>) {
    for problem in more {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
}

fn of_file(file: String, verdicts: &Verdicts, gpu: Gpu) -> OfFile {
    let count = |outcome: LoadOutcome| {
        let mine = verdicts.verdicts.iter();
        mine.filter(|v| v.gpu == gpu && v.outcome == outcome)
            .count()
    };
    OfFile {
        file,
        run: count(LoadOutcome::Run),
        jit: count(LoadOutcome::Jit),
        jit_link: count(LoadOutcome::JitLink),
        fail: count(LoadOutcome::Fail),
        not_linked: count(LoadOutcome::NotLinked),
        texts: Vec::new(),
    }
}

/// Bytes of an entry of the driver's cache besides the PTX and the machine code: seen with a driver of CUDA 13.0, where
/// it holds both as they are (docs/jit.md).
const ENTRY: u64 = 66;

fn on_gpu(
    gpu: Gpu,
    files: Vec<(OfFile, Vec<PtxText<'_>>)>,
    found: &[FoundImages<'_>],
    costs: &Costs,
    limit: MaxSize,
) -> OnGpu {
    let mut on = OnGpu {
        gpu,
        files: Vec::new(),
        texts: 0,
        measured: 0,
        refused: 0,
        ptx_bytes: 0,
        cubin_bytes: 0,
        largest_cubin_bytes: 0,
        kept_bytes: 0,
        seconds: 0.0,
        slowest_seconds: 0.0,
        limit: limit.bytes,
        fits: true,
        gencode: None,
    };
    let mut counted = std::collections::BTreeSet::new();
    let mut archs = Vec::new();
    for ((mut file, texts), _) in files.into_iter().zip(found) {
        for text in texts {
            let Some(known) = costs.get(&text.content) else {
                continue;
            };
            let first = counted.insert(text.content);
            if first {
                on.texts += 1;
                on.measured += usize::from(known.measured);
                on.refused += usize::from(known.refused);
                on.ptx_bytes += text.bytes;
                on.cubin_bytes = on.cubin_bytes.saturating_add(known.cost.cubin_bytes);
                let kept = known.cost.cubin_bytes.saturating_add(text.bytes);
                on.kept_bytes = on.kept_bytes.saturating_add(kept).saturating_add(ENTRY);
                on.largest_cubin_bytes = on.largest_cubin_bytes.max(known.cost.cubin_bytes);
                on.seconds += known.cost.seconds;
                on.slowest_seconds = on.slowest_seconds.max(known.cost.seconds);
            }
            archs.push(text.source.arch.suffix);
            file.texts.push(row(&text, known, first));
        }
        on.files.push(file);
    }
    on.fits = on.kept_bytes <= on.limit;
    on.gencode = gencode(gpu, &archs);
    on
}

fn row(text: &PtxText<'_>, known: &TextCost, first: bool) -> TextRow {
    TextRow {
        member: text.member.map(str::to_owned),
        container: text.container,
        image: text.image,
        target: text.source.target(),
        linked: text.used == CompileCause::Link,
        repeated: !first,
        kernels: text.kernels.iter().map(|name| demangle(name)).collect(),
        ptx_bytes: text.bytes,
        cubin_bytes: known.cost.cubin_bytes,
        seconds: known.cost.seconds,
        measured: known.measured,
        note: known.note.clone(),
    }
}

/// The figures, with the findings that follow from them.
fn conclude(
    gpus: Vec<OnGpu>,
    settings: &JitSettings,
    context: &ProcessContext,
    ptxas: Option<Ptxas>,
) -> JitAdvice {
    let mut cache = cache::examine(settings, context);
    let mut remarks: Vec<Remark> = gpus
        .iter()
        .flat_map(|on| of_gpu(on, settings, cache.held.bytes))
        .collect();
    let compiles = gpus.iter().any(|on| on.texts > 0);
    // If nothing is compiled, the cache does not matter.
    let of_cache = std::mem::take(&mut cache.remarks);
    remarks.extend(of_cache.into_iter().map(|remark| Remark {
        weight: if compiles {
            remark.weight
        } else {
            Weight::Note
        },
        ..remark
    }));
    remarks.sort_by_key(|remark| remark.weight);
    JitAdvice {
        gpus,
        ptxas: ptxas.map(|ptxas| ptxas.program),
        cache,
        remarks,
    }
}
