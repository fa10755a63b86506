//! The explanation as Markdown, for documentation: what differs between machines is left out.

use std::io::{self, Write};

use crate::block::{Block, Table};
use crate::explanation::{CommandOutcome, Explanation, FileExplanation, StepExplanation};

/// The placeholder for a value that differs between machines.
const VARIES: &str = "…";

/// How much of an explanation is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Every step, its options and its files.
    Everything,
    /// The compilation by its headings only; everything from the device link on.
    LinkOnly,
}

/// Writes the steps of an explanation, their headings one level below `level` marks.
///
/// # Errors
/// Writing to `out` failed.
pub fn write(
    explanation: &Explanation,
    depth: Detail,
    level: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let marks = "#".repeat(level);
    let explanation = &explanation.without_repeats();
    let linked = |step: &StepExplanation| step.tool == "nvlink";
    let from = match depth {
        Detail::Everything => 0,
        Detail::LinkOnly => explanation.steps.iter().position(linked).unwrap_or(0),
    };
    let (before, explained) = explanation.steps.split_at(from);
    for step in before {
        writeln!(out, "{}. {}", step.number, step.title)?;
    }
    if !before.is_empty() {
        writeln!(out)?;
    }
    for step in explained {
        writeln!(out, "{marks} Step {}: {}\n", step.number, step.title)?;
        self::step(explanation, step, &marks, out)?;
    }
    Ok(())
}

fn step(
    explanation: &Explanation,
    step: &StepExplanation,
    marks: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    if !step.purpose.is_empty() {
        writeln!(out, "{}\n", step.purpose)?;
    }
    writeln!(out, "```sh\n{}\n```\n", step.command.trim())?;
    let (fresh, known) = explanation.fresh_options(step);
    if !fresh.is_empty() {
        writeln!(out, "| word | what it does |\n|---|---|")?;
        for option in fresh {
            writeln!(
                out,
                "| {} | {} |",
                code(&option.words),
                cell(&option.meaning)
            )?;
        }
        writeln!(out)?;
    }
    if let Some((_, first)) = known.first() {
        let words: Vec<String> = known
            .iter()
            .map(|(option, _)| code(&option.words))
            .collect();
        writeln!(
            out,
            "Explained above, from step {first} on: {}.\n",
            words.join(", ")
        )?;
    }
    if let CommandOutcome::Failed(code) = step.outcome {
        writeln!(out, "It failed, with exit code {code}.\n")?;
    }
    let reads: Vec<String> = step
        .reads
        .iter()
        .map(|input| match input.from {
            Some(from) => format!("{} from step {from}", code(&input.name)),
            None => code(&input.name),
        })
        .collect();
    if !reads.is_empty() {
        writeln!(out, "It reads {}.\n", reads.join(", "))?;
    }
    for file in &step.writes {
        self::file(file, marks, out)?;
    }
    Ok(())
}

fn file(file: &FileExplanation, marks: &str, out: &mut dyn Write) -> io::Result<()> {
    let read_by = file.readers();
    writeln!(
        out,
        "{marks}# {}: {}\n\n{read_by}\n",
        code(&file.name),
        file.what
    )?;
    file.blocks.iter().try_for_each(|one| block(one, out))
}

fn block(block: &Block, out: &mut dyn Write) -> io::Result<()> {
    match block {
        Block::Text { text } => writeln!(out, "{text}\n"),
        Block::Facts { title, rows } => {
            heading(title, out)?;
            for fact in rows {
                let value = if fact.varies {
                    VARIES.to_owned()
                } else {
                    code(&fact.value)
                };
                writeln!(out, "- {}: {value}", fact.name)?;
            }
            writeln!(out)
        }
        Block::Table(rows) => table(rows, out),
        Block::Excerpt { title, lines } => {
            heading(title, out)?;
            writeln!(out, "```text")?;
            for line in lines {
                let number = line.number.map_or(String::new(), |n| n.to_string());
                let mark = if line.marked { '>' } else { ' ' };
                let line = format!("{mark}{number:>4} | {}", line.text);
                writeln!(out, "{}", line.trim_end())?;
            }
            writeln!(out, "```\n")
        }
    }
}

fn heading(title: &str, out: &mut dyn Write) -> io::Result<()> {
    if title.is_empty() {
        return Ok(());
    }
    writeln!(out, "{title}:\n")
}

fn table(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    // A table of nothing but what varies says nothing.
    if (0..table.columns.len()).all(|column| table.varies.contains(&column)) {
        return Ok(());
    }
    heading(&table.title, out)?;
    if table.rows.is_empty() {
        return writeln!(out, "none\n");
    }
    let filled = |column: &usize| {
        let mut cells = table.rows.iter().filter_map(|row| row.get(*column));
        !table.varies.contains(column) && cells.any(|text| !text.is_empty())
    };
    let kept: Vec<usize> = (0..table.columns.len()).filter(filled).collect();
    let heads: Vec<&str> = kept.iter().map(|&at| table.columns[at].as_str()).collect();
    writeln!(
        out,
        "| {} |\n|{}",
        heads.join(" | "),
        "---|".repeat(heads.len())
    )?;
    for row in &table.rows {
        let cells: Vec<String> = kept
            .iter()
            .map(|&at| cell(row.get(at).map_or("", String::as_str)))
            .collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    writeln!(out)
}

/// Text in a table, where a line break or a bar would end the cell.
fn cell(text: &str) -> String {
    let flat = text.replace('\n', " ").replace('|', "\\|");
    // Names with underscores, stars or angle brackets are not Markdown's.
    match flat.contains(['_', '*', '<']) && !flat.contains('`') {
        true => format!("`{flat}`"),
        false => flat,
    }
}

/// Text as code, whatever characters it has.
fn code(text: &str) -> String {
    let flat = text.replace('\n', " ").replace('|', "\\|");
    match flat.contains('`') {
        true => format!("`` {flat} ``"),
        false if flat.is_empty() => String::new(),
        false => format!("`{flat}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::NamedValue;

    #[test]
    fn varying_values_are_left_out() {
        let mut out = Vec::new();
        let facts = Block::facts(
            "",
            vec![NamedValue::here("lines", "123"), NamedValue::new("n", "4")],
        );
        block(&facts, &mut out).expect("memory");
        let rows = vec![vec!["a_b|c".into(), "17".into()]];
        let table = Block::table("T", &["name", "size"], rows).varying(&[1]);
        block(&table, &mut out).expect("memory");
        let text = String::from_utf8(out).expect("text");
        assert_eq!(
            text,
            "- lines: …\n- n: `4`\n\nT:\n\n| name |\n|---|\n| `a_b\\|c` |\n\n"
        );
    }
}
