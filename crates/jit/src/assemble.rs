//! Assembles PTX with `ptxas`: several texts at a time, each with a time limit.

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde::Serialize;
use warpcc_fatbin::{Arch, Image, ReadLimits};

use crate::demand::CompileCause;
use crate::process;
use crate::ptxas::Ptxas;

/// One text for one architecture.
#[derive(Debug, Clone, Copy)]
pub struct AssembleJob<'f> {
    /// The PTX.
    pub image: &'f Image<'f>,
    /// The architecture.
    pub target: Arch,
    /// Relocatable code may have names that another text resolves.
    pub used: CompileCause,
}

/// The size and the cost of machine code that `ptxas` made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AssemblyCost {
    /// The machine code, in bytes.
    pub cubin_bytes: u64,
    /// Seconds of processors.
    pub seconds: f64,
}

/// The result of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Assembled {
    /// It can be assembled.
    Made(AssemblyCost),
    /// `ptxas` refuses it; its words.
    Refused(String),
    /// It took too long, crashed, or could not be run, so nothing is known about the PTX.
    Unknown(String),
}

/// Options in a PTX image that change what is made of it. No others are passed on: they come from
/// the file, and could name files to write.
const FLAGS: [&str; 9] = [
    "-g",
    "--device-debug",
    "--dont-merge-basicblocks",
    "--return-at-end",
    "--generate-line-info",
    "-lineinfo",
    "--suppress-debug-info",
    "--disable-optimizer-constants",
    "--compile-only",
];

/// Such options with a number, in one word or two.
const NUMBERED: [&str; 6] = [
    "-O",
    "--opt-level",
    "--maxrregcount",
    "-maxrregcount",
    "--register-usage-level",
    "--fmad",
];

/// The options that are passed on, of those that an image has.
fn passed(options: &str) -> Vec<String> {
    let mut words = options.split_whitespace().peekable();
    let mut passed = Vec::new();
    while let Some(word) = words.next() {
        if FLAGS.contains(&word) {
            passed.push(word.to_owned());
            continue;
        }
        let is_value = |value: &str| {
            !value.is_empty()
                && value
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        };
        let joined = NUMBERED.iter().find_map(|name| {
            let rest = word.strip_prefix(name)?;
            Some(rest.strip_prefix('=').unwrap_or(rest))
        });
        if joined.is_some_and(is_value) {
            passed.push(word.to_owned());
        } else if NUMBERED.contains(&word)
            && let Some(value) = words.next_if(|value| is_value(value))
        {
            passed.extend([word.to_owned(), value.to_owned()]);
        }
    }
    passed
}

/// Runs all jobs, `at_once` at a time. The results have the order of the jobs.
///
/// # Errors
/// There is no folder for temporary files.
pub fn assemble(
    ptxas: &Ptxas,
    jobs: &[AssembleJob<'_>],
    at_once: NonZeroUsize,
    longest: Duration,
    limits: &ReadLimits,
) -> io::Result<Vec<Assembled>> {
    let folder = tempfile::tempdir()?;
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Assembled)>> = Mutex::new(Vec::with_capacity(jobs.len()));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(number) else { return };
            let answer = one(ptxas, job, folder.path(), number, longest, limits)
                .unwrap_or_else(|error| Assembled::Unknown(format!("ptxas: {error}")));
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push((number, answer));
        }
    };
    thread::scope(|scope| {
        for _ in 1..at_once.get().min(jobs.len()) {
            // If a thread cannot be started, the others do its work.
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, answer)| answer).collect())
}

fn one(
    ptxas: &Ptxas,
    job: &AssembleJob<'_>,
    folder: &Path,
    number: usize,
    longest: Duration,
    limits: &ReadLimits,
) -> io::Result<Assembled> {
    let payload = match job.image.payload(limits) {
        Ok(payload) => payload,
        Err(flaw) => return Ok(Assembled::Unknown(flaw.to_string())),
    };
    let text = format!("{number}.ptx");
    let made = folder.join(format!("{number}.cubin"));
    fs::write(folder.join(&text), &payload)?;
    let mut command = Command::new(&ptxas.program);
    command
        .current_dir(folder)
        .arg(format!("-arch=sm_{}", job.target))
        .args(passed(job.image.options.as_deref().unwrap_or_default()))
        .args([&text, "-o"])
        .arg(&made);
    if job.used == CompileCause::Link {
        command.arg("-c");
    }
    let ended = process::run(&mut command, &folder.join(format!("{number}.log")), longest)?;
    let size = fs::metadata(&made).map(|meta| meta.len());
    for file in [&text, &format!("{number}.cubin"), &format!("{number}.log")] {
        // Gone with the folder at the latest.
        drop(fs::remove_file(folder.join(file)));
    }
    // The name of our temporary file is of no use to the user.
    let said = ended.said.replace(&text, "PTX");
    Ok(match (ended.status, size) {
        (None, _) => Assembled::Unknown(format!("ptxas was stopped after {} s", longest.as_secs())),
        (Some(status), Ok(cubin_bytes)) if status.success() => Assembled::Made(AssemblyCost {
            cubin_bytes,
            seconds: ended.seconds,
        }),
        (Some(status), _) if status.code().is_some() && !said.trim().is_empty() => {
            Assembled::Refused(said)
        }
        (Some(status), _) => Assembled::Unknown(format!("ptxas ended with {status}: {said}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_options_are_passed_on() {
        let words = |text: &str| passed(text).join(" ");
        assert_eq!(
            words(" -g --dont-merge-basicblocks --return-at-end "),
            "-g --dont-merge-basicblocks --return-at-end"
        );
        assert_eq!(
            words("-O1 --maxrregcount=32 -O 3"),
            "-O1 --maxrregcount=32 -O 3"
        );
        assert_eq!(words("-maxrregcount 32"), "-maxrregcount 32");
        for hostile in [
            "-o /etc/passwd",
            "--options-file x",
            "-O/../x",
            "--maxrregcount -o",
            "--output-file=/x",
            "-O",
        ] {
            assert_eq!(words(hostile), "", "{hostile}");
        }
    }
}
