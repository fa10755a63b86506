//! Whether soak notices that a guard is missing: cases and histories that are right with all guards have to go wrong.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};

use super::{Options, Which, replay_file, workers};

/// Prints a table of guards, each with what found out that it is missing.
pub fn bite(options: &Options, warpcc: &Path) -> Result<()> {
    let mut missed = Vec::new();
    println!("| without | found by | after | what |");
    println!("|---|---|---|---|");
    for guard in &options.without {
        let began = Instant::now();
        let off = guard.replace('+', ",");
        let found = match by_case(options, warpcc, &off)? {
            None if options.minutes > 0.0 => by_history(options, warpcc, &off)?,
            found => found,
        };
        let seconds = began.elapsed().as_secs();
        match found {
            Some((by, what)) => {
                let what = what.replace('|', "\\|");
                println!("| {guard} | {by} | {seconds} s | {what} |");
            }
            None => {
                println!("| {guard} | nothing | {seconds} s | |");
                missed.push(guard.as_str());
            }
        }
    }
    if !missed.is_empty() {
        bail!("nothing wrong was found without {}", missed.join(", "));
    }
    Ok(())
}

/// The first case that goes wrong, and what is wrong in it.
fn by_case(options: &Options, warpcc: &Path, off: &str) -> Result<Option<(String, String)>> {
    for file in &options.replay {
        let run = |without| replay_file(options, file, warpcc, without);
        let Some((_, found)) = run(Some(off.to_owned()))?.wrong else {
            continue;
        };
        // What is wrong with all guards too says nothing about this one.
        if run(None)?.wrong.is_none() {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            return Ok(Some((
                format!("`{name}`"),
                found.first().cloned().unwrap_or_default(),
            )));
        }
    }
    Ok(None)
}

/// The first history by chance that goes wrong.
fn by_history(options: &Options, warpcc: &Path, off: &str) -> Result<Option<(String, String)>> {
    let figures = workers::look(options, warpcc, options.tools == Which::Real, Some(off))?;
    let by = |seed| format!("seed {seed}, the {}th", figures.histories);
    Ok(figures.first_wrong.map(|(seed, what)| (by(seed), what)))
}
