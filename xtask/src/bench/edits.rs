//! How long a rebuild takes after an edit of one line, and which steps run, with warpcc, ccache and sccache against `nvcc -t 0`.
//!
//! Each edit is new in each round: nobody has compiled that text before. So a hit is a hit of what did not change.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::competitors::{self, Contender, Workplace};
use super::machine_info;
use super::options::{BenchOptions, SOURCE};
use crate::measure::{self, Cost};
use crate::{process, programs, repo};

/// The word for `--only`.
pub const NAME: &str = "edits";

/// Lines appended to the benchmark's file. The edits change the numbers in them.
const TAIL: &str = "
__global__ void scale(float* values) { values[threadIdx.x] *= 100000.0f; }

float on_the_host(float value) { return value * 200000.0f; }
";

/// An edit of one line.
#[derive(Clone, Copy, PartialEq)]
enum EditKind {
    Comment,
    Host,
    Device,
}

const EDITS: [EditKind; 3] = [EditKind::Comment, EditKind::Host, EditKind::Device];

impl EditKind {
    fn name(self) -> &'static str {
        match self {
            EditKind::Comment => "a comment line on top",
            EditKind::Host => "a host function's body",
            EditKind::Device => "a kernel's body",
        }
    }

    /// `source` after the edit. Each `number` gives another text.
    fn apply(self, source: &str, number: u32) -> String {
        match self {
            EditKind::Comment => format!("// edit {number}\n{source}"),
            EditKind::Host => source.replace("200000.0f", &format!("{}.0f", 200_000 + number)),
            EditKind::Device => source.replace("100000.0f", &format!("{}.0f", 100_000 + number)),
        }
    }
}

/// The runs of one contender after one edit.
struct Series {
    edit: EditKind,
    contender: Contender,
    costs: Vec<Cost>,
    /// Steps that ran in the last round, where warpcc was asked.
    steps: BTreeMap<String, u64>,
    /// Whether warpcc's objects had the bytes of `nvcc --keep`'s.
    same: Option<bool>,
}

/// Measures, shows and writes.
pub fn main(options: &BenchOptions, nvcc: &Path) -> Result<()> {
    let dir = tempfile::tempdir().context("failed to create a folder to work in")?;
    let warpcc = programs::warpcc(options.warpcc.as_deref())?;
    let place = Workplace::new(dir.path(), nvcc.to_owned(), Some(warpcc), &options.archs);
    let source = match &options.source {
        Some(file) => fs::read_to_string(file)
            .with_context(|| format!("failed to read {}", file.display()))?,
        None => SOURCE.to_owned(),
    };
    let source = source + TAIL;
    let contenders: Vec<Contender> = competitors::rebuilding()
        .into_iter()
        .filter(|contender| contender.is_here(&place))
        .collect();
    let measured = measure_all(&place, &contenders, &source, options.runs);
    competitors::stop_servers(&place, &contenders);
    let measured = measured?;
    print_table(&measured);
    write(options, &place, &measured)
}

fn measure_all(
    place: &Workplace,
    contenders: &[Contender],
    source: &str,
    runs: u32,
) -> Result<Vec<Series>> {
    let save = |text: &str| fs::write(place.source(), text).context("failed to write the source");
    save(source)?;
    for &contender in contenders
        .iter()
        .filter(|one| **one != Contender::NvccThreads)
    {
        // Twice: some store what a hit needs only when they see a file again.
        for _ in 0..2 {
            measure::run(&mut rebuild(place, contender))
                .with_context(|| format!("failed to warm {}", contender.name()))?;
            place.take_object()?;
        }
    }
    let mut all = Vec::new();
    for edit in EDITS {
        all.extend(contenders.iter().map(|&contender| Series {
            edit,
            contender,
            costs: Vec::new(),
            steps: BTreeMap::new(),
            same: None,
        }));
    }
    // What nvcc makes of the text after an edit. It is the same for all.
    let mut reference = None;
    for round in 1..=runs {
        for series in &mut all {
            save(&series.edit.apply(source, round))?;
            let before = steps_that_ran(place, series.contender)?;
            let cost = measure::run(&mut rebuild(place, series.contender))?;
            let after = steps_that_ran(place, series.contender)?;
            series.steps = (after.into_iter())
                .map(|(step, count)| {
                    let earlier = before.get(&step).copied().unwrap_or_default();
                    (step, count.saturating_sub(earlier))
                })
                .collect();
            let (edit, name) = (series.edit.name(), series.contender.name());
            eprintln!("round {round}, {edit}, {name}: {:.3} s", cost.wall);
            let object = place.take_object()?;
            if series.contender.is_ours() && round == 1 {
                if !matches!(&reference, Some((edit, _)) if *edit == series.edit) {
                    measure::run(&mut place.reference())?;
                    reference = Some((series.edit, place.take_object()?));
                }
                series.same = reference.as_ref().map(|(_, wanted)| object == *wanted);
            }
            series.costs.push(cost);
        }
    }
    Ok(all)
}

