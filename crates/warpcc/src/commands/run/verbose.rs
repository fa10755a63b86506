//! The environment and every command in full, in the form of `nvcc --verbose`.

use std::io::{self, Write};

use crate::commands::timeline::{Run, TaskOutcome, TaskRow};
use crate::seconds::format_seconds;

/// Writes the environment and the commands.
///
/// As in nvcc's output, these lines begin with `#$`. The lines between them, which begin with
/// `#` alone, say what each command was and how it went.
pub fn write(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# {}", one_line(&run.title))?;
    for (name, value) in &run.environment {
        writeln!(out, "#$ {}={}", one_line(name), one_line(value))?;
    }
    for row in &run.rows {
        writeln!(out, "\n# {}", heading(row))?;
        writeln!(out, "#$ {}", one_line(&row.command))?;
    }
    Ok(())
}

fn heading(row: &TaskRow) -> String {
    let mut text = format!("{}: {}", row.number, one_line(&row.tool));
    if let Some(arch) = &row.arch {
        text = format!("{text} {}", one_line(arch));
    }
    if !row.label.is_empty() {
        text = format!("{text}, {}", one_line(&row.label));
    }
    let took = format_seconds(row.elapsed());
    let how = match row.outcome {
        TaskOutcome::Failed(_) => format!("{took}, {}", row.outcome.describe(String::new)),
        other => other.describe(|| took),
    };
    format!("{text}: {how}")
}

/// A line break inside a value would look like the next entry.
fn one_line(text: &str) -> String {
    text.replace('\n', "\\n").replace('\r', "\\r")
}
