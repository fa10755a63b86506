//! The graph of a run as text for Graphviz.

use std::io::{self, Write};

use super::scene::{Color, tool_color};
use crate::commands::timeline::{Run, TaskOutcome, TaskRow};
use crate::seconds::format_seconds;

/// Write the graph: a node per command, an edge per file between two.
pub fn write_dot(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "digraph warpcc {{")?;
    writeln!(
        out,
        "  rankdir=LR; label={}; labelloc=t;",
        quoted(&run.title)
    )?;
    writeln!(
        out,
        "  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"DejaVu Sans\"];"
    )?;
    writeln!(
        out,
        "  edge [fontname=\"DejaVu Sans\", fontsize=9, color=\"#a3adba\"];"
    )?;
    for (at, row) in run.rows.iter().enumerate() {
        writeln!(
            out,
            "  n{at} [label={}, tooltip={}, color=\"{}\"{}];",
            quoted(&label(row)),
            quoted(&row.command),
            color(&row.tool),
            style(row.outcome)
        )?;
    }
    for edge in run.edges() {
        let files = edge.files.join("\n");
        writeln!(
            out,
            "  n{} -> n{} [label={}];",
            edge.from,
            edge.to,
            quoted(&files)
        )?;
    }
    writeln!(out, "}}")
}

fn label(row: &TaskRow) -> String {
    let how = row.outcome.describe(|| format_seconds(row.elapsed()));
    format!("{}\n{how}", row.title())
}

fn style(outcome: TaskOutcome) -> &'static str {
    match outcome {
        TaskOutcome::Ran => "",
        TaskOutcome::Hit => ", fillcolor=\"#f0fdf4\"",
        TaskOutcome::Skipped => ", style=\"rounded,dashed\"",
        TaskOutcome::Failed(_) => ", fillcolor=\"#fef2f2\"",
    }
}

fn color(tool: &str) -> String {
    let Color(r, g, b) = tool_color(tool);
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// A quoted string: backslashes too, since Graphviz reads `\n` and `\N` in labels.
fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("\"{}\"", escaped.replace(['\r', '\0'], " "))
}
