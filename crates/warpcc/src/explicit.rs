//! `warpcc run`: builds like the launcher, and gives an account of it.

use std::time::{Duration, Instant};

use anyhow::bail;
use warpcc_cache::Upstream;
use warpcc_engine::{Executor, Outcome};
use warpcc_plan::{Step, Unsupported};
use warpcc_remote::Shared;

use crate::account::Account;
use crate::build::{self, Built, Manner};
use crate::cli::{self, GraphFormat, RunArgs};
use crate::cluster::Elsewhere;
use crate::commands::{find_nvcc, write_file};
use crate::config::Config;
use crate::direct::Served;
use crate::launch::log_build;
use crate::launch::{Left, Surroundings, open_store};
use crate::log::Log;
use crate::machine::Lineage;
use crate::report::progress::Progress;
use crate::report::timeline::{FileRole, FileRow, Run, TaskOutcome, TaskRow};
use crate::report::{self, table, trace, verbose};
use crate::request::{DOMAIN, Request};
use crate::scratch::{Naming, Scratch, Wanted};
use crate::signals::Interrupt;
use crate::{direct, fallback, history, machine};

/// Builds what the arguments ask for; gives nvcc's exit code.
///
/// # Errors
/// No nvcc, or a report that cannot be written.
pub fn run(args: &RunArgs, config: &Config, around: Surroundings) -> anyhow::Result<i32> {
    let (named, rest) = cli::split_compiler(&args.args);
    let nvcc = find_nvcc(args.nvcc.as_deref().or(named), config, &around)?;
    let store = if args.no_cache {
        None
    } else {
        open_store(config)
    };
    let lineage = Lineage::find(config);
    let ledger = Account::new(&nvcc, rest, &around, store.as_ref(), config, &lineage);
    let log = Log::new(config.log.value.clone());
    let run_alone = |why: &Left| {
        crate::log::warn(&format!("no account of this: nvcc runs alone ({why})"));
        why.count_and_make_room(&ledger, &log);
        fallback::become_compiler(&nvcc, rest, &around.ourselves)
    };
    let request = match Request::new(
        nvcc.clone(),
        rest,
        around.directory.clone(),
        around.environment.clone(),
        &config.base_dir.value,
    ) {
        Ok(request) => match request.invocation.plain {
            None => request,
            Some(reason) => bail!(run_alone(&Left::Plain(reason))),
        },
        Err(why) => bail!(run_alone(&Left::Unsupported(why))),
    };
    if let Some(store) = &store {
        store.relocate(&request.roots);
    }
    let listing = request.listing();
    let key = listing.key(DOMAIN);
    let account_asked = args.graph.is_some()
        || args.save.is_some()
        || [&args.table, &args.verbose, &args.trace]
            .iter()
            .any(|p| p.is_some());
    let mut difference = None;
    if !account_asked
        && !config.recache.value
        && let Some(store) = &store
    {
        match direct::serve(store, &request, &key) {
            Ok(Served::Hit(micros)) => {
                ledger.direct_hit(&request, micros);
                return Ok(0);
            }
            Ok(Served::Miss(first)) => difference = first,
            Ok(Served::NotOurs(why)) => bail!(run_alone(&Left::Unsupported(why))),
            Err(_) => {}
        }
    }
    let admission = machine::admission(config, &lineage, &request, store.as_ref(), &log);
    let interrupt = Interrupt::watch(config.stall_timeout.value);
    let wanted = Wanted {
        temporary: &request.temporary(),
        name: &key.hex()[..16],
        naming: Naming::with_debug(request.invocation.debug),
    };
    let scratch = match Scratch::open(&wanted, &interrupt.scratch, &log) {
        Ok((scratch, _)) => scratch,
        Err(error) => {
            let why = Unsupported::new(error.reason(), error.to_string());
            bail!(run_alone(&Left::Unsupported(why)));
        }
    };
    let layers = config.layers();
    let shared = store.as_ref().filter(|_| !layers.is_empty());
    let shared = shared.map(|store| Shared::new(&layers, store.root(), crate::log::warn));
    let progress = args.progress.then(Progress::on_terminal).flatten();
    let elsewhere = Elsewhere::of(config, store.as_ref());
    let manner = Manner {
        progress: progress.as_ref(),
        store: store.as_ref(),
        reads_cache: !config.recache.value,
        writes_cache: store.is_some() && !config.readonly.value,
        upstream: shared.as_ref().map(|shared| shared as &dyn Upstream),
        key,
        jobs: args.jobs.unwrap_or_else(|| config.job_limit()).get(),
        admission: &admission,
        executor: elsewhere.as_ref().map(|cluster| cluster as &dyn Executor),
        sequential: args.sequential,
        faithful: args.faithful,
        save: args.save.as_deref(),
        onlooker: None,
        started: around.started,
        ourselves: &around.ourselves,
    };
    let clock = Instant::now();
    let built = match build::build(&request, &manner, &scratch, &interrupt) {
        Ok(built) => built,
        Err(why) => {
            drop(scratch);
            bail!(run_alone(&Left::Unsupported(why)));
        }
    };
    drop(progress);
    if shared.as_ref().is_some_and(Shared::needs_uploader) {
        history::upload_in_background(&around.ourselves[0]);
    }
    log_build(&log, &built);
    let account = account(&request, &built, clock.elapsed());
    drop(scratch);
    ledger.built(&request, &listing, &built, difference.as_ref());
    if let Some(graph) = &args.graph {
        write_file(&graph.path, |out| match graph.format {
            GraphFormat::Dot => report::write_dot(&account, out),
            GraphFormat::Svg => report::write_svg(&account, out),
            GraphFormat::Png => report::write_png(&account, out),
        })?;
    }
    for (path, write) in [
        (
            &args.table,
            table::write as fn(&Run, &mut dyn std::io::Write) -> std::io::Result<()>,
        ),
        (&args.verbose, verbose::write),
        (&args.trace, trace::write),
    ] {
        if let Some(path) = path {
            write_file(path, |out| write(&account, out))?;
        }
    }
    Ok(built.code)
}

