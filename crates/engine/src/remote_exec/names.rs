//! The names of our files on another machine.

use warpcc_plan::{Arg, FileId, Part};

use crate::context::RunContext;

/// The folder of the plan's files, inside the command's folder there.
pub const MARK: &str = "__warpcc_away__";

/// The private folder on the other machine.
pub const KEEP: &str = "__warpcc_away__/keep/";

/// The path of a file of the plan on the other machine.
pub fn place(run: &RunContext<'_>, id: FileId) -> Option<String> {
    let here = run.artifacts.path(id).to_str()?;
    Some(match here.strip_prefix(&run.graph.private) {
        Some(rest) => format!("{KEEP}{rest}"),
        None => format!("{MARK}/{}/{}", id.0, run.graph.file(id).name()),
    })
}

/// An argument as it is written on the other machine.
pub fn word(run: &RunContext<'_>, arg: &Arg) -> Option<String> {
    let mut text = String::new();
    for part in &arg.0 {
        match part {
            Part::Text(part) => text.push_str(part),
            Part::File(id) => text.push_str(&place(run, *id)?),
        }
    }
    Some(text)
}
