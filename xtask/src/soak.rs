//! Looks for wrong results of warpcc: histories by chance, each call compared with a fresh nvcc. docs/soak.md says what
//! it covers.

mod bite;
mod changes;
mod fake_toolkit;
mod figures;
mod history;
mod invent;
mod invent_real;
mod judge;
mod meeting;
mod random;
mod shrink;
mod space;
mod surroundings;
mod tree;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::{process, repo, toolkit};
use fake_toolkit::Program;
use figures::Figures;
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
    /// Where the histories run: a folder on the file system that is meant
    #[arg(long)]
    root: Option<PathBuf>,
    /// Stop shrinking after so many different failures
    #[arg(long, default_value_t = 60)]
    shrink: usize,
    /// Run case files instead
    #[arg(long, num_args = 1..)]
    replay: Vec<PathBuf>,
    /// Leave out steps of these kinds, and lines and words with these texts: what is known to be wrong already
    #[arg(long, value_delimiter = ',')]
    avoid: Vec<String>,
    /// Print the history of each seed instead of running it
    #[arg(long)]
    show: bool,
    /// Switch off guards, one after the other, those joined by + together; each has to be found out, by a case of
    /// `--replay`, or by histories within the minutes given
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
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
    if options.show {
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
    if !options.without.is_empty() {
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
            let figures = look(options, &warpcc, real, None)?;
            figures.print();
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

fn tools(real: bool) -> Result<Tools> {
    if !real {
        // Built once: a table of guards replays every case again and again.
        static BUILT: Mutex<Option<Program>> = Mutex::new(None);
        let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
        let program = match built.take() {
            Some(program) => program,
            None => Program::build(&repo::target_dir().join("soak-found"))?,
        };
        return Ok(Tools::Fake(built.insert(program).clone()));
    }
    let nvcc = toolkit::find(toolkit::NEWEST)?.canonicalize()?;
    let top = nvcc
        .parent()
        .and_then(Path::parent)
        .context("no toolkit around nvcc")?;
    Ok(Tools::Real(top.to_owned()))
}

/// A worker's folder: of those with fake tools, all but the first work in memory, which is several times as fast.
fn root(options: &Options, real: bool, worker: usize) -> PathBuf {
    let folder = match &options.root {
        Some(root) => root.clone(),
        None if real || worker == 0 => std::env::temp_dir(),
        None => PathBuf::from("/dev/shm"),
    };
    folder.join(format!("soak-{}-{worker}", std::process::id()))
}

/// What the workers share.
struct Search<'a> {
    options: &'a Options,
    real: bool,
    next: AtomicU64,
    end: Instant,
    figures: Mutex<Figures>,
    /// The shapes of failures that were saved.
    shapes: Mutex<BTreeMap<String, u64>>,
    stops_at_first: bool,
}

fn look(options: &Options, warpcc: &Path, real: bool, without: Option<&str>) -> Result<Figures> {
    let search = Search {
        options,
        real,
        next: AtomicU64::new(options.seed),
        end: Instant::now() + Duration::from_secs_f64(options.minutes * 60.0),
        figures: Mutex::default(),
        shapes: Mutex::default(),
        stops_at_first: without.is_some(),
    };
    let tools = tools(real)?;
    let results = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..options.jobs.max(1))
            .map(|worker| {
                let place = root(options, real, worker);
                let (search, tools) = (&search, tools.clone());
                let without = without.map(str::to_owned);
                scope.spawn(move || -> Result<()> {
                    let mut space = Space::new(&place, tools, warpcc.to_owned())?;
                    space.without = without;
                    let done = search.work(&mut space);
                    space.clear();
                    _ = fs::remove_dir_all(&place);
                    done
                })
            })
            .collect();
        let joined = workers.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.collect::<Vec<_>>()
    });
    for result in results {
        result.map_err(|_| anyhow::anyhow!("a worker panicked"))??;
    }
    let mut figures = search
        .figures
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    figures.shapes = search
        .shapes
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    Ok(figures)
}

