//! The explanation as one self-contained HTML page: no network, no fonts, no other file.
//!
//! All text is in the page before any script runs; the script only filters and switches between light and dark.
//! Whatever is shown comes from outside, names of files and lines of code, and is escaped; should that ever fail, the
//! page's own policy lets no script run but ours, by its hash.

use std::io::{self, Write};

use warpcc_markup::{escape, policy};

use crate::block::{Block, Table};
use crate::explanation::{
    CommandOutcome, Explanation, FileExplanation, FileState, Role, StepExplanation, quoted, size,
};

const STYLE: &str = include_str!("../page/page.css");
const SCRIPT: &str = include_str!("../page/page.js");

/// Writes the page; `picture` is an SVG of the steps, if there is one.
///
/// # Errors
/// Writing to `out` failed.
pub fn write(
    explanation: &Explanation,
    picture: Option<&str>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let title = format!("How nvcc makes {}", subject(explanation));
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
        // The picture's shapes have their colours as attributes, which no policy forbids.
        policy(SCRIPT, STYLE),
        escape(&title)
    )?;
    head(explanation, &title, out)?;
    writeln!(out, "<div id=\"columns\">")?;
    sidebar(explanation, out)?;
    writeln!(out, "<main>")?;
    opening(explanation, picture, out)?;
    for step in &explanation.steps {
        section(explanation, step, out)?;
    }
    writeln!(
        out,
        "<p id=\"nothing\" hidden>Nothing matches.</p>\n</main>\n</div>\n<script>{SCRIPT}</script>\n\
         </body>\n</html>"
    )
}

fn subject(explanation: &Explanation) -> String {
    let outputs: Vec<&str> = explanation
        .files()
        .filter(|(_, file)| file.role == Role::Output)
        .map(|(_, file)| file.name.as_str())
        .collect();
    match outputs.as_slice() {
        [] => "nothing: it failed".to_owned(),
        some => some.join(", "),
    }
}

fn head(explanation: &Explanation, title: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<header>\n<h1>{}</h1>\n<p><code>{}</code></p>\n<div id=\"tools\">\
         <input id=\"query\" type=\"search\" placeholder=\"filter: a tool, a file, an option, a word ( / )\" \
         aria-label=\"filter\"> <span id=\"matched\" aria-live=\"polite\">{} steps</span> \
         <button id=\"fold\" type=\"button\">fold all</button> \
         <button id=\"scheme\" type=\"button\">light or dark</button></div>\n</header>",
        escape(title),
        escape(&quoted(&explanation.command)),
        explanation.steps.len()
    )
}

/// The steps with the files that each of them made.
fn sidebar(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<nav aria-label=\"steps and files\">\n<ol>")?;
    for step in &explanation.steps {
        let state = match step.outcome {
            CommandOutcome::Ran => "",
            CommandOutcome::Failed(_) => " class=\"failed\"",
            CommandOutcome::Skipped => " class=\"skipped\"",
        };
        writeln!(
            out,
            "<li data-step=\"{0}\"{state}><a href=\"#step-{0}\">{1}</a>",
            step.number,
            escape(&step.title)
        )?;
        if !step.writes.is_empty() {
            writeln!(out, "<ul>")?;
            for file in &step.writes {
                writeln!(
                    out,
                    "<li class=\"{}\"><a href=\"#{}\">{}</a> <small>{}</small></li>",
                    role(file.role),
                    anchor(step, file),
                    escape(&file.name),
                    size(file.bytes)
                )?;
            }
            writeln!(out, "</ul>")?;
        }
        writeln!(out, "</li>")?;
    }
    writeln!(out, "</ol>\n</nav>")
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Source => "source",
        Role::Intermediate => "intermediate",
        Role::Output => "output",
    }
}

fn anchor(step: &StepExplanation, file: &FileExplanation) -> String {
    let at = step
        .writes
        .iter()
        .position(|other| other.path == file.path)
        .unwrap_or(0);
    format!("file-{}-{}", step.number, at + 1)
}

fn opening(
    explanation: &Explanation,
    picture: Option<&str>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let toolkit = explanation
        .toolkit
        .as_deref()
        .unwrap_or("of an unknown version");
    writeln!(
        out,
        "<div id=\"opening\">\n<p>{} commands of CUDA {}, in <code>{}</code>; nvcc ended with exit \
         code {}.</p>",
        explanation.steps.len(),
        escape(toolkit),
        escape(&explanation.directory),
        explanation.exit_code
    )?;
    if let Some(picture) = picture {
        writeln!(
            out,
            "<details open><summary>The commands and the files between them</summary>\
             <div id=\"picture\">{picture}</div></details>"
        )?;
    }
    writeln!(
        out,
        "<details><summary>The environment of the commands</summary><table><tbody>"
    )?;
    for variable in &explanation.environment {
        writeln!(
            out,
            "<tr><td><code>{}={}</code></td><td>{}</td></tr>",
            escape(&variable.name),
            escape(&variable.value),
            escape(&variable.meaning)
        )?;
    }
    writeln!(out, "</tbody></table></details>\n</div>")
}

