//! Looks for wrong results of warpcc: random histories, each call compared with a fresh nvcc. docs/soak.md describes its
//! coverage.

mod bite;
mod by_chance;
mod calls;
mod changes;
mod doing;
mod fake_toolkit;
mod figures;
mod files_open;
pub mod history;
mod invent;
mod invent_real;
pub mod judge;
mod mapper;
mod meeting;
mod options;
mod programs;
mod queried_lines;
pub mod random;
mod replay;
mod shrink;
mod sources;
pub mod space;
mod surroundings;
mod threaded;
mod tree;
mod workers;
mod wrappers;

use std::fs;

use anyhow::{Result, bail};

use crate::{process, repo, suite};
pub use options::SoakOptions;
use options::Which;

/// Runs the machine.
pub fn main(options: &SoakOptions) -> Result<()> {
    if options.tests {
        return suite::long_tests();
    }
    if options.show && options.replay.is_empty() {
        for seed in options.seed..options.seed + options.histories.unwrap_or(1) {
            println!(
                "# seed {seed}\n{}",
                invent::invent(seed, options.tools == Which::Fake)
            );
        }
        return Ok(());
    }
    let warpcc = match &options.warpcc {
        Some(path) => path.canonicalize()?,
        None => repo::target_dir().join("soak/warpcc"),
    };
    if !process::is_executable(&warpcc) {
        bail!(
            "{} is not there: cargo build --profile soak --workspace",
            warpcc.display()
        );
    }
    fs::create_dir_all(&options.out)?;
    if let (Some(worker), Some(shared)) = (options.worker, options.shared.clone()) {
        let place = workers::WorkerPlace { worker, shared };
        return workers::work(options, &warpcc, options.tools == Which::Real, &place);
    }
    if !options.without.is_empty() && !options.show {
        return bite::bite(options, &warpcc);
    }
    if !options.replay.is_empty() {
        return replay::replay(options, &warpcc);
    }
    let mut wrong = 0;
    for real in [false, true] {
        let wanted = match options.tools {
            Which::Fake => !real,
            Which::Real => real,
            Which::Both => true,
        };
        if wanted {
            let figures = workers::search(options, &warpcc, real, None)?;
            figures.print();
            for file in &figures.saved {
                println!("---- {}", file.display());
                print!("{}", fs::read_to_string(file)?);
            }
            let name = if real { "real.json" } else { "fake.json" };
            fs::write(options.out.join(name), figures.json()?)?;
            wrong += figures.wrong;
        }
    }
    if wrong > 0 {
        bail!(
            "{wrong} histories were wrong; see {}",
            options.out.display()
        );
    }
    Ok(())
}
