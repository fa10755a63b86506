//! Workers: processes that run histories, each in a folder of its own, and their joint results. They are processes and not
//! threads, because a program that one thread writes cannot be executed while another's child still has it open.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::fake_toolkit::FakeTool;
use super::figures::{self, SoakFigures};
use super::history::History;
use super::judge::{self, Compared};
use super::options::SoakOptions;
use super::space::{Space, Tools};
use super::{invent, shrink};
use crate::repo;

/// How late a worker may be before it is stopped: a history and a shrinking end long before.
const GRACE: Duration = Duration::from_secs(15 * 60);
/// How often a worker writes down its figures.
const OFTEN: Duration = Duration::from_secs(5);

/// A worker's number and folder, which it gets besides the options.
#[derive(Clone, Debug)]
pub struct WorkerPlace {
    /// Its number.
    pub worker: usize,
    /// The folder that it shares with the others: fake tools, figures, and a file `stop`.
    pub shared: PathBuf,
}

impl WorkerPlace {
    fn figures(&self) -> PathBuf {
        self.shared.join(format!("{}.json", self.worker))
    }
}

/// Runs histories with workers, until the time is over or, without a guard, until one is wrong.
///
/// # Errors
/// The tools cannot be built, or a worker did not end as it should.
pub fn search(
    options: &SoakOptions,
    warpcc: &Path,
    real: bool,
    without: Option<&str>,
) -> Result<SoakFigures> {
    let own = format!("work-{}", std::process::id());
    let shared = options.out.join(own);
    fs::create_dir_all(&shared)?;
    let shared = shared.canonicalize()?;
    if !real {
        FakeTool::build(&shared.join("tools"))?;
    }
    let end = Instant::now() + Duration::from_secs_f64(options.minutes * 60.0) + GRACE;
    let jobs = options.jobs.max(1);
    let mut workers = Vec::new();
    for worker in 0..jobs {
        let root = root(options, real, worker);
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(arguments(options, warpcc, real, &root))
            .args(["--worker", &worker.to_string()])
            .arg("--shared")
            .arg(&shared);
        if let Some(guards) = without {
            command.args(["--without", guards]);
        }
        workers.push((command.spawn()?, root));
    }
    let mut failed = 0;
    for (child, root) in &mut workers {
        failed += usize::from(!wait(child, end)?);
        _ = fs::remove_dir_all(root);
    }
    let mut figures = SoakFigures::default();
    for worker in 0..jobs {
        let shared = shared.clone();
        let file = WorkerPlace { worker, shared }.figures();
        let text = fs::read(&file).with_context(|| format!("worker {worker} left no figures"))?;
        figures.merge(serde_json::from_slice(&text)?);
    }
    fs::remove_dir_all(shared)?;
    if failed > 0 {
        figures.print();
        bail!("{failed} workers failed");
    }
    Ok(figures)
}

/// Waits for a worker. True where it succeeded.
fn wait(child: &mut Child, end: Instant) -> Result<bool> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// A worker's command line.
fn arguments(options: &SoakOptions, warpcc: &Path, real: bool, root: &Path) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut words: Vec<String> = vec!["soak".into()];
    let mut push = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    push("minutes", options.minutes.to_string());
    push("seed", options.seed.to_string());
    push("jobs", options.jobs.to_string());
    push("shrink", options.shrink.to_string());
    push("tools", if real { "real" } else { "fake" }.into());
    push("warpcc", text(warpcc));
    push("out", text(&options.out));
    push("root", text(root));
    if let Some(histories) = options.histories {
        push("histories", histories.to_string());
    }
    for nvcc in &options.nvcc {
        push("nvcc", text(nvcc));
    }
    for word in &options.avoid {
        push("avoid", word.clone());
    }
    words
}

/// A worker's folder. With fake tools, a third of the workers use the disk, and the others memory, which is several times
/// as fast.
pub fn root(options: &SoakOptions, real: bool, worker: usize) -> PathBuf {
    let roots = &options.root;
    let folder = match roots.len() {
        0 if real || worker.is_multiple_of(3) => std::env::temp_dir(),
        0 => PathBuf::from("/dev/shm"),
        count => roots[worker % count].clone(),
    };
    folder.join(format!("soak-{}-{worker}", std::process::id()))
}

/// A worker's own work: every `jobs`-th history from its number on.
///
/// # Errors
/// Its folder cannot be used, or a command cannot be started.
pub fn work(options: &SoakOptions, warpcc: &Path, real: bool, place: &WorkerPlace) -> Result<()> {
    let tools = match real {
        true => Tools::Real(options.toolkits()?),
        false => Tools::Fake(FakeTool::load(&place.shared.join("tools"))?),
    };
    let root = options.root.first().context("a worker without a folder")?;
    let mut space = Space::new(root, tools, warpcc.to_owned())?;
    space.without = options
        .without
        .first()
        .map(|guards| guards.replace('+', ","));
    let mut search = Search {
        options,
        real,
        place,
        figures: SoakFigures::default(),
        shrunk: 0,
    };
    let done = search.search(&mut space);
    space.clear();
    search.write_figures()?;
    done
}

