//! A step's result from the cache: here, or brought from a shared one.

use std::time::Duration;

use warpcc_cache::{
    Difference, Key, KeyVariant, KeyVariants, Level, Lookup, Outcome, Output, foreign, guards,
};
use warpcc_path_map::WorkDir;
use warpcc_plan::{FileId, FileKind, Step, Tool};

use crate::conditions::Conditions;
use crate::event::{self, Finished};
use crate::task::Worker;
use crate::terminal::Terminal;
use crate::traced_inputs::Seen;

/// The keys of one call or step, for a run in `at` whose diagnostics go to `terminal`.
pub fn key_variants(key: Key, at: WorkDir<'_>, terminal: Option<&Terminal>) -> KeyVariants {
    let path_specific = (!at.path_map.is_empty()).then(|| key.path_specific(at));
    let on_terminal = terminal.map(|terminal| |key: &Key| terminal.key(key));
    let on_terminal = on_terminal
        .as_ref()
        .map(|make| make as &dyn Fn(&Key) -> Key);
    KeyVariants::new(key, path_specific, on_terminal)
}

impl Worker<'_> {
    /// Looks here, and where there is nothing, has shared caches asked and looks here again.
    pub fn look_up(
        &self,
        index: usize,
        step: &Step,
        keys: &KeyVariants,
    ) -> Option<(Finished, Seen)> {
        if let Some(hit) = self.look_up_here(index, step, keys) {
            return Some(hit);
        }
        let (upstream, store) = (self.options.upstream?, self.options.store?);
        let all = keys.keys();
        let vet = |outcome: &mut Outcome| self.accepts(step, outcome);
        let at = self.options.work_dir();
        let is_brought = upstream.fetch(store, Level::Steps, &all, at, &vet);
        let (mut finished, seen) = is_brought.then(|| self.look_up_here(index, step, keys))??;
        finished.brought = all;
        Some((finished, seen))
    }

    fn look_up_here(
        &self,
        index: usize,
        step: &Step,
        keys: &KeyVariants,
    ) -> Option<(Finished, Seen)> {
        let mut variants = keys.iter();
        variants.find_map(|variant| self.look_up_under(variant, index, step))
    }

    fn look_up_under(
        &self,
        variant: &KeyVariant,
        index: usize,
        step: &Step,
    ) -> Option<(Finished, Seen)> {
        let store = self.options.store?;
        let holds = |outcome: &Outcome| -> Result<(), Option<Difference>> {
            let conditions = Conditions::decode(&outcome.extra).filter(|_| variant.suits(outcome));
            let conditions = conditions.ok_or(None)?;
            match guards::is_off("conditions-of-steps") {
                true => Ok(()),
                false => conditions.hold(self.options.place()),
            }
        };
        let found = store.look_up_if(
            Level::Steps,
            &variant.key,
            self.options.work_dir(),
            &holds,
            |_| {},
        );
        let Lookup::Hit(outcome, manifest) = found else {
            return None;
        };
        let conditions = Conditions::decode(&outcome.extra)?;
        // All outputs or none: a blob that was evicted makes the whole step a miss.
        let mut outputs: Vec<(&Output, _)> = Vec::with_capacity(outcome.outputs.len());
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
        for (output, id) in &outputs {
            self.artifacts.stored(*id, output.digest, output.executable);
            if self.graph.file(*id).kind == FileKind::Output
                && self.artifacts.materialise(*id).is_err()
            {
                return None;
            }
        }
        let mut finished = Finished::new(index, event::Outcome::Hit);
        finished.is_path_specific = variant.is_path_specific;
        finished.saved = Duration::from_micros(outcome.micros);
        let real = |text: &[u8]| {
            self.options
                .path_map
                .real_text(&self.artifacts.with_folder(text))
        };
        finished.stdout = real(&outcome.stdout);
        finished.stderr = real(&outcome.stderr);
        let times = self.options.path_map.real_text(&conditions.times);
        let mut seen = Seen::of_hit(&manifest, conditions.asked(), times);
        self.stand_on_own_files(step, &mut seen);
        self.stand_on_searches(&mut seen);
        Some((finished, seen))
    }

    /// Whether a result from elsewhere has what the step writes, each file once, and no other; what it says is made fit to
    /// be shown.
    fn accepts(&self, step: &Step, outcome: &mut Outcome) -> bool {
        let outputs = &outcome.outputs;
        let role_of = |place: usize| place.to_string();
        let has = |place: usize| {
            let role = role_of(place);
            outputs.iter().filter(|output| output.role == role).count() == 1
        };
        let may_lack = |id: FileId| self.may_be_missing(step, id);
        let each_once = |(place, &id): (usize, &FileId)| has(place) || may_lack(id);
        let suits = |output: &Output| {
            let is_one = (0..step.writes.len()).any(|place| output.role == role_of(place));
            is_one && !output.executable && output.digest.size <= foreign::LARGEST_PART
        };
        let is_whole = outputs.len() <= step.writes.len()
            && outputs.iter().all(suits)
            && step.writes.iter().enumerate().all(each_once);
        outcome.stdout = self.artifacts.shown(&outcome.stdout);
        outcome.stderr = self.artifacts.shown(&outcome.stderr);
        is_whole
    }

    /// cicc is told of a module id file and makes none with -optix-ir.
    pub fn may_be_missing(&self, step: &Step, id: FileId) -> bool {
        step.tool == Tool::Cicc && self.graph.file(id).path.ends_with(".module_id")
    }
}