/// The engine's run as the reports want it.
pub fn account(request: &Request, built: &Built, wall: Duration) -> Run {
    let graph = &built.graph;
    let size_of = |id: usize| {
        built
            .run
            .tasks
            .iter()
            .flat_map(|t| &t.files)
            .find(|(file, _)| *file == id)
            .and_then(|(_, size)| *size)
            .or_else(|| {
                std::fs::metadata(request.absolute(&graph.files[id].path))
                    .ok()
                    .map(|m| m.len())
            })
    };
    let rows = built
        .run
        .tasks
        .iter()
        .map(|task| {
            let step: &Step = &graph.steps[task.step];
            let file = |id: &warpcc_plan::FileId, role| FileRow {
                name: graph.file(*id).name().to_owned(),
                size: size_of(id.0 as usize),
                role,
            };
            let mut files: Vec<FileRow> = step
                .reads
                .iter()
                .map(|id| file(id, FileRole::Reads))
                .collect();
            files.extend(step.writes.iter().map(|id| file(id, FileRole::Writes)));
            let why_edges = step
                .reads
                .iter()
                .filter_map(|id| Some((graph.file(*id).writer?, graph.file(*id).name().to_owned())))
                .collect();
            TaskRow {
                number: task.step,
                tool: step.tool.name().to_owned(),
                arch: step.arch.clone(),
                label: step
                    .writes
                    .first()
                    .map_or(String::new(), |id| graph.file(*id).name().to_owned()),
                command: step.raw.clone(),
                started: task.started,
                finished: task.finished,
                user: task.user,
                system: task.system,
                peak_kib: task.peak_kib,
                outcome: match task.outcome {
                    Outcome::Ran => TaskOutcome::Ran,
                    Outcome::Hit => TaskOutcome::Hit,
                    Outcome::Skipped => TaskOutcome::Skipped,
                    Outcome::Failed(code) => TaskOutcome::Failed(code),
                },
                files,
                needs: graph.needs(task.step).to_vec(),
                why_edges,
            }
        })
        .collect();
    Run {
        title: request.invocation.inputs.join(" "),
        rows,
        environment: built.graph.environment.clone(),
        wall,
    }
}