struct Search<'a> {
    options: &'a SoakOptions,
    real: bool,
    place: &'a WorkerPlace,
    figures: SoakFigures,
    shrunk: usize,
}

impl Search<'_> {
    fn search(&mut self, space: &mut Space) -> Result<()> {
        let end = Instant::now() + Duration::from_secs_f64(self.options.minutes * 60.0);
        let stop = self.place.shared.join("stop");
        let first = self.options.seed + self.place.worker as u64;
        let last = self.options.histories.map(|n| self.options.seed + n);
        let mut written = Instant::now();
        for seed in (first..).step_by(self.options.jobs.max(1)) {
            if Instant::now() > end || last.is_some_and(|last| seed >= last) || stop.exists() {
                break;
            }
            self.one(space, seed)?;
            if space.without.is_some() && self.figures.wrong > 0 {
                fs::write(&stop, "")?;
            }
            if written.elapsed() > OFTEN {
                self.write_figures()?;
                written = Instant::now();
            }
        }
        Ok(())
    }

    fn one(&mut self, space: &mut Space, seed: u64) -> Result<()> {
        let history = invent::invent(seed, !self.real);
        let history = invent::without(history, &self.options.avoid);
        space.choose_toolkit(seed);
        let verdict = judge::judge(space, &history, Compared::Every)?;
        if verdict.wrong.is_some() && space.without.is_some() {
            // A history that is also wrong with all guards says nothing about this one.
            let guard = space.without.take();
            let guarded = judge::judge(space, &history, Compared::Every)?;
            space.without = guard;
            if guarded.wrong.is_some() {
                return Ok(());
            }
        }
        self.figures
            .count(seed, &verdict, &figures::stats(space, seed));
        let Some((at, found)) = verdict.wrong else {
            return Ok(());
        };
        if space.without.is_some() {
            return Ok(());
        }
        let first = found.first().cloned().unwrap_or_default();
        println!("seed {seed}: {}", first.lines().next().unwrap_or(""));
        let mut cut = history;
        cut.0.truncate(at + 1);
        self.shrunk += 1;
        let (short, wrong) = match self.shrunk > self.options.shrink {
            true => (cut, found),
            false => shrink::shrink(space, &cut, found)?,
        };
        self.save(space, seed, &short, &wrong)?;
        self.write_figures()
    }

    fn write_figures(&self) -> Result<()> {
        let file = self.place.figures();
        let new = file.with_extension("new");
        fs::write(&new, self.figures.json()?)?;
        Ok(fs::rename(new, file)?)
    }

    /// Saves a failing history, unless one of the same shape is saved already.
    fn save(&mut self, space: &Space, seed: u64, short: &History, wrong: &[String]) -> Result<()> {
        let shape = short.shape();
        let known = self.figures.shapes.entry(shape.clone()).or_default();
        *known += 1;
        let kind = if self.real { "real" } else { "fake" };
        let name: String = shape
            .chars()
            .filter(|c| !"{}@$".contains(*c))
            .take(80)
            .collect();
        let start = format!("{kind}-{name}-");
        let is_known = |entry: fs::DirEntry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let seed = name
                .strip_prefix(&start)
                .and_then(|n| n.strip_suffix(".soak"));
            seed.is_some_and(|seed| seed.bytes().all(|b| b.is_ascii_digit()))
        };
        if *known > 1 || fs::read_dir(&self.options.out)?.flatten().any(is_known) {
            return Ok(());
        }
        let file = self.options.out.join(format!("{start}{seed}.soak"));
        let mut text = format!("# Found by `cargo xtask soak --tools {kind} --seed {seed}`.\n");
        if let Some(toolkit) = space.real_toolkit() {
            text += &format!("# With {}.\n", toolkit.display());
        }
        for line in wrong.iter().flat_map(|w| w.lines()) {
            text += &format!("# wrong: {line}\n");
        }
        fs::write(&file, text + &short.to_string())?;
        self.figures.saved.push(file);
        Ok(())
    }
}

/// The fake tools of this process, built once: a table of guards replays every case again and again.
pub fn fake_program() -> Result<FakeTool> {
    let folder = repo::target_dir().join(format!("soak-found/tools-{}", std::process::id()));
    let program = FakeTool::build(&folder);
    _ = fs::remove_dir_all(folder);
    program
}
