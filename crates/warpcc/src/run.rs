//! `warpcc run`: builds like the launcher, and gives an account of it.

use std::time::Duration;

use anyhow::bail;
use warpcc_engine::Outcome;
use warpcc_plan::Step;

use crate::build::Built;
use crate::call_record::Account;
use crate::cli::{self, GraphFormat, RunArgs};
use crate::commands::{find_nvcc, write_file};
use crate::config::Config;
use crate::fallback;
use crate::launch::{ProcessContext, open_store};
use crate::log::Log;
use crate::report::progress::Progress;
use crate::report::timeline::{FileRole, FileRow, Run, TaskOutcome, TaskRow};
use crate::report::{self, table, trace, verbose};
use crate::request::Request;
use crate::resources::Lineage;
use crate::session::{Call, Session, Wishes};

/// Builds what the arguments ask for; gives nvcc's exit code.
///
/// # Errors
/// No nvcc, or a report that cannot be written.
pub fn run(args: &RunArgs, config: &Config, around: ProcessContext) -> anyhow::Result<i32> {
    let (named, rest) = cli::split_compiler(&args.args);
    let nvcc = find_nvcc(args.nvcc.as_deref().or(named), config, &around)?;
    let store = if args.no_cache {
        None
    } else {
        open_store(config)
    };
    let lineage = Lineage::find(config);
    let account = Account::new(&nvcc, rest, &around, store.as_ref(), config, &lineage);
    let log = Log::new(config.log.value.clone());
    let call = Call {
        around: &around,
        account: &account,
        log: &log,
    };
    let progress = args.progress.then(Progress::on_terminal).flatten();
    let mut timeline = None;
    let code = Session::prepare(&nvcc, rest, &config.base_dir.value, call).and_then(|session| {
        let wishes = Wishes {
            // A call that is answered as a whole has nothing to show.
            looks_up: !wants_reports(args),
            jobs: args.jobs,
            sequential: args.sequential,
            faithful: args.faithful,
            save: args.save.as_deref(),
            progress: progress.as_ref(),
            ..Wishes::of_launcher()
        };
        session.complete(&wishes, |request, (built, wall)| {
            timeline = Some(timeline_of(request, built, wall));
        })
    });
    drop(progress);
    let code = match code {
        Ok(code) => code,
        Err(bypass) => {
            crate::log::warn(&format!(
                "no record of this call: nvcc runs alone ({bypass})"
            ));
            bypass.count_and_make_room(&account, &log);
            bail!(fallback::become_compiler(&nvcc, rest, &around.ourselves));
        }
    };
    if let Some(timeline) = timeline {
        write_reports(args, &timeline)?;
    }
    Ok(code)
}

/// Whether anything is asked for that only a build can tell.
fn wants_reports(args: &RunArgs) -> bool {
    let files = [&args.table, &args.verbose, &args.trace, &args.save];
    args.graph.is_some() || files.iter().any(|path| path.is_some())
}

fn write_reports(args: &RunArgs, timeline: &Run) -> anyhow::Result<()> {
    if let Some(graph) = &args.graph {
        write_file(&graph.path, |out| match graph.format {
            GraphFormat::Dot => report::write_dot(timeline, out),
            GraphFormat::Svg => report::write_svg(timeline, out),
            GraphFormat::Png => report::write_png(timeline, out),
        })?;
    }
    type Write = fn(&Run, &mut dyn std::io::Write) -> std::io::Result<()>;
    for (path, write) in [
        (&args.table, table::write as Write),
        (&args.verbose, verbose::write),
        (&args.trace, trace::write),
    ] {
        if let Some(path) = path {
            write_file(path, |out| write(timeline, out))?;
        }
    }
    Ok(())
}

/// The engine's run as the reports want it.
pub fn timeline_of(request: &Request, built: &Built, wall: Duration) -> Run {
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
