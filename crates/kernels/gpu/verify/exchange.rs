//! The same checks for programs in other languages: cases as files, and a verdict on the outputs that they bring back.
//!
//! `--role export --out FOLDER` writes `cases` (a line for each: the function, the output's type, `write` or `add`, the
//! output's and each input's elements, type and offset in elements) and `data` (each case's inputs and what its output
//! holds before, one after another). A program appends each case's output to a file, and `--role judge --out FILE`, with the same
//! `--seed`, `--only` and `--every`, says which are right.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use warpcc_kernels::plan::WriteMode;

use crate::cases::{Case, POISON};
use crate::device::{BASE, Failure};

/// Every so manieth of those that can be asked for in a line.
fn simple(cases: &[Result<Case, String>], every: usize) -> impl Iterator<Item = &Case> {
    let simple = cases.iter().flatten().filter(|case| case.asks.is_some());
    simple.step_by(every)
}

/// Writes the cases into a folder.
pub fn export(
    cases: &[Result<Case, String>],
    every: usize,
    folder: &Path,
) -> Result<bool, Failure> {
    let (mut lines, mut data) = (String::new(), Vec::new());
    for case in simple(cases, every) {
        let Some(asks) = &case.asks else { continue };
        let (at, bytes) = case.output;
        let off = |address: u64, size: u64| (address - BASE) % 512 / size;
        let request = match asks.request {
            WriteMode::Write => "write",
            WriteMode::Add => "add",
        };
        let output = asks.output;
        let _ = write!(
            lines,
            "{} {request} {} {output} {}",
            asks.function,
            bytes / output.size(),
            off(at, output.size())
        );
        for ((address, input), dtype) in case.inputs.iter().zip(&asks.types) {
            let _ = write!(lines, " {dtype} {}", off(*address, dtype.size()));
            data.extend_from_slice(input);
        }
        lines.push('\n');
        match &case.before {
            Some(before) => data.extend_from_slice(before),
            None => data.resize(data.len() + bytes as usize, POISON),
        }
    }
    let in_folder = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(in_folder)?;
    fs::write(folder.join("cases"), lines).map_err(in_folder)?;
    fs::write(folder.join("data"), data).map_err(in_folder)?;
    Ok(true)
}

/// Judges the outputs in a file.
pub fn judge(cases: &[Result<Case, String>], every: usize, file: &Path) -> Result<bool, Failure> {
    let results = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let (mut rest, mut checked, mut wrong) = (results.as_slice(), 0, 0);
    for case in simple(cases, every) {
        let bytes = case.output.1 as usize;
        let Some((output, others)) = rest.split_at_checked(bytes) else {
            return Err(format!("the file ends before the output of {}", case.label));
        };
        rest = others;
        checked += 1;
        if let Err(why) = (case.judge)(output) {
            wrong += 1;
            if wrong <= 25 {
                println!(
                    "WRONG {}: {}",
                    case.label,
                    why.chars().take(600).collect::<String>()
                );
            }
        }
    }
    println!("{}: {checked} checked, {wrong} wrong", file.display());
    Ok(wrong == 0 && checked > 0 && rest.is_empty())
}