/// The compilation, with nvcc's own threads for the other caches too.
fn rebuild(place: &Workplace, contender: Contender) -> Command {
    let mut command = contender.command(place);
    if matches!(contender, Contender::CcacheHit | Contender::SccacheHit) {
        command.args(["-t", "0"]);
    }
    command
}

/// How many steps of each kind warpcc has run so far, by its own count. Empty for the others.
fn steps_that_ran(place: &Workplace, contender: Contender) -> Result<BTreeMap<String, u64>> {
    if !contender.is_ours() {
        return Ok(BTreeMap::new());
    }
    let text = process::output(&mut contender.statistics(place))?;
    let stats: Value = serde_json::from_str(&text).context("`warpcc stats` wrote no JSON")?;
    let steps = stats["steps"].as_object().into_iter().flatten();
    Ok(steps
        .map(|(name, step)| (name.clone(), step["misses"].as_u64().unwrap_or_default()))
        .collect())
}

/// The median wall time of `nvcc -t 0` after the same edit.
fn base(all: &[Series], edit: EditKind) -> f64 {
    all.iter()
        .find(|series| series.edit == edit && series.contender == Contender::NvccThreads)
        .map_or(f64::NAN, |series| Cost::median(&series.costs).wall)
}

fn print_table(all: &[Series]) {
    for series in all {
        let wall = Cost::median(&series.costs).wall;
        println!(
            "{:<24} {:<12} {wall:>8.3} s {:>6.2}  {}",
            series.edit.name(),
            series.contender.name(),
            wall / base(all, series.edit),
            shown(&series.steps),
        );
        if series.same == Some(false) {
            println!("{:<24} ITS OBJECT DIFFERS from nvcc --keep's", "");
        }
    }
}

fn shown(steps: &BTreeMap<String, u64>) -> String {
    let ran = steps.iter().filter(|(_, count)| **count > 0);
    ran.map(|(step, count)| format!("{step} {count}"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn write(options: &BenchOptions, place: &Workplace, all: &[Series]) -> Result<()> {
    if all.iter().any(|series| series.same == Some(false)) {
        bail!("an object differs from nvcc --keep's; nothing is written");
    }
    let results = all.iter().map(|series| {
        let wall = Cost::median(&series.costs).wall;
        json!({
            "edit": series.edit.name(),
            "name": series.contender.name(),
            "version": series.contender.version(place),
            "wall_s": wall,
            "against_nvcc_t0": wall / base(all, series.edit),
            "steps_that_ran": series.steps,
            "same_object_as_nvcc_keep": series.same,
            "wall_s_of_each_run": series.costs.iter().map(|cost| cost.wall).collect::<Vec<_>>(),
        })
    });
    let report = json!({
        "name": NAME,
        "date": machine_info::date()?,
        "machine": machine_info::machine(),
        "toolkit": machine_info::toolkit(&place.nvcc)?,
        "host_compiler": machine_info::host_compiler(),
        "command": format!("nvcc {}", place.arguments().join(" ")),
        "runs": options.runs,
        "statistic": "median",
        "results": results.collect::<Vec<_>>(),
    });
    let out = options.out.clone();
    let out = out.unwrap_or_else(|| repo::root().join("docs/bench"));
    fs::create_dir_all(&out).with_context(|| format!("failed to create {}", out.display()))?;
    let file = out.join("edits.json");
    let text = serde_json::to_string_pretty(&report).context("failed to write JSON")?;
    fs::write(&file, text + "\n").with_context(|| format!("failed to write {}", file.display()))?;
    println!("{}", file.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_edit_changes_the_source_and_each_number_gives_another() {
        let source = format!("{SOURCE}{TAIL}");
        for edit in EDITS {
            let (one, two) = (edit.apply(&source, 1), edit.apply(&source, 2));
            assert!(one != source && two != source && one != two);
        }
    }
}
