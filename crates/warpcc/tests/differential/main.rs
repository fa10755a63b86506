//! Every file of `cases/` is a test of its own: the outputs of nvcc and of warpcc, built and from the cache, must be the
//! same bytes. The cases state everything in their comments, so a new case needs no Rust.
//!
//! The newest toolkit runs all of them, the older one every third: all dry runs of both are compared in
//! `crates/plan`, and all cases run on both with `WARPCC_TEST_ALL_CASES=1`.
//!
//! nvcc's results are kept for the next run. One case in eight is compiled again (`reference`).

mod case;
mod honesty;
mod machine;
mod reference;
mod verdict;

#[path = "../space/mod.rs"]
mod space;

use libtest_mimic::{Arguments, Failed, Trial};
use reference::References;
use space::Toolkit;

fn main() {
    let arguments = Arguments::from_args();
    let trials = case::all()
        .into_iter()
        .flat_map(|case| {
            let toolkits = ["13.5", "13.0"].into_iter();
            let chosen = toolkits.filter(|&toolkit| toolkit == "13.5" || on_older(&case));
            let trial = |toolkit: &'static str| {
                let case = case.clone();
                Trial::test(format!("{}::{toolkit}", case.name), move || {
                    // Found here, not while listing: `--list` needs no toolkit.
                    let toolkit = Toolkit::all()
                        .into_iter()
                        .find(|t| t.name == toolkit)
                        .ok_or("no such toolkit")?;
                    let references = References::beside_toolkits();
                    verdict::check(&case, toolkit, &references).map_err(Failed::from)
                })
            };
            chosen.map(trial).collect::<Vec<_>>()
        })
        .chain([Trial::test("a_kept_reference_is_not_believed", || {
            honesty::kept_references_are_checked();
            Ok(())
        })])
        .collect();
    libtest_mimic::run(&arguments, trials).exit();
}

/// Whether the older toolkit runs the case, too. The case's name decides, so that a new case changes nothing for others.
fn on_older(case: &case::Case) -> bool {
    let says_so = case.lines.iter().any(|line| line.toolkit.is_some());
    let sum: u32 = case.name.bytes().map(u32::from).sum();
    says_so || sum.is_multiple_of(3) || std::env::var_os("WARPCC_TEST_ALL_CASES").is_some()
}
