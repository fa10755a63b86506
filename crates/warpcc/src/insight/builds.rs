//! `warpcc report`: which build is meant, and in which forms it is written.

use anyhow::{Context, bail};
use warpcc_report::{Build, History, Summary};

use super::ReportArgs;
use crate::commands::write_file;
use crate::report;

/// Writes what `args` ask for.
///
/// # Errors
/// No such build, or a file that cannot be written.
pub fn report(args: &ReportArgs, history: &History) -> anyhow::Result<()> {
    if args.list {
        let builds = history.builds()?;
        report::print(|out| match args.json {
            true => report::build::write_list_json(&builds, out),
            false => report::build::write_list(&builds, out),
        })?;
        return Ok(());
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
            report::build::places(found.damage.places)
        ));
    }
    let build = Build::new(found.records);
    let summary = Summary::of(&build);
    if let Some(path) = &args.output {
        write_file(path, |out| {
            warpcc_report::page::write(&build, &summary, out)
        })?;
    }
    if let Some(path) = &args.trace {
        write_file(path, |out| warpcc_report::trace::write(&build, out))?;
    }
    if args.json {
        report::print(|out| warpcc_report::json::write(&build, &summary, out))?;
    } else if args.output.is_none() && args.trace.is_none() {
        report::print(|out| report::build::write_text(&summary, out))?;
    }
    Ok(())
}
