//! Asks the real cicc what its PTX depends on (docs/design/early-cutoff.md).
//!
//! Random CUDA sources, and real files, are edited at random and compiled: by cicc as nvcc starts it, and by its two
//! halves, the front end (source to NVVM bitcode) and libNVVM (bitcode to PTX). Three claims are tried: the halves write
//! what the whole writes; equal bitcode makes equal PTX; equal device text (`.gpu`) makes equal PTX.

mod claim;
mod commands;
mod compile;
mod edits;
mod figures;
mod invent;
mod items;
mod real_files;
mod source;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::soak::random::Random;
use claim::Claim;
use commands::CompileCommands;
use compile::{CompileOutcome, Compiled};
use figures::AuditFigures;
use source::{Base, Edit};

/// What to try, and for how long.
#[derive(Args)]
pub struct AuditOptions {
    /// How long to run
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// The seed of the first source; each further source has the next number
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The nvcc whose cicc is tried
    #[arg(long)]
    nvcc: PathBuf,
    /// A list of real files to use in place of random ones; each line has a path and options of nvcc
    #[arg(long)]
    files: Option<PathBuf>,
    /// How many sources to compile at once
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// How many edits of each source to try
    #[arg(long, default_value_t = 9)]
    edits: usize,
    /// The folder for counterexamples and figures
    #[arg(long, default_value = "target/audit-ptx")]
    out: PathBuf,
}

/// Runs the audit.
pub fn main(options: &AuditOptions) -> Result<()> {
    fs::create_dir_all(&options.out)?;
    let nvcc = options.nvcc.canonicalize();
    let nvcc = nvcc.with_context(|| format!("failed to find {}", options.nvcc.display()))?;
    let listed = match &options.files {
        Some(list) => real_files::read_list(list)?,
        None => Vec::new(),
    };
    let end = Instant::now() + Duration::from_secs_f64(options.minutes * 60.0);
    let next = AtomicU64::new(options.seed);
    let all = Mutex::new(AuditFigures::default());
    std::thread::scope(|scope| -> Result<()> {
        let work = || -> Result<()> {
            let dir = tempfile::tempdir()?;
            while Instant::now() < end {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                let mut random = Random::new(seed);
                let base = match &options.files {
                    Some(_) => real_files::open(&listed, seed)?,
                    None => invent::invent(seed, &mut random),
                };
                let place = AuditFolder {
                    nvcc: &nvcc,
                    dir: dir.path(),
                    end,
                };
                let figures = audit(options, &place, base, &mut random)?;
                let mut all = all.lock().unwrap_or_else(|e| e.into_inner());
                all.add(figures);
            }
            Ok(())
        };
        let workers: Vec<_> = (0..options.jobs.max(1))
            .map(|_| scope.spawn(work))
            .collect();
        for worker in workers {
            match worker.join() {
                Ok(done) => done?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(())
    })?;
    let figures = all.into_inner().unwrap_or_else(|e| e.into_inner());
    figures.print();
    fs::write(options.out.join("figures.json"), figures.json()?)?;
    match figures.broken(Claim::Halves) + figures.broken(Claim::Bitcode) {
        0 => Ok(()),
        broken => bail!("{broken} counterexamples; see {}", options.out.display()),
    }
}

/// Where sources are compiled, and until when.
struct AuditFolder<'a> {
    nvcc: &'a Path,
    dir: &'a Path,
    end: Instant,
}

/// Compiles a source and its edits in one folder, whose name is in the bitcode, and compares each with those before.
fn audit(
    options: &AuditOptions,
    place: &AuditFolder<'_>,
    mut base: Base,
    random: &mut Random,
) -> Result<AuditFigures> {
    let AuditFolder { nvcc, dir, end } = *place;
    let mut figures = AuditFigures::default();
    let Some(commands) = CompileCommands::ask(nvcc, dir, &base.options)? else {
        figures.refused += 1;
        return Ok(figures);
    };
    let mut earlier: Vec<Compiled> = Vec::new();
    compile::begin(dir);
    for round in 0..=options.edits {
        if Instant::now() > end {
            break;
        }
        let edit = match round {
            0 => Edit::NONE,
            _ => base.source.edit(random),
        };
        let text = base.source.text();
        let compiled = match compile::compile(&commands, dir, text)? {
            CompileOutcome::Made(compiled) => compiled,
            CompileOutcome::Refused(why) => {
                figures.refused += 1;
                if round == 0 {
                    fs::write(
                        options.out.join("refused.txt"),
                        format!("{}\n{why}", base.name),
                    )?;
                    return Ok(figures);
                }
                continue;
            }
        };
        figures.take(&commands, edit, &compiled, &earlier);
        for (claim, other) in compiled.contradicts(&commands, &earlier) {
            let name = format!("{}-{}-{round}", claim.name(), base.name);
            figures.saved.push(name.clone());
            compiled.save(&options.out.join(name), &base.options, edit, other)?;
        }
        earlier.push(compiled);
    }
    Ok(figures)
}
