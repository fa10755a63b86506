//! Prints the result of `warpcc fatbin check`: first the answer, then the reasons for it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use warpcc_fatbin::{BinaryInput, Gpu, LoadOutcome, Verdict, Verdicts};

use super::tables::versioned;
use crate::commands::plain_text::{count, plain};

/// Containers whose numbers are shown for each reason; `--json` has them all.
const NAMED: usize = 12;

/// Writes an array with an object for each container and GPU.
pub fn write_json(files: &[(&BinaryInput, &Verdicts)], out: &mut dyn Write) -> io::Result<()> {
    let verdicts = files.iter().flat_map(|(_, v)| &v.verdicts);
    let all: Vec<_> = verdicts.map(versioned).collect();
    serde_json::to_writer_pretty(&mut *out, &all)?;
    writeln!(out)
}

/// Writes the result for each file and GPU.
pub fn write(
    files: &[(&BinaryInput, &Verdicts)],
    gpus: &[Gpu],
    is_bad: &dyn Fn(Gpu, LoadOutcome) -> bool,
    name_kernels: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (input, verdicts) in files {
        if verdicts.verdicts.is_empty() {
            writeln!(out, "{}: nothing to load", plain(&input.to_string()))?;
            continue;
        }
        writeln!(out, "{}", plain(&input.to_string()))?;
        for gpu in gpus {
            let mine = verdicts.verdicts.iter().filter(|v| v.gpu == *gpu);
            write_gpu(*gpu, &mine.collect::<Vec<_>>(), is_bad, name_kernels, out)?;
        }
        let mut beside = Vec::new();
        if verdicts.empty > 0 {
            beside.push(format!(
                "{} without kernels",
                count(verdicts.empty, "container")
            ));
        }
        if verdicts.linked_in > 0 {
            beside.push(format!(
                "{} of relocatable code, already linked",
                count(verdicts.linked_in, "container")
            ));
        }
        if !beside.is_empty() {
            writeln!(out, "  not counted: {}", beside.join(", "))?;
        }
    }
    Ok(())
}

fn write_gpu(
    gpu: Gpu,
    verdicts: &[&Verdict],
    is_bad: &dyn Fn(Gpu, LoadOutcome) -> bool,
    name_kernels: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let bad = verdicts.iter().any(|v| is_bad(gpu, v.outcome));
    let answer = if bad { "NOT AS ASKED" } else { "ok" };
    let outcomes = [
        (LoadOutcome::Run, "run"),
        (LoadOutcome::Jit, "JIT"),
        (LoadOutcome::JitLink, "JIT link"),
        (LoadOutcome::NotLinked, "not linked"),
        (LoadOutcome::Fail, "fail"),
    ];
    let sums = outcomes.iter().filter_map(|(outcome, name)| {
        let number = verdicts.iter().filter(|v| v.outcome == *outcome).count();
        (number > 0).then(|| format!("{number} {name}"))
    });
    let sums: Vec<String> = sums.collect();
    writeln!(
        out,
        "  {gpu:<8} {answer}: {}, of {}",
        sums.join(", "),
        count(verdicts.len(), "container")
    )?;
    for (outcome, name) in outcomes {
        // Containers that run need no explanation.
        if outcome == LoadOutcome::Run && !name_kernels {
            continue;
        }
        // Most containers of a library have the same images: they share a line.
        let mut groups: BTreeMap<&str, Vec<&Verdict>> = BTreeMap::new();
        for verdict in verdicts.iter().filter(|v| v.outcome == outcome) {
            groups.entry(&verdict.why).or_default().push(verdict);
        }
        for group in groups.values() {
            write_group(name, group, name_kernels, out)?;
        }
    }
    Ok(())
}

fn write_group(
    name: &str,
    group: &[&Verdict],
    name_kernels: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(first) = group.first() else {
        return Ok(());
    };
    let error = match (first.error, first.error_name, first.outcome) {
        (Some(number), Some(name), LoadOutcome::Fail) => format!(", {name} ({number})"),
        _ => String::new(),
    };
    let kernels = group.iter().map(|v| v.kernels.len()).sum();
    writeln!(
        out,
        "    {name}: {}, {}{error}: {}",
        count(group.len(), "container"),
        count(kernels, "kernel"),
        first.why
    )?;
    let places = group.iter().take(NAMED).map(|v| match &v.member {
        Some(member) => format!("{} ({})", v.container, plain(member)),
        None => v.container.to_string(),
    });
    let mut places = places.collect::<Vec<_>>().join(", ");
    if group.len() > NAMED {
        places += ", …";
    }
    writeln!(out, "      containers {places}")?;
    for verdict in group {
        if name_kernels {
            for kernel in &verdict.kernels {
                writeln!(out, "      {}", plain(kernel))?;
            }
        }
        if let Some(missing) = verdict.missing.first() {
            writeln!(
                out,
                "      container {}: other images have {} that this one lacks, such as {}",
                verdict.container,
                count(verdict.missing.len(), "kernel"),
                plain(missing)
            )?;
        }
    }
    Ok(())
}