impl Search<'_> {
    fn work(&self, space: &mut Space) -> Result<()> {
        loop {
            let seed = self.next.fetch_add(1, Ordering::Relaxed);
            let last = self.options.histories.map(|n| self.options.seed + n);
            let stop = self.stops_at_first && self.with_figures(|f| f.wrong) > 0;
            if stop || Instant::now() > self.end || last.is_some_and(|last| seed >= last) {
                return Ok(());
            }
            let history = invent::invent(seed, !self.real);
            let history = invent::without(history, &self.options.avoid);
            let verdict = judge::judge(space, &history, Compared::Every)?;
            if verdict.wrong.is_some() && space.without.is_some() {
                // What is wrong with all guards too says nothing about this one.
                let guard = space.without.take();
                let guarded = judge::judge(space, &history, Compared::Every)?;
                space.without = guard;
                if guarded.wrong.is_some() {
                    continue;
                }
            }
            let counters = figures::stats(space);
            self.with_figures(|f| f.count(seed, &verdict, &counters));
            let Some((at, found)) = verdict.wrong else {
                continue;
            };
            let tried = {
                let shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
                shapes.len()
            };
            if self.stops_at_first || tried >= self.options.shrink {
                continue;
            }
            let mut cut = history;
            cut.0.truncate(at + 1);
            println!("seed {seed}: {}", found.first().map_or("", String::as_str));
            let (short, wrong) = shrink::shrink(space, &cut)?;
            self.save(seed, &short, &wrong)?;
        }
    }

    fn with_figures<T>(&self, change: impl FnOnce(&mut Figures) -> T) -> T {
        change(&mut self.figures.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn save(&self, seed: u64, short: &History, wrong: &[String]) -> Result<()> {
        let shape = short.shape();
        let mut shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        let count = shapes.entry(shape.clone()).or_default();
        *count += 1;
        if *count > 1 {
            return Ok(());
        }
        let kind = if self.real { "real" } else { "fake" };
        let name: String = shape
            .chars()
            .filter(|c| !"{}@$".contains(*c))
            .take(80)
            .collect();
        let file = self.options.out.join(format!("{kind}-{name}-{seed}.soak"));
        let mut text =
            format!("# Found by `cargo xtask soak --tools {kind} --seed {seed}`, shrunk.\n");
        for line in wrong.iter().flat_map(|w| w.lines()) {
            text += &format!("# wrong: {line}\n");
        }
        println!("  {}", file.display());
        fs::write(&file, text + &short.to_string())?;
        Ok(())
    }
}

/// Runs case files; each has to come out right.
fn replay(options: &Options, warpcc: &Path) -> Result<()> {
    let mut wrong = 0;
    for file in &options.replay {
        let root = root(options, true, 0);
        let real = options.tools == Which::Real;
        let verdict = replay_file(file, warpcc, &root, real, None)?;
        let found = verdict.wrong.map(|(_, found)| found).unwrap_or_default();
        println!(
            "{} {} ({} calls, {} of them failing with nvcc)",
            if found.is_empty() { "right" } else { "WRONG" },
            file.display(),
            verdict.calls,
            verdict.failing
        );
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
    file: &Path,
    warpcc: &Path,
    root: &Path,
    real: bool,
    without: Option<String>,
) -> Result<Verdict> {
    let history = History::load(file)?;
    let named = file
        .file_name()
        .is_some_and(|n| n.to_string_lossy().starts_with("real-"));
    let mut space = Space::new(root, tools(real || named)?, warpcc.to_owned())?;
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
        for entry in fs::read_dir(repo::root().join("xtask/soak/cases"))? {
            let file = entry?.path();
            let name = file
                .file_name()
                .map_or(String::new(), |n| n.to_string_lossy().into_owned());
            if name.starts_with("real-") || !name.ends_with(".soak") {
                continue;
            }
            let verdict = replay_file(&file, &warpcc, &root.path().join("space"), false, None)?;
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