fn section(
    explanation: &Explanation,
    step: &StepExplanation,
    out: &mut dyn Write,
) -> io::Result<()> {
    let number = step.number;
    writeln!(
        out,
        "<section id=\"step-{number}\" data-tool=\"{}\">\n<h2><small>Step {number} of {} · {}</small> {}</h2>\n<p>{}</p>\n\
         <pre class=\"command\">{}</pre>",
        escape(&step.tool),
        explanation.steps.len(),
        escape(&step.tool),
        escape(&step.title),
        words(&step.purpose),
        escape(&step.command)
    )?;
    if !step.options.is_empty() {
        writeln!(
            out,
            "<details><summary>Its {} words, explained</summary><table class=\"options\"><tbody>",
            step.options.len()
        )?;
        for option in &step.options {
            let class = if option.known {
                ""
            } else {
                " class=\"unknown\""
            };
            writeln!(
                out,
                "<tr{class}><td><code>{}</code></td><td>{}</td></tr>",
                escape(&option.words),
                words(&option.meaning)
            )?;
        }
        writeln!(out, "</tbody></table></details>")?;
    }
    match step.outcome {
        CommandOutcome::Skipped => {
            return writeln!(
                out,
                "<p class=\"trouble\">Not run: a command before it failed.</p>\n</section>"
            );
        }
        CommandOutcome::Failed(code) => writeln!(
            out,
            "<p class=\"trouble\">It failed, with exit code {code}; nvcc stops here.</p>"
        )?,
        CommandOutcome::Ran => {}
    }
    for (name, text) in [
        ("standard output", &step.stdout),
        ("standard error", &step.stderr),
    ] {
        if !text.is_empty() {
            writeln!(
                out,
                "<h3>What it said on {name}</h3><pre>{}</pre>",
                escape(text)
            )?;
        }
    }
    files(step, out)?;
    for file in &step.writes {
        file_story(step, file, out)?;
    }
    writeln!(out, "</section>")
}

fn files(step: &StepExplanation, out: &mut dyn Write) -> io::Result<()> {
    let read: Vec<String> = step
        .reads
        .iter()
        .map(|input| match input.from {
            Some(from) => format!(
                "<code>{}</code> (<a href=\"#step-{from}\">step {from}</a>)",
                escape(&input.name)
            ),
            None => format!("<code>{}</code>", escape(&input.name)),
        })
        .collect();
    if !read.is_empty() {
        writeln!(out, "<p>It read {}.</p>", read.join(", "))?;
    }
    writeln!(
        out,
        "<details><summary>All files after this step</summary><ul class=\"tree\">"
    )?;
    for row in &step.tree {
        let (class, mark) = match row.state {
            FileState::New => ("new", "new"),
            FileState::Changed => ("changed", "changed"),
            FileState::Old => ("old", ""),
        };
        writeln!(
            out,
            "<li class=\"{class} {}\"><code>{}</code> <small>{} {mark}</small></li>",
            role(row.role),
            escape(&row.name),
            row.bytes.map_or_else(String::new, size)
        )?;
    }
    writeln!(out, "</ul></details>")
}

fn file_story(
    step: &StepExplanation,
    file: &FileExplanation,
    out: &mut dyn Write,
) -> io::Result<()> {
    let read_by: Vec<String> = file
        .read_by
        .iter()
        .map(|by| format!("<a href=\"#step-{by}\">step {by}</a>"))
        .collect();
    let read_by = match (read_by.as_slice(), file.role) {
        ([], Role::Output) => "what was asked for".to_owned(),
        ([], _) => "no later command reads it".to_owned(),
        (some, _) => format!("read by {}", some.join(", ")),
    };
    let changed = match file.state {
        FileState::Changed => ", written into",
        _ => "",
    };
    writeln!(
        out,
        "<article id=\"{}\" class=\"{}\"><h3><code>{}</code> {}</h3><p><small>{}{changed}; {read_by}</small></p>",
        anchor(step, file),
        role(file.role),
        escape(&file.name),
        escape(&file.what),
        size(file.bytes)
    )?;
    for block in &file.blocks {
        self::block(block, out)?;
    }
    writeln!(out, "</article>")
}

fn block(block: &Block, out: &mut dyn Write) -> io::Result<()> {
    match block {
        Block::Text { text } => writeln!(out, "<p>{}</p>", words(text)),
        Block::Facts { title, rows } => {
            heading(title, out)?;
            writeln!(out, "<table class=\"facts\"><tbody>")?;
            for fact in rows {
                writeln!(
                    out,
                    "<tr><th scope=\"row\">{}</th><td>{}</td></tr>",
                    words(&fact.name),
                    escape(&fact.value)
                )?;
            }
            writeln!(out, "</tbody></table>")
        }
        Block::Table(rows) => table(rows, out),
        Block::Excerpt { title, lines } => {
            heading(title, out)?;
            write!(out, "<pre>")?;
            for line in lines {
                let number = line.number.map_or(String::new(), |n| n.to_string());
                let (before, after) = match line.marked {
                    true => ("<mark>", "</mark>"),
                    false => ("", ""),
                };
                writeln!(
                    out,
                    "<i>{number:>5}</i> {before}{}{after}",
                    escape(&line.text)
                )?;
            }
            writeln!(out, "</pre>")
        }
    }
}

fn heading(title: &str, out: &mut dyn Write) -> io::Result<()> {
    if title.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h4>{}</h4>", words(title))
}

fn table(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    heading(&table.title, out)?;
    write!(out, "<div class=\"wide\"><table><thead><tr>")?;
    for column in &table.columns {
        write!(out, "<th>{}</th>", escape(column))?;
    }
    writeln!(out, "</tr></thead><tbody>")?;
    for row in &table.rows {
        write!(out, "<tr>")?;
        for cell in row {
            write!(out, "<td>{}</td>", escape(cell))?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody></table></div>")
}

/// Our own sentences: text in which `` `words` `` are code.
fn words(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for (at, piece) in text.split('`').enumerate() {
        if at % 2 == 1 {
            html.push_str(&format!("<code>{}</code>", escape(piece)));
        } else {
            html.push_str(&escape(piece));
        }
    }
    html
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
