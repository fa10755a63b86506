//! What `warpcc fatbin check` says: first the answer, then what it rests on.

use std::io::{self, Write};

use warpcc_fatbin::{Gpu, Input, Outcome, Verdict, Verdicts};

use super::{count, plain};

/// Containers that are named for each GPU and outcome; `--json` has them all.
const NAMED: usize = 12;

/// Writes an array with an object for each container and GPU.
pub fn write_json(files: &[(&Input, &Verdicts)], out: &mut dyn Write) -> io::Result<()> {
    let all: Vec<&Verdict> = files.iter().flat_map(|(_, v)| &v.verdicts).collect();
    serde_json::to_writer_pretty(&mut *out, &all)?;
    writeln!(out)
}

/// Writes, for each file and GPU, what will happen.
pub fn write(
    files: &[(&Input, &Verdicts)],
    gpus: &[Gpu],
    is_bad: &dyn Fn(Gpu, Outcome) -> bool,
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
                "{} of relocatable code, linked already",
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
    is_bad: &dyn Fn(Gpu, Outcome) -> bool,
    name_kernels: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let bad = verdicts.iter().any(|v| is_bad(gpu, v.outcome));
    let answer = if bad { "NOT AS ASKED" } else { "ok" };
    let outcomes = [
        (Outcome::Run, "run"),
        (Outcome::Jit, "JIT"),
        (Outcome::JitLink, "JIT link"),
        (Outcome::NotLinked, "not linked"),
        (Outcome::Fail, "fail"),
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
        // What runs needs no explanation.
        if outcome == Outcome::Run && !name_kernels {
            continue;
        }
        let mine: Vec<_> = verdicts.iter().filter(|v| v.outcome == outcome).collect();
        for verdict in mine.iter().take(NAMED) {
            write_verdict(name, verdict, name_kernels, out)?;
        }
        if let Some(more @ 1..) = mine.len().checked_sub(NAMED) {
            writeln!(out, "    and {} more: {name}", count(more, "container"))?;
        }
    }
    Ok(())
}

fn write_verdict(
    name: &str,
    verdict: &Verdict,
    name_kernels: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let member = verdict
        .member
        .as_deref()
        .map(|m| format!(" ({})", plain(m)));
    let error = match (verdict.error, verdict.error_name) {
        (Some(number), Some(name)) => format!(", {name} ({number})"),
        _ => String::new(),
    };
    writeln!(
        out,
        "    {name}: container {}{}, {}{error}: {}",
        verdict.container,
        member.unwrap_or_default(),
        count(verdict.kernels.len(), "kernel"),
        verdict.why
    )?;
    if name_kernels {
        for kernel in &verdict.kernels {
            writeln!(out, "      {}", plain(kernel))?;
        }
    }
    if !verdict.missing.is_empty() {
        writeln!(
            out,
            "      the other images have {} that this one lacks, such as {}",
            count(verdict.missing.len(), "kernel"),
            plain(&verdict.missing[0])
        )?;
    }
    Ok(())
}
