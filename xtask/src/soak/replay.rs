//! Runs case files.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};

use super::fake_toolkit::FakeTool;
use super::history::History;
use super::judge::{self, Compared, Verdict};
use super::options::{SoakOptions, Which};
use super::space::{Space, Tools};
use super::workers;

fn tools(options: &SoakOptions, real: bool) -> Result<Tools> {
    match real {
        true => Ok(Tools::Real(options.toolkits()?)),
        false => fake_tools(),
    }
}

fn fake_tools() -> Result<Tools> {
    // Built once: a table of guards replays every case again and again.
    static BUILT: Mutex<Option<FakeTool>> = Mutex::new(None);
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let program = match built.take() {
        Some(program) => program,
        None => workers::fake_program()?,
    };
    Ok(Tools::Fake(built.insert(program).clone()))
}

/// Runs case files. Each must have no difference.
pub fn replay(options: &SoakOptions, warpcc: &Path) -> Result<()> {
    let mut wrong = 0;
    for file in &options.replay {
        let guards = options.without.join(",");
        let guards = Some(guards).filter(|guards| !guards.is_empty());
        let verdict = replay_file(options, file, warpcc, guards)?;
        let found = verdict.wrong.map(|(_, found)| found).unwrap_or_default();
        println!(
            "{} {} ({} calls, {} of them failing with nvcc)",
            if found.is_empty() { "right" } else { "WRONG" },
            file.display(),
            verdict.calls,
            verdict.failing
        );
        for line in verdict.log.iter().filter(|_| options.show) {
            println!("    {line}");
        }
        for line in &found {
            println!("  {line}");
        }
        wrong += usize::from(!found.is_empty());
    }
    if wrong > 0 {
        bail!("{wrong} of {} cases are wrong", options.replay.len());
    }
    Ok(())
}

/// Runs one case file, without some guards.
pub fn replay_file(
    options: &SoakOptions,
    file: &Path,
    warpcc: &Path,
    without: Option<String>,
) -> Result<Verdict> {
    let named = file
        .file_name()
        .is_some_and(|n| n.to_string_lossy().starts_with("real-"));
    let real = named || options.tools == Which::Real;
    let root = workers::root(options, true, 0);
    replay_in(&root, file, warpcc, tools(options, real)?, without)
}

fn replay_in(
    root: &Path,
    file: &Path,
    warpcc: &Path,
    tools: Tools,
    without: Option<String>,
) -> Result<Verdict> {
    let history = History::load(file)?;
    let mut space = Space::new(root, tools, warpcc.to_owned())?;
    space.without = without;
    let verdict = judge::judge(&mut space, &history, Compared::Every)?;
    space.clear();
    _ = fs::remove_dir_all(root);
    Ok(verdict)
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::PathBuf;

    use anyhow::Context;

    use super::*;
    use crate::repo;

    /// The warpcc that was built with this test.
    pub(in super::super) fn warpcc_beside() -> Result<PathBuf> {
        let program = std::env::current_exe()?;
        let folder = program.parent().and_then(Path::parent);
        let warpcc = folder.context("no target folder")?.join("warpcc");
        if !warpcc.is_file() {
            bail!("no {}: cargo build --workspace", warpcc.display());
        }
        Ok(warpcc)
    }

    /// Runs a committed case with fake tools, without some guards.
    pub(in super::super) fn replay_case(
        name: &str,
        warpcc: &Path,
        without: Option<String>,
    ) -> Result<Verdict> {
        let file = repo::root().join(format!("xtask/soak/cases/{name}.soak"));
        let root = tempfile::tempdir()?;
        replay_in(
            &root.path().join("space"),
            &file,
            warpcc,
            fake_tools()?,
            without,
        )
    }

    /// Every committed case with fake tools is right. Cases in `xtask/soak/cases/open` are known to be wrong, and wait.
    #[test]
    fn committed_cases_are_right() -> Result<()> {
        let warpcc = warpcc_beside()?;
        let mut cases = 0;
        for entry in fs::read_dir(repo::root().join("xtask/soak/cases"))? {
            let file = entry?.path();
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            let is_case = file.extension().is_some_and(|ending| ending == "soak");
            if stem.starts_with("real-") || !is_case {
                continue;
            }
            let verdict = replay_case(&stem, &warpcc, None)?;
            let found = verdict.wrong.map(|(_, found)| found).unwrap_or_default();
            assert!(found.is_empty(), "{stem}: {}", found.join("\n"));
            cases += 1;
        }
        assert!(cases > 0, "no case was found");
        Ok(())
    }
}
