//! `warpcc jit warm`: lets the driver compile everything now, and checks that the code is in its cache.

use std::time::Duration;

use warpcc_fatbin::{Binary, Gpu, Problem, ReadLimits, Situation, Verdicts, judge};
use warpcc_jit::{Item, JitSettings, LoadResult, Loading, contents};

use super::args::{By, JitWarmArgs};
use super::binaries::{open_all, report};
use super::exit_code::{FAILED, FINE, TO_FIX};
use super::print;
use super::print::warm::{Module, Warmed};
use crate::commands::output;
use crate::process_context::ProcessContext;

/// CUDA error 223: the module would have to be compiled, and compiling is switched off.
const NOT_STORED: u32 = 223;

/// The command that starts loading processes: this program, with its hidden command.
pub(super) fn loading(device: u32, by: By, context: &ProcessContext) -> Loading {
    let by = match by {
        By::Module => "--by=module",
        By::Logged => "--by=logged",
        By::Library => "--by=library",
    };
    Loading {
        program: context.ourselves[0].clone(),
        words: vec!["jit".into(), "load".into(), by.into()],
        device,
        variables: Vec::new(),
        longest: Duration::from_secs(60),
    }
}

pub(super) fn warm(args: &JitWarmArgs, context: &ProcessContext) -> anyhow::Result<i32> {
    let settings = JitSettings::read(&context.environment);
    refuse_in_vain(&settings)?;
    let loading = Loading {
        longest: Duration::from_secs(args.timeout),
        // A lazily loaded module is compiled when its first kernel is needed, and none is run here.
        variables: vec![("CUDA_MODULE_LOADING", "EAGER".into())],
        ..loading(args.device, args.by, context)
    };
    let gpu = loading.gpu().map_err(|why| {
        anyhow::anyhow!("{why}; `jit warm` needs a machine with the GPU that will be used")
    })?;
    let limits = ReadLimits::default();
    let situation = Situation {
        driver: Some(gpu.driver),
        force_jit: settings.force_jit,
        disable_jit: false,
    };
    let (binaries, errors) = open_all(&args.files);
    let verdicts: Vec<Verdicts> = binaries
        .iter()
        .map(|binary| judge(binary, &[Gpu::Known(gpu.number)], &situation, &limits))
        .collect();
    let folder = settings.place.folder().unwrap_or_default();
    let mut warmed = Warmed {
        gpu: format!("sm_{}", gpu.number),
        name: gpu.name.clone(),
        driver: gpu.driver.to_string(),
        folder: folder.clone(),
        before: contents(&folder),
        after: contents(&folder),
        modules: Vec::new(),
        run: 0,
        jit_link: 0,
        fail: 0,
        not_linked: 0,
        proven: !settings.force_jit,
    };
    for (binary, verdicts) in binaries.iter().zip(&verdicts) {
        let items = sort_out(verdicts, &mut warmed);
        warmed
            .modules
            .extend(three_times(&loading, binary, &items, &settings)?);
    }
    warmed.after = contents(&folder);
    output::print(|out| match args.json {
        true => print::parts::write_json(&warmed, out),
        false => print::warm::write(&warmed, out),
    })?;
    let problems: Vec<Vec<Problem>> = verdicts.iter().map(|v| v.problems.clone()).collect();
    let with_problems: Vec<_> = binaries.iter().zip(problems).collect();
    if report(&errors, &with_problems) {
        return Ok(FAILED);
    }
    let stored = warmed.modules.iter().all(|module| module.is_stored());
    let whole = warmed.jit_link + warmed.fail + warmed.not_linked == 0;
    Ok(if stored && whole { FINE } else { TO_FIX })
}

/// Fails early if the cache could store nothing, because compiling takes minutes.
fn refuse_in_vain(settings: &JitSettings) -> anyhow::Result<()> {
    if settings.disabled {
        anyhow::bail!("CUDA_CACHE_DISABLE is set, so nothing would be stored: unset it");
    }
    if settings.disable_jit {
        anyhow::bail!(
            "CUDA_DISABLE_PTX_JIT or CUDA_DISABLE_JIT is set, so nothing would be compiled: unset it"
        );
    }
    if settings.place.folder().is_none() {
        anyhow::bail!(
            "neither HOME nor CUDA_CACHE_PATH is set, so nothing would be stored: set \
             CUDA_CACHE_PATH"
        );
    }
    Ok(())
}

/// Counts the containers for which warming is of no use, and returns the others.
fn sort_out(verdicts: &Verdicts, warmed: &mut Warmed) -> Vec<Item> {
    let mut items = Vec::new();
    for verdict in &verdicts.verdicts {
        use warpcc_fatbin::LoadOutcome as Will;
        match verdict.outcome {
            Will::Run => warmed.run += 1,
            Will::Jit => items.push(Item::Container(verdict.container)),
            Will::JitLink => warmed.jit_link += 1,
            Will::Fail => warmed.fail += 1,
            Will::NotLinked => warmed.not_linked += 1,
        }
    }
    items
}

/// Loads in three rounds of new processes: first to compile, then to measure the faster load, and last with compiling
/// switched off, to check that the code is in the cache.
fn three_times(
    loading: &Loading,
    binary: &Binary,
    items: &[Item],
    settings: &JitSettings,
) -> anyhow::Result<Vec<Module>> {
    let load = |loading: &Loading, items: &[Item]| {
        let done = loading.load(&binary.input, items);
        done.map_err(anyhow::Error::msg)
    };
    let first = load(loading, items)?;
    // Modules that were refused, or that ended the process, would do so again.
    let fine: Vec<Item> = first
        .iter()
        .filter(|(_, outcome)| matches!(outcome, LoadResult::In(_)))
        .map(|(item, _)| *item)
        .collect();
    let second = load(loading, &fine)?;
    // The effect of both variables together is not known.
    let without = match settings.force_jit {
        true => Vec::new(),
        false => {
            let mut loading = loading.clone();
            loading.variables.push(("CUDA_DISABLE_PTX_JIT", "1".into()));
            load(&loading, &fine)?
        }
    };
    let of = |round: &[(Item, LoadResult)], item: Item| {
        let found = round.iter().find(|(known, _)| *known == item);
        found.map(|(_, outcome)| outcome.clone())
    };
    let modules = first.iter().map(|(item, outcome)| {
        let again = of(&second, *item);
        let without = of(&without, *item);
        let trouble = [Some(outcome), again.as_ref()]
            .into_iter()
            .flatten()
            .chain(without.as_ref().filter(|o| !is_not_stored(o)))
            .find_map(trouble);
        let stored = without.map(|outcome| matches!(outcome, LoadResult::In(_)));
        Module {
            file: binary.input.to_string(),
            container: item.to_string(),
            first_seconds: seconds(Some(outcome)),
            second_seconds: seconds(again.as_ref()),
            stored,
            kept: stored,
            trouble,
        }
    });
    Ok(modules.collect())
}

fn seconds(outcome: Option<&LoadResult>) -> Option<f64> {
    match outcome {
        Some(LoadResult::In(time)) => Some(time.as_secs_f64()),
        _ => None,
    }
}

fn is_not_stored(outcome: &LoadResult) -> bool {
    matches!(outcome, LoadResult::Refused { number, .. } if *number == NOT_STORED)
}

fn trouble(outcome: &LoadResult) -> Option<String> {
    match outcome {
        LoadResult::In(_) => None,
        LoadResult::Refused { number, name, .. } => Some(format!("error {number}: {name}")),
        LoadResult::Lost(why) => Some(why.clone()),
    }
}
