//! Commands that change other files than their outputs wait for their turn: until then they end before the first such change.
//!
//! A run that overlaps commands gives each of them this rule. If one of them ends by it, the whole run begins again, in
//! nvcc's order, one command at a time and without the rule. So every command that changes other files runs exactly once, after
//! those that nvcc runs before it, and not at all after one that fails. With `--threads` nvcc overlaps commands itself, so
//! plain nvcc carries out the call.

use std::ffi::OsString;

use warpcc_cache::guards;
use warpcc_plan::Step;
use warpcc_watch::Observed;

use crate::compiler_cache;
use crate::context::RunContext;
use crate::options::Order;

/// Why a plan runs again in nvcc's order.
pub const HELD: &str = "a command would change a file besides its outputs";

/// The variable that makes the programs of a step end before they change other files; `None` where they may change them. A step
/// that writes its outputs in place has all others behind it.
pub fn variable(run: &RunContext<'_>, step: &Step) -> Option<(OsString, OsString)> {
    let options = run.options;
    let is_early = options.order == Order::Parallel && run.graph.steps.len() > 1;
    let is_private = |id| run.artifacts.path(id).starts_with(options.scratch);
    let applies = is_early
        && step.writes.iter().all(|&id| is_private(id))
        && !guards::is_off("writes-in-turn");
    applies.then(|| {
        let mut own = compiler_cache::temporary_folders(options.environment);
        own.push(options.scratch.to_owned());
        warpcc_watch::hold(&own, compiler_cache::CACHES)
    })
}

/// Whether a program of the step ended in this way, or may do so later: it goes on in the background, and nobody reads then
/// what it logs.
pub fn reason(run: &RunContext<'_>, step: &Step, observed: &Observed) -> Option<String> {
    let goes_on = observed.unfinished.is_some() && variable(run, step).is_some();
    (observed.held.is_some() || goes_on).then(|| HELD.to_owned())
}
