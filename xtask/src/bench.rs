//! Measures how long one compilation takes with nvcc, with warpcc and with other caches, on this machine.
//!
//! Every contender is measured in the same run, one after the other and round after round, so
//! that a machine that slows down slows them all. The report has the median. The result is a JSON
//! file with everything needed to judge it, and a chart.
//!
//! Started as a binary with `--warpcc` and `--nvcc` it needs neither cargo nor the repository,
//! so it can be carried to another machine.

mod chart;
mod cluster;
mod competitors;
mod edits;
mod fatbin_list;
mod limits;
pub mod machine_info;
mod options;
mod remote;
mod servers;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::measure::{self, Cost};
use crate::{programs, repo};
use competitors::{Contender, Workplace};
pub use options::BenchOptions;
use options::SOURCE;

/// `cargo xtask bench`.
pub fn main(options: &BenchOptions) -> Result<()> {
    if options.only == [limits::NAME] {
        return limits::main(options);
    }
    let nvcc = programs::nvcc(options.nvcc.as_deref())?;
    match options.only.as_slice() {
        [one] if one == fatbin_list::NAME => return fatbin_list::main(options, &nvcc),
        [one] if one == remote::NAME => return remote::main(options, &nvcc),
        [one] if one == remote::LARGE => return remote::large(options, &nvcc),
        [one] if one == remote::SMALL => return remote::small(options, &nvcc),
        [one] if one == edits::NAME => return edits::main(options, &nvcc),
        [one] if one == cluster::NAME => return cluster::main(options, &nvcc),
        _ => {}
    }
    let wanted = competitors::chosen(&options.only)?;
    let warpcc = if wanted.iter().any(|contender| contender.is_ours()) {
        Some(programs::launcher(options.warpcc.as_deref())?)
    } else {
        None
    };
    let dir = tempfile::tempdir().context("failed to create a folder to work in")?;
    let place = Workplace::new(dir.path(), nvcc, warpcc, &options.archs);
    let source = match &options.source {
        Some(file) => fs::read_to_string(file)
            .with_context(|| format!("failed to read {}", file.display()))?,
        None => SOURCE.to_owned(),
    };
    fs::write(place.source(), source).context("failed to write the source")?;

    let (present, absent): (Vec<_>, Vec<_>) = wanted
        .into_iter()
        .partition(|contender| contender.is_here(&place));
    for contender in &absent {
        eprintln!("{}: not installed, left out", contender.name());
    }
    let result = measure_all(&place, &present, options.runs);
    competitors::stop_servers(&place, &present);
    let measured = result?;

    let report = report(options, &place, &measured, &absent)?;
    print_table(&measured);
    write(options, &report)
}

/// A contender with the costs of its runs.
struct Measured {
    contender: Contender,
    costs: Vec<Cost>,
    /// Whether its object has the bytes of `nvcc --keep`'s; `None` where there is no such object to compare with.
    same: Option<bool>,
}

impl Measured {
    fn median(&self) -> Cost {
        Cost::median(&self.costs)
    }
}

fn measure_all(place: &Workplace, present: &[Contender], runs: u32) -> Result<Vec<Measured>> {
    let mut all: Vec<_> = present
        .iter()
        .map(|&contender| Measured {
            contender,
            costs: Vec::new(),
            same: None,
        })
        .collect();
    for measured in &mut all {
        measured.contender.warm(place)?;
    }
    let reference = if present.iter().any(|contender| contender.is_ours()) {
        measure::run(&mut place.reference())?;
        Some(place.take_object()?)
    } else {
        None
    };
    for round in 1..=runs {
        for measured in &mut all {
            measured.contender.prepare(place)?;
            let cost = measure::run(&mut measured.contender.command(place))?;
            eprintln!(
                "round {round}, {}: {:.3} s",
                measured.contender.name(),
                cost.wall
            );
            let object = place.take_object()?;
            if let (Some(reference), true) = (&reference, measured.contender.is_ours()) {
                measured.same = Some(measured.same != Some(false) && object == *reference);
            }
            measured.costs.push(cost);
        }
    }
    Ok(all)
}

/// nvcc's median, which the others are compared with.
fn base(measured: &[Measured]) -> Cost {
    measured
        .first()
        .map_or_else(|| Cost::median(&[]), Measured::median)
}

fn print_table(measured: &[Measured]) {
    let base = base(measured);
    println!(
        "{:<16} {:>10} {:>10} {:>10} {:>10}",
        "", "wall", "ratio", "CPU", "ratio"
    );
    for one in measured {
        let cost = one.median();
        println!(
            "{:<16} {:>8.3} s {:>10.2} {:>8.3} s {:>10.2}",
            one.contender.name(),
            cost.wall,
            base.wall / cost.wall,
            cost.cpu(),
            base.cpu() / cost.cpu(),
        );
        if one.same == Some(false) {
            println!("{:<16} ITS OBJECT DIFFERS from nvcc --keep's", "");
        }
    }
}

fn report(
    options: &BenchOptions,
    place: &Workplace,
    measured: &[Measured],
    absent: &[Contender],
) -> Result<Value> {
    let base = base(measured);
    let results = measured.iter().map(|one| {
        let cost = one.median();
        json!({
            "name": one.contender.name(),
            "what": one.contender.what(),
            "version": one.contender.version(place),
            "wall_s": cost.wall,
            "cpu_s": cost.cpu(),
            "user_s": cost.user,
            "system_s": cost.system,
            "cpu_s_without_children": cost.own,
            "peak_kib_of_largest_process": cost.peak_kib,
            "times_as_fast_as_nvcc": base.wall / cost.wall,
            "same_object_as_nvcc_keep": one.same,
            "wall_s_of_each_run": one.costs.iter().map(|cost| cost.wall).collect::<Vec<_>>(),
            "cpu_s_of_each_run": one.costs.iter().map(Cost::cpu).collect::<Vec<_>>(),
        })
    });
    Ok(json!({
        "name": options.name,
        "date": machine_info::date()?,
        "machine": machine_info::machine(),
        "toolkit": machine_info::toolkit(&place.nvcc)?,
        "host_compiler": machine_info::host_compiler(),
        "architectures": options.archs,
        "headers": machine_info::headers(&place.nvcc, &place.source())?,
        "command": format!("nvcc {}", place.arguments().join(" ")),
        "runs": options.runs,
        "statistic": "median",
        "results": results.collect::<Vec<_>>(),
        "not_installed": absent.iter().map(Contender::name).collect::<Vec<_>>(),
    }))
}

fn write(options: &BenchOptions, report: &Value) -> Result<()> {
    let out = options
        .out
        .clone()
        .unwrap_or_else(|| repo::root().join("docs/bench"));
    fs::create_dir_all(&out).with_context(|| format!("failed to create {}", out.display()))?;
    let text = serde_json::to_string_pretty(report).context("failed to write JSON")?;
    let save = |ending: &str, text: &str| -> Result<()> {
        let file = out.join(Path::new(&options.name).with_extension(ending));
        fs::write(&file, text).with_context(|| format!("failed to write {}", file.display()))?;
        println!("{}", file.display());
        Ok(())
    };
    save("json", &(text + "\n"))?;
    let Some(chart) = chart::draw(report) else {
        bail!("there is nothing to draw");
    };
    save("svg", &chart)
}
