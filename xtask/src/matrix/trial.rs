//! Tries one row: its cases, some at a time, each judged as soak judges a history.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result};

use super::corpus::Case;
use super::hosts::Compiler;
use super::rows::{Difference, MatrixRow};
use crate::process;
use crate::soak::judge::{self, Compared, Verdict};
use crate::soak::space::{Space, Tools};

/// Tries all cases and counts into `row`.
pub fn run(
    row: &mut MatrixRow,
    cases: &[Case],
    top: &Path,
    host: &Compiler,
    warpcc: &Path,
    jobs: usize,
) -> Result<()> {
    let began = Instant::now();
    let root = tempfile::Builder::new()
        .prefix("warpcc-matrix-")
        .tempdir()
        .context("failed to create a folder")?;
    if !is_taken(top, host, root.path())? {
        row.refused = true;
        return Ok(());
    }
    let next = AtomicUsize::new(0);
    let counted = Mutex::new((row, Ok(())));
    std::thread::scope(|threads| {
        for job in 0..jobs.max(1) {
            let (next, counted) = (&next, &counted);
            let root = root.path().join(job.to_string());
            threads.spawn(move || {
                let done = work(cases, next, top, warpcc, &root, counted);
                if done.is_err() {
                    counted.lock().unwrap_or_else(PoisonError::into_inner).1 = done;
                }
            });
        }
    });
    let (row, done) = counted.into_inner().unwrap_or_else(PoisonError::into_inner);
    done?;
    row.differences.sort_by(|a, b| a.case.cmp(&b.case));
    row.seconds = began.elapsed().as_secs();
    Ok(())
}

fn work(
    cases: &[Case],
    next: &AtomicUsize,
    top: &Path,
    warpcc: &Path,
    root: &Path,
    counted: &Mutex<(&mut MatrixRow, Result<()>)>,
) -> Result<()> {
    let mut space = Space::new(root, Tools::Real(vec![top.to_owned()]), warpcc.to_owned())?;
    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
        let verdict = judge::judge(&mut space, &case.history, Compared::Every);
        let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
        match verdict {
            Ok(verdict) => count(counted.0, case, &verdict),
            Err(error) => {
                space.clear();
                return Err(error).with_context(|| case.name.clone());
            }
        }
    }
    space.clear();
    Ok(())
}

fn count(row: &mut MatrixRow, case: &Case, verdict: &Verdict) {
    row.cases += 1;
    row.calls += verdict.calls;
    row.failing += verdict.failing;
    row.identical += verdict.calls - u64::from(verdict.wrong.is_some());
    for line in &verdict.log {
        row.hits += u64::from(line == "direct hit");
        let why = line
            .strip_prefix("running nvcc: ")
            .or_else(|| line.strip_prefix("nothing to cache: "));
        if let Some(why) = why {
            let reason = why.split(": ").next().unwrap_or(why).to_owned();
            *row.bypassed.entry(reason).or_default() += 1;
        }
    }
    if let Some((at, found)) = &verdict.wrong {
        let call = case.history.0[*at].to_string();
        println!("  {}: {call}\n    {}", case.name, found.join("\n    "));
        row.differences.push(Difference {
            case: case.name.clone(),
            call,
            what: found.clone(),
        });
    }
}

/// Whether nvcc compiles an empty kernel with this compiler.
fn is_taken(top: &Path, host: &Compiler, folder: &Path) -> Result<bool> {
    let source = folder.join("probe.cu");
    std::fs::write(&source, "__global__ void k() {}\n")?;
    let mut nvcc = Command::new(top.join("bin/nvcc"));
    nvcc.args(&host.words)
        .args(["-c", "probe.cu", "-o", "probe.o"])
        .current_dir(folder);
    if let Some(front) = &host.in_front {
        nvcc.env("PATH", format!("{front}:/usr/bin:/bin"));
    }
    Ok(process::succeeds(&mut nvcc))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak::history::History;

    #[test]
    fn log_lines_are_counted() {
        let case = Case {
            name: "case x".to_owned(),
            history: History::parse("call -c a.cu\ncall -E a.cu\n").expect("two calls"),
        };
        let log = [
            "direct hit",
            "running nvcc: shell syntax: $x",
            "nothing to cache: -E",
        ];
        let verdict = Verdict {
            wrong: Some((1, vec!["a.o: bytes differ".to_owned()])),
            calls: 2,
            log: log.map(str::to_owned).to_vec(),
            ..Verdict::default()
        };
        let mut row = MatrixRow::default();
        count(&mut row, &case, &verdict);
        assert_eq!((row.calls, row.identical, row.hits), (2, 1, 1));
        assert_eq!(row.bypassed.get("shell syntax"), Some(&1));
        assert_eq!(row.bypassed.get("-E"), Some(&1));
        assert_eq!(row.differences[0].call, "call -E a.cu");
    }
}
