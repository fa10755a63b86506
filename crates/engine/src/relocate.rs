//! Gives tools fixed names for folders whose real names do not count (docs/keys.md, Clones). The working directory gets
//! a name that is the same everywhere.
//!
//! The preprocessors read the real files. Their line markers are then renamed, so that cudafe++ and cicc know fixed
//! names alone. The host compiler gets the real names back, because it looks into the sources to show a line in a
//! message. Its output goes through its own [prefix maps](crate::prefix_map).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use warpcc_path_map::only_markers;
use warpcc_plan::{Part, Step, TaskGraph, Tool};

use crate::artifact::Artifacts;
use crate::context::RunContext;
use crate::options::RunOptions;

/// The directory in which a step runs. cicc and ptxas write their directory into debug information, and cicc into LTO and
/// OptiX code. Their arguments hold no relative path, so the directory can be one that is the same everywhere.
pub fn directory<'a>(step: &Step, artifacts: &Artifacts<'_>, options: &RunOptions<'a>) -> &'a Path {
    let absolute = |part: &Part| match part {
        Part::File(id) => artifacts.path(*id).is_absolute(),
        Part::Text(_) => true,
    };
    let all_absolute = || step.args.iter().flat_map(|arg| &arg.0).all(absolute);
    // Bitcode holds the directory, for messages only: with another one it would be another input of the next step.
    if step.is_front_end() && all_absolute() {
        return Path::new("/");
    }
    let debug = step.has_debug_information();
    let is_mapped = || options.work_dir().fixed_name().is_some();
    let may_move = match step.tool {
        Tool::Cicc => !debug || is_mapped(),
        Tool::Ptxas => debug && is_mapped(),
        _ => false,
    };
    if may_move && !options.path_map.is_empty() && all_absolute() {
        return Path::new("/");
    }
    options.directory
}

/// The path of the copy of a preprocessed text with the line markers that the preprocessor wrote.
pub fn markers_path(text: &Path) -> PathBuf {
    let mut name = text.as_os_str().to_owned();
    name.push(".markers");
    name.into()
}

/// Gives the files in a preprocessed text their fixed names. If line tables are requested, relative names become fixed ones
/// too, because cicc would make them absolute.
///
/// # Errors
/// The text cannot be read or written.
pub fn rename_preprocessed(
    path: &Path,
    graph: &TaskGraph,
    options: &RunOptions<'_>,
) -> io::Result<()> {
    let text = fs::read(path)?;
    if options.rule.is_some() {
        fs::write(markers_path(path), only_markers(&text))?;
    }
    let debug = graph.steps.iter().any(Step::has_debug_information);
    fs::write(path, options.work_dir().fix_markers(&text, debug))
}

/// Gives the files in cudafe++'s text their real names back.
///
/// # Errors
/// The text cannot be read or written.
fn restore_names(path: &Path, options: &RunOptions<'_>) -> io::Result<()> {
    let text = fs::read(path)?;
    fs::write(path, options.work_dir().real_markers(&text))
}

/// Before the host compiler runs, gives it the sources under their real names.
pub fn show_real_names(run: &RunContext<'_>, step: &Step) -> io::Result<()> {
    let compiles = matches!(step.tool, Tool::HostCompile | Tool::HostAssembly);
    if run.options.path_map.is_empty() || !compiles {
        return Ok(());
    }
    for &id in &step.reads {
        let writer = run.graph.file(id).writer.map(|w| &run.graph.steps[w]);
        if writer.is_some_and(|w| w.tool == Tool::CudaFe) {
            restore_names(run.artifacts.path(id), run.options)?;
        }
    }
    Ok(())
}
