//! `warpcc why-gpu`: which installed Python packages run on a GPU, which a driver must compile first, which fail, and
//! how to fix them.

mod args;
mod environment;
mod judge;
mod judged;
mod mend;
mod package;
mod print;
mod root;
mod target;

use warpcc_jit::JitSettings;

pub use args::WhyGpuArgs;

use super::output;
use crate::log;
use crate::process_context::ProcessContext;
use environment::PythonEnvironment;
use judge::judge_package;
use judged::PackageVerdict;
use package::normalized;

/// Every package runs, perhaps after compiling.
const FINE: i32 = 0;
/// A package fails.
const FAILS: i32 = 1;
/// Nothing could be judged.
const FAILED: i32 = 2;

/// Runs the command, and returns the exit code.
///
/// # Errors
/// There is no environment to look at, or no GPU to judge for.
pub fn run(args: &WhyGpuArgs, context: &ProcessContext) -> anyhow::Result<i32> {
    let settings = JitSettings::read(&context.environment);
    let target = target::find(args, &settings, context)?;
    let environment = PythonEnvironment::find(args, context)?;
    let wanted: Vec<String> = args.packages.iter().map(|name| normalized(name)).collect();
    let packages = environment.packages();
    let mut skipped = packages.skipped;
    let packages = &packages.all;
    let missing: Vec<&String> = args
        .packages
        .iter()
        .filter(|name| {
            !packages
                .iter()
                .any(|p| normalized(&p.name) == normalized(name))
        })
        .collect();
    for name in &missing {
        log::fail(&format!("{name} is not installed in {}", environment.place));
    }
    let chosen = packages
        .iter()
        .filter(|p| wanted.is_empty() || wanted.contains(&normalized(&p.name)));
    let judged = chosen.map(|package| judge_package(package, &target));
    // One that was not asked for by name, and has nothing for a GPU, is not worth a line.
    let (judged, others): (Vec<_>, Vec<_>) = judged
        .partition(|judged| !wanted.is_empty() || judged.answer != PackageVerdict::NoDeviceCode);
    for other in &others {
        let problems = other.problems.iter();
        skipped.extend(problems.map(|problem| format!("{}: {problem}", other.package)));
    }
    output::print(|out| match args.json {
        true => print::write_json(&target, &environment.place, (&judged, &skipped), out),
        false => print::write(&target, &environment.place, (&judged, &skipped), out),
    })?;
    if !missing.is_empty()
        || judged
            .iter()
            .any(|p| p.answer == PackageVerdict::Unreadable)
    {
        return Ok(FAILED);
    }
    let fails = judged
        .iter()
        .any(|package| package.answer == PackageVerdict::Fails);
    Ok(if fails { FAILS } else { FINE })
}
