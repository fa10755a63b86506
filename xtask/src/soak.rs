//! Looks for wrong results of warpcc: histories by chance, each call compared with a fresh nvcc. docs/soak.md says what
//! it covers.

mod bite;
mod by_chance;
mod changes;
mod doing;
mod fake_toolkit;
mod figures;
mod history;
mod invent;
mod invent_real;
mod judge;
mod mapper;
mod meeting;
mod programs;
mod random;
mod shrink;
mod space;
mod surroundings;
mod tree;
mod workers;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::{process, repo, toolkit};
use fake_toolkit::Program;
use history::History;
use judge::{Compared, Verdict};
use space::{Space, Tools};

/// What to look for, and how long.
#[derive(Args)]
pub struct Options {
    /// How long
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,
    /// Where the first history starts; the next has the next number
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// No more histories than this
    #[arg(long)]
    histories: Option<u64>,
    /// Which tools run
    #[arg(long, value_enum, default_value_t = Which::Fake)]
    tools: Which,
    /// The warpcc to try; that of `cargo build --profile soak` when not given
    #[arg(long)]
    warpcc: Option<PathBuf>,
    /// Histories at once
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Where failing histories and figures go
    #[arg(long, default_value = "target/soak-found")]
    out: PathBuf,
    /// Where the histories run: a folder on the file system that is meant; of several, the workers take turns
    #[arg(long)]
    root: Vec<PathBuf>,
    /// The nvcc of real histories; of several, each history chooses
    #[arg(long)]
    nvcc: Vec<PathBuf>,
    /// Each worker shrinks no more failures than this; the others are saved as they are
    #[arg(long, default_value_t = 8)]
    shrink: usize,
    /// Run case files instead
    #[arg(long, num_args = 1..)]
    replay: Vec<PathBuf>,
    /// Leave out steps of these kinds, and lines and words with these texts: what is known to be wrong already
    #[arg(long, value_delimiter = ',')]
    avoid: Vec<String>,
    /// Print the history of each seed instead of running it; with --replay, warpcc's log
    #[arg(long)]
    show: bool,
    /// Switch off guards, one after the other, those joined by + together, or `all` that there are; each has to be found
    /// out, by a case (of `--replay`, or the one that is known), or by histories within the minutes given
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
    /// Which worker of another soak this process is
    #[arg(long, hide = true, requires = "shared")]
    worker: Option<usize>,
    /// The folder that workers share
    #[arg(long, hide = true)]
    shared: Option<PathBuf>,
}

/// Which tools.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    Fake,
    Real,
    Both,
}

/// Runs the machine.
pub fn main(options: &Options) -> Result<()> {
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
            "{} is not there: cargo build --profile soak -p warpcc",
            warpcc.display()
        );
    }
    fs::create_dir_all(&options.out)?;
    if let (Some(worker), Some(shared)) = (options.worker, options.shared.clone()) {
        let place = workers::Place { worker, shared };
        return workers::work(options, &warpcc, options.tools == Which::Real, &place);
    }
    if !options.without.is_empty() && !options.show {
        return bite::bite(options, &warpcc);
    }
    if !options.replay.is_empty() {
        return replay(options, &warpcc);
    }
    let mut wrong = 0;
    for real in [false, true] {
        let wanted = match options.tools {
            Which::Fake => !real,
            Which::Real => real,
            Which::Both => true,
        };
        if wanted {
            let figures = workers::look(options, &warpcc, real, None)?;
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

fn tools(options: &Options, real: bool) -> Result<Tools> {
    if real {
        return Ok(Tools::Real(toolkits(options)?));
    }
    // Built once: a table of guards replays every case again and again.
    static BUILT: Mutex<Option<Program>> = Mutex::new(None);
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let program = match built.take() {
        Some(program) => program,
        None => workers::fake_program()?,
    };
    Ok(Tools::Fake(built.insert(program).clone()))
}

/// The toolkits of real histories.
fn toolkits(options: &Options) -> Result<Vec<PathBuf>> {
    let mut named = options.nvcc.clone();
    if named.is_empty() {
        named.push(toolkit::find(toolkit::NEWEST)?);
    }
    let mut tops = Vec::new();
    for nvcc in named {
        let nvcc = nvcc.canonicalize()?;
        let top = nvcc.parent().and_then(Path::parent);
        tops.push(top.context("no toolkit around nvcc")?.to_owned());
    }
    Ok(tops)
}

/// Runs case files; each has to come out right.
fn replay(options: &Options, warpcc: &Path) -> Result<()> {
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

fn replay_file(
    options: &Options,
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
mod tests {
    use super::*;

    /// Every committed case with fake tools is right. Cases in `xtask/soak/cases/open` are known to be wrong, and wait.
    #[test]
    fn committed_cases_are_right() -> Result<()> {
        let program = std::env::current_exe()?;
        let warpcc = program
            .parent()
            .and_then(Path::parent)
            .context("no target folder")?
            .join("warpcc");
        assert!(
            warpcc.is_file(),
            "no {}: cargo build --workspace",
            warpcc.display()
        );
        let mut cases = 0;
        let root = tempfile::tempdir()?;
        let program = workers::fake_program()?;
        for entry in fs::read_dir(repo::root().join("xtask/soak/cases"))? {
            let file = entry?.path();
            let name = file
                .file_name()
                .map_or(String::new(), |n| n.to_string_lossy().into_owned());
            if name.starts_with("real-") || !name.ends_with(".soak") {
                continue;
            }
            let tools = Tools::Fake(program.clone());
            let verdict = replay_in(&root.path().join("space"), &file, &warpcc, tools, None)?;
            let found = verdict.wrong.map(|(_, found)| found).unwrap_or_default();
            assert!(found.is_empty(), "{name}: {}", found.join("\n"));
            cases += 1;
        }
        assert!(cases > 0, "no case was found");
        Ok(())
    }

    #[test]
    fn a_seed_repeats_its_history() {
        for seed in 0..200 {
            let history = invent::invent(seed, true);
            assert_eq!(history, invent::invent(seed, true));
            let text = history.to_string();
            assert_eq!(History::parse(&text).expect("parses"), history, "{text}");
        }
    }
}
