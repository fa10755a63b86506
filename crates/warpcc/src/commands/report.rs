//! `warpcc report`: which build to report, and in which form.

mod args;
mod device_trace;
mod print;

use anyhow::{Context, bail};
use warpcc_report::{Build, Summary};

pub use args::ReportArgs;

use super::output::{self, write_file};
use crate::call_record::records;
use crate::config::Config;
use crate::store::need_store;

/// Writes what `args` ask for; the exit code is 0.
///
/// # Errors
/// No cache, no such build, or a file that cannot be written.
pub fn run(args: &ReportArgs, config: &Config) -> anyhow::Result<i32> {
    let history = records(&need_store(config)?);
    if args.list {
        let builds = history.builds()?;
        output::print(|out| match args.json {
            true => print::write_list_json(&builds, out),
            false => print::write_list(&builds, out),
        })?;
        return Ok(0);
    }
    let found = match &args.build {
        Some(id) => history.build(id)?.with_context(|| {
            format!("no build {id:?} is recorded; `warpcc report --list` shows those that are")
        })?,
        None => match history.last()? {
            Some(found) => found,
            None => bail!("no build is recorded yet; compile something: warpcc nvcc -c x.cu"),
        },
    };
    if found.damage.is_notable() {
        crate::log::warn(&format!(
            "{} of the build's records could not be read: it is shown without them",
            print::places(found.damage.places)
        ));
    }
    let build = Build::new(found.records);
    let mut summary = Summary::compute(&build);
    if args.device_trace {
        let traces = device_trace::of_build(&build)?;
        if args.output.is_none() {
            output::print(|out| match args.json {
                true => device_trace::write_json(&traces, out),
                false => device_trace::write_text(&traces, out),
            })?;
            return Ok(0);
        }
        summary.device_traces = Some(traces);
    }
    if let Some(path) = &args.output {
        write_file(path, |out| {
            warpcc_report::page::write(&build, &summary, out)
        })?;
    }
    if let Some(path) = &args.trace {
        write_file(path, |out| warpcc_report::trace::write(&build, out))?;
    }
    if args.json {
        output::print(|out| warpcc_report::json::write(&build, &summary, out))?;
    } else if args.output.is_none() && args.trace.is_none() {
        output::print(|out| print::write_text(&summary, out))?;
    }
    Ok(0)
}
