//! How long a project takes with 2 to 2,000 workers of a cluster, played with the steps that a real build left, and what
//! then limits it.

mod plot;
mod project;
mod run;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Options;
use crate::repo;
use project::Project;
use run::{Goes, Outcome, Setting};

/// What `--only` calls it.
pub const NAME: &str = "simulate";

/// How many workers.
const WORKERS: [usize; 10] = [2, 4, 8, 16, 32, 64, 125, 250, 500, 2000];

/// Each of the eleven recorded files stands for so many of the project's 189.
const TIMES: usize = 16;

/// Seconds of a processor that a call takes beside its steps, for the project whose steps are kept. For the comparison with
/// `cluster.json` it is taken from there.
const BEFORE: f64 = 0.15;

/// Seconds that an action takes beside its command: a trivial one took casd 32 ms.
const AROUND: f64 = 0.032;

/// A machine with its line to the cluster.
pub struct Place {
    pub name: &'static str,
    slots: usize,
    /// Millions of bits in a second, up and down.
    line: [f64; 2],
    round_trip: f64,
}

const PLACES: [Place; 3] = [
    Place {
        name: "16 slots, 100 Mbit/s up, 20 ms",
        slots: 16,
        line: [100.0, 400.0],
        round_trip: 0.020,
    },
    Place {
        name: "16 slots, 1 Gbit/s, 1 ms",
        slots: 16,
        line: [1000.0, 1000.0],
        round_trip: 0.001,
    },
    Place {
        name: "96 slots, 10 Gbit/s, 0.5 ms",
        slots: 96,
        line: [10_000.0, 10_000.0],
        round_trip: 0.000_5,
    },
];

impl Place {
    fn with(&self, workers: usize) -> Setting {
        let bytes = |line: f64| line * 1e6 / 8.0;
        Setting {
            slots: self.slots,
            speed_here: 1.0,
            workers,
            speed_there: 1.0,
            goes: Goes::WhenFull,
            up: bytes(self.line[0]),
            down: bytes(self.line[1]),
            round_trip: self.round_trip,
            around: AROUND,
        }
    }
}

/// Plays and writes; with `--steps` it first takes the steps out of what `warpcc report --json` has said of a build.
pub fn main(options: &Options) -> Result<()> {
    let out = options.out.clone();
    let out = out.unwrap_or_else(|| repo::root().join("docs/bench"));
    let file = out.join("simulated-steps.csv");
    if let Some(report) = &options.steps {
        let project = Project::of_report(&read_json(report)?, BEFORE)?;
        save(&file, &project.to_csv())?;
    }
    let text = fs::read_to_string(&file).with_context(|| {
        format!(
            "failed to read {}: name a build's report with --steps",
            file.display()
        )
    })?;
    let project = Project::of_csv(&text)?.repeated(TIMES);
    let files = project.steps.iter().filter(|step| step.name == "plan");
    let files = files.count();
    let mut table = "place,workers,wall_s,steps_away,limit,limit_s\n".to_owned();
    let mut curves = Vec::new();
    for place in &PLACES {
        let alone = run::run(&project, place.with(0));
        row(&mut table, place, 0, &alone);
        let mut curve = Vec::new();
        for workers in WORKERS {
            let outcome = run::run(&project, place.with(workers));
            row(&mut table, place, workers, &outcome);
            curve.push((workers as f64, outcome.wall, outcome.limit().0.clone()));
        }
        curves.push((place.name, alone.wall, curve));
    }
    print!("{table}");
    save(&out.join("simulated.csv"), &table)?;
    save(&out.join("simulated.svg"), &plot::draw(files, &curves))?;
    validate(&out)
}

fn row(table: &mut String, place: &Place, workers: usize, outcome: &Outcome) {
    let (limit, seconds) = outcome.limit();
    let place = place.name.replace(',', ";");
    // Writing to a string cannot fail.
    let _ = writeln!(
        table,
        "{place},{workers},{:.1},{},{limit},{seconds:.1}",
        outcome.wall, outcome.away
    );
}

/// Plays the builds that `--only cluster` has measured, from the steps of the one without workers, and says how far off that is.
fn validate(out: &Path) -> Result<()> {
    let (measured, steps) = (out.join("cluster.json"), out.join("cluster-steps.json"));
    if !measured.exists() || !steps.exists() {
        println!("there is no cluster.json to compare with: `cargo xtask bench --only cluster`");
        return Ok(());
    }
    let (measured, steps) = (read_json(&measured)?, read_json(&steps)?);
    let share = |who: &str| {
        let percent = measured["share_of_one_processor_percent"][who].as_f64();
        percent
            .map(|percent| percent / 100.0)
            .context("cluster.json has no shares")
    };
    let bare = Project::of_report(&steps, 0.0)?;
    let runs = measured["runs"]
        .as_array()
        .context("cluster.json has no runs")?;
    let median = |workers: u64, key: &str| {
        let some = runs
            .iter()
            .filter(|run| run["workers"].as_u64() == Some(workers));
        let mut values: Vec<f64> = some.filter_map(|run| run[key].as_f64()).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    let calls = bare.steps.iter().filter(|step| step.name == "plan").count();
    let in_steps: f64 = bare.steps.iter().map(|step| step.seconds).sum();
    let whole = median(0, "cpu_s_of_the_users_machine").context("no run without workers")?;
    // What the machine's processor did beside the steps is warpcc's and nvcc's for the plan.
    let before = (whole - in_steps).max(0.0) / calls.max(1) as f64;
    let project = Project::of_report(&steps, before)?;
    let mut table = "workers,measured_s,simulated_s,error_percent\n".to_owned();
    for workers in [0_u64, 1, 2] {
        let Some(wall) = median(workers, "wall_s") else {
            continue;
        };
        let setting = Setting {
            slots: 1,
            speed_here: share("users_machine")?,
            workers: workers as usize,
            speed_there: share("each_worker")?,
            goes: Goes::Always,
            up: 1e9,
            down: 1e9,
            round_trip: 0.001,
            around: AROUND / share("each_worker")?,
        };
        let played = run::run(&project, setting).wall;
        let _ = writeln!(
            table,
            "{workers},{wall:.1},{played:.1},{:+.0}",
            (played / wall - 1.0) * 100.0
        );
    }
    println!("{before:.3} s of warpcc and of the dry run for each file");
    print!("{table}");
    save(&out.join("simulated-against-measured.csv"), &table)
}

fn read_json(file: &Path) -> Result<Value> {
    let text =
        fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))
}

fn save(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("failed to write {}", file.display()))?;
    println!("{}", file.display());
    Ok(())
}
