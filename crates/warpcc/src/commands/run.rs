//! `warpcc run`: builds like the launcher, and writes reports on the commands that ran.

mod args;
mod table;
mod trace;
mod verbose;

use anyhow::bail;

pub use args::{GraphFormat, RunArgs};

use super::build_timeline::timeline_of;
use super::graph;
use super::nvcc::{find_nvcc, refuse_other_programs, split_compiler};
use super::output::write_file;
use super::timeline::Run;
use crate::call_record::CallRecorder;
use crate::config::Config;
use crate::fallback;
use crate::log::Log;
use crate::process_context::ProcessContext;
use crate::progress::Progress;
use crate::resources::CallId;
use crate::session::{Call, CallOptions, Session};
use crate::store::open_store;

/// Builds what the arguments ask for; gives nvcc's exit code.
///
/// # Errors
/// No nvcc, or a report that cannot be written.
pub fn run(args: &RunArgs, config: &Config, context: ProcessContext) -> anyhow::Result<i32> {
    refuse_other_programs(&args.args, &context)?;
    let (named, rest) = split_compiler(&args.args);
    let nvcc = find_nvcc(args.nvcc.as_deref().or(named), config, &context)?;
    let store = if args.no_cache {
        None
    } else {
        open_store(config)
    };
    let call_id = CallId::find(config);
    let recorder = CallRecorder::new(&nvcc, rest, &context, store.as_ref(), config, &call_id);
    let log = Log::new(config.log.value.clone());
    let call = Call {
        context: &context,
        recorder: &recorder,
        log: &log,
    };
    let progress = args.progress.then(Progress::on_terminal).flatten();
    let mut timeline = None;
    let code = Session::prepare(&nvcc, rest, &config.base_dir.value, call).and_then(|session| {
        let call_options = CallOptions {
            // A direct hit runs no command that could be shown.
            looks_up: !wants_reports(args),
            jobs: args.jobs,
            sequential: args.sequential,
            faithful: args.faithful,
            save: args.save.as_deref(),
            progress: progress.as_ref(),
            ..CallOptions::for_launcher()
        };
        session.complete(&call_options, |request, (built, wall)| {
            timeline = Some(timeline_of(request, built, wall));
        })
    });
    drop(progress);
    let code = match code {
        Ok(code) => code,
        Err(bypass) => {
            let lost = match wants_reports(args) {
                true => ", so nothing is recorded or written about its steps",
                false => "",
            };
            crate::log::warn(&format!("nvcc runs without warpcc{lost}: {bypass}"));
            bypass.count_and_make_room(&recorder, &log);
            bail!(fallback::become_compiler(&nvcc, rest, &context.ourselves));
        }
    };
    if let Some(timeline) = timeline {
        write_reports(args, &timeline)?;
    }
    Ok(code)
}

/// Whether a report is asked for that needs a build.
fn wants_reports(args: &RunArgs) -> bool {
    let files = [&args.table, &args.verbose, &args.trace, &args.save];
    args.graph.is_some() || files.iter().any(|path| path.is_some())
}

fn write_reports(args: &RunArgs, timeline: &Run) -> anyhow::Result<()> {
    if let Some(graph) = &args.graph {
        write_file(&graph.path, |out| match graph.format {
            GraphFormat::Dot => graph::write_dot(timeline, out),
            GraphFormat::Svg => graph::write_svg(timeline, out),
            GraphFormat::Png => graph::write_png(timeline, out),
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

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
