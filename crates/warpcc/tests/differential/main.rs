//! Every file of `cases/` x every toolkit, each a test of its own: what nvcc makes of
//! it and what warpcc makes of it, built and from the cache, must be the same bytes.
//! The cases say all of it in their comments; adding one needs no Rust.

mod case;
mod verdict;

#[path = "../space/mod.rs"]
mod space;

use libtest_mimic::{Arguments, Failed, Trial};
use space::Toolkit;

fn main() {
    let arguments = Arguments::from_args();
    let trials = case::all()
        .into_iter()
        .flat_map(|case| {
            ["13.5", "13.0"].map(|toolkit| {
                let case = case.clone();
                Trial::test(format!("{}::{toolkit}", case.name), move || {
                    // Found here, not while listing: `--list` needs no toolkit.
                    let toolkit = Toolkit::all()
                        .into_iter()
                        .find(|t| t.name == toolkit)
                        .ok_or("no such toolkit")?;
                    verdict::check(&case, toolkit).map_err(Failed::from)
                })
            })
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit();
}
