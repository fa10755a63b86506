//! Finds a step's result in the cache: on this disk, or in a shared cache.

use std::time::Duration;

use warpcc_cache::{
    Difference, FetchRequest, KeyVariant, KeyVariants, Level, Lookup, Outcome, ProducedFile,
    foreign, guards,
};
use warpcc_plan::{FileId, FileKind, Step};

use crate::any_lines_conditions::AnyLinesConditions;
use crate::conditions::Conditions;
use crate::context::RunContext;
use crate::event::{self, Finished};
use crate::module_id;
use crate::private_folder;
use crate::traced_inputs::TracedInputs;
use crate::unwatched_inputs;

/// Looks the step up on this disk. After a miss, asks the shared caches, and looks it up once more.
pub fn look_up(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    keys: &KeyVariants,
) -> Option<(Finished, TracedInputs)> {
    if let Some(hit) = look_up_here(run, index, step, keys) {
        return Some(hit);
    }
    let (upstream, store) = (run.options.upstream?, run.options.store?);
    let all = keys.keys();
    let vet = |outcome: &mut Outcome| accepts(run, step, outcome);
    let at = run.options.work_dir();
    let wanted = |key| FetchRequest {
        level: Level::Steps,
        key,
        at,
        vet: &vet,
    };
    let wanted: Vec<FetchRequest<'_>> = all.iter().map(wanted).collect();
    let is_fetched = upstream.fetch(store, &wanted);
    let (mut finished, seen) = is_fetched.then(|| look_up_here(run, index, step, keys))??;
    finished.fetched_keys = all;
    Some((finished, seen))
}

fn look_up_here(
    run: &RunContext<'_>,
    index: usize,
    step: &Step,
    keys: &KeyVariants,
) -> Option<(Finished, TracedInputs)> {
    let mut variants = keys.iter();
    variants.find_map(|variant| look_up_under(run, variant, index, step))
}

fn look_up_under(
    run: &RunContext<'_>,
    variant: &KeyVariant,
    index: usize,
    step: &Step,
) -> Option<(Finished, TracedInputs)> {
    let store = run.options.store?;
    let holds = |outcome: &Outcome| -> Result<(), Option<Difference>> {
        let conditions = conditions_in(run, step, variant, outcome).ok_or(None)?;
        match guards::is_off("conditions-of-steps") {
            true => Ok(()),
            false => conditions.hold(run.options.run_environment()),
        }
    };
    let found = store.look_up_if(
        Level::Steps,
        &variant.key,
        run.options.work_dir(),
        &holds,
        |_| {},
    );
    let Lookup::Hit(outcome, manifest) = found else {
        return None;
    };
    let conditions = conditions_in(run, step, variant, &outcome)?;
    // All outputs must be there: if a blob was evicted, the whole step is a miss. It is also a miss if a file is needed here
    // that did not exist where the result was made.
    let mut outputs: Vec<(&ProducedFile, _)> = Vec::with_capacity(outcome.outputs.len());
    for output in &outcome.outputs {
        let id = output
            .role
            .parse::<usize>()
            .ok()
            .and_then(|i| step.writes.get(i))?;
        if !store.has(&output.digest) {
            return None;
        }
        outputs.push((output, *id));
    }
    let is_there = |id: FileId| outputs.iter().any(|(_, there)| *there == id);
    if !step
        .writes
        .iter()
        .all(|&id| is_there(id) || may_lack(run, step, id))
    {
        return None;
    }
    for (output, id) in &outputs {
        run.artifacts.stored(*id, output.digest, output.executable);
        let file = run.graph.file(*id);
        let is_read_here = file.kind == FileKind::Output || file.is_module_id();
        if is_read_here && run.artifacts.materialise(*id).is_err() {
            return None;
        }
    }
    if variant.is_of_any_lines {
        outputs
            .iter()
            .for_each(|(_, id)| run.artifacts.set_other_lines(*id));
    }
    let mut finished = Finished::new(index, event::StepOutcome::Hit);
    finished.is_path_specific = variant.is_path_specific;
    finished.saved = Duration::from_micros(outcome.micros);
    let real = |text: &[u8]| {
        run.options
            .path_map
            .real_text(&run.artifacts.with_folder(text))
    };
    finished.stdout = real(&outcome.stdout);
    finished.stderr = real(&outcome.stderr);
    let times = run.options.path_map.real_text(&conditions.times);
    let mut seen = TracedInputs::of_hit(&manifest, conditions.asked(), times);
    unwatched_inputs::add_source_files(run, step, &mut seen);
    unwatched_inputs::add_searches(run, &mut seen);
    Some((finished, seen))
}

/// The conditions of an outcome, if it suits this look-up otherwise.
fn conditions_in(
    run: &RunContext<'_>,
    step: &Step,
    variant: &KeyVariant,
    outcome: &Outcome,
) -> Option<Conditions> {
    if !variant.suits(outcome) {
        return None;
    }
    if !variant.is_of_any_lines {
        return Conditions::decode(&outcome.extra);
    }
    let all = AnyLinesConditions::decode(&outcome.extra)?;
    all.suit(run, step).then_some(all.conditions)
}

/// Whether a step's result is complete without this file.
fn may_lack(run: &RunContext<'_>, step: &Step, id: FileId) -> bool {
    module_id::may_be_missing(run, step, id) || !run.graph.is_needed(id)
}

/// Whether a record from a shared cache has exactly the files that the step writes, each once. Control characters are removed
/// from its messages.
fn accepts(run: &RunContext<'_>, step: &Step, outcome: &mut Outcome) -> bool {
    let outputs = &outcome.outputs;
    let role_of = |place: usize| place.to_string();
    let has = |place: usize| {
        let role = role_of(place);
        outputs.iter().filter(|output| output.role == role).count() == 1
    };
    let may_lack = |id: FileId| may_lack(run, step, id);
    let each_once = |(place, &id): (usize, &FileId)| has(place) || may_lack(id);
    let suits = |output: &ProducedFile| {
        let is_one = (0..step.writes.len()).any(|place| output.role == role_of(place));
        is_one && !output.executable && output.digest.size <= foreign::LARGEST_PART
    };
    let is_whole = outputs.len() <= step.writes.len()
        && outputs.iter().all(suits)
        && step.writes.iter().enumerate().all(each_once);
    outcome.stdout = private_folder::shown(&outcome.stdout);
    outcome.stderr = private_folder::shown(&outcome.stderr);
    is_whole
}
