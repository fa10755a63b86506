//! The explanation for a terminal: a page for each command, in a given width.

mod blocks;

use std::io::{self, Write};

use crate::block::Block;
use crate::columns::wrap;
use crate::explanation::{
    CommandOutcome, Explanation, FileExplanation, FileState, OptionRow, Role, StepExplanation,
    quoted, size,
};

/// Whether to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tint {
    /// Letters only.
    Plain,
    /// The terminal's colours.
    Colours,
}

/// The form of the text.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// Letters in a line; names and code may be longer.
    pub width: usize,
    /// Colours.
    pub tint: Tint,
}

/// Narrower than this is not readable.
const NARROWEST: usize = 40;

/// Writes the whole explanation.
///
/// # Errors
/// Writing to `out` failed.
pub fn write(explanation: &Explanation, form: Form, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Page::new(form, out);
    let explanation = &explanation.without_repeats();
    page.opening(explanation)?;
    for step in &explanation.steps {
        page.step(
            step,
            explanation.steps.len(),
            explanation.fresh_options(step),
        )?;
    }
    page.closing(explanation)
}

/// Writes one row for each command: its tool, its work and its time.
///
/// # Errors
/// Writing to `out` failed.
pub fn write_brief(explanation: &Explanation, form: Form, out: &mut dyn Write) -> io::Result<()> {
    let rows = explanation.steps.iter().map(|step| {
        let time = match step.outcome {
            CommandOutcome::Skipped => "not run".to_owned(),
            CommandOutcome::Failed(code) => format!("failed, {code}"),
            CommandOutcome::Ran => format!("{} ms", step.micros.div_ceil(1000)),
        };
        vec![
            step.number.to_string(),
            step.tool.clone(),
            step.title.clone(),
            time,
        ]
    });
    let columns = ["step", "tool", "what it does", "time"];
    let table = Block::table("", &columns, rows.collect());
    let mut page = Page::new(form, out);
    page.summary(explanation)?;
    page.block(&table)?;
    page.closing(explanation)
}

/// Writes one command alone, or those of one tool, each as if it were the first; `which` is a number or the tool's name. Gives
/// false, and writes nothing, if there is none.
///
/// # Errors
/// Writing to `out` failed.
pub fn write_step(
    explanation: &Explanation,
    which: &str,
    form: Form,
    out: &mut dyn Write,
) -> io::Result<bool> {
    let chosen = |step: &&StepExplanation| step.number.to_string() == which || step.tool == which;
    let mut page = Page::new(form, out);
    let mut found = false;
    for step in explanation.steps.iter().filter(chosen) {
        found = true;
        page.step(
            step,
            explanation.steps.len(),
            (step.options.iter().collect(), Vec::new()),
        )?;
    }
    Ok(found)
}

struct Page<'o> {
    form: Form,
    out: &'o mut dyn Write,
}

impl<'o> Page<'o> {
    fn new(form: Form, out: &'o mut dyn Write) -> Self {
        let width = form.width.max(NARROWEST);
        Self {
            form: Form { width, ..form },
            out,
        }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        match self.form.tint {
            Tint::Plain => text.to_owned(),
            Tint::Colours => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }

    fn heading(&mut self, text: &str) -> io::Result<()> {
        let line = self.paint("1;36", text);
        writeln!(self.out, "\n{line}")
    }

    /// Wrapped between words, each line behind `indent`, those after the first behind `hang` more.
    fn wrapped(&mut self, indent: usize, hang: usize, text: &str) -> io::Result<()> {
        for line in wrap(text, self.form.width.saturating_sub(indent), hang) {
            writeln!(self.out, "{}{line}", " ".repeat(indent))?;
        }
        Ok(())
    }

    fn summary(&mut self, explanation: &Explanation) -> io::Result<()> {
        let command = self.paint("1", &quoted(&explanation.command));
        writeln!(self.out, "{command}")?;
        let toolkit = explanation
            .toolkit
            .as_deref()
            .unwrap_or("of an unknown version");
        let commands = match explanation.steps.len() {
            1 => "1 command".to_owned(),
            more => format!("{more} commands"),
        };
        self.wrapped(
            0,
            0,
            &format!(
                "{commands} of CUDA {toolkit}, in {}. Intermediate files were in {}.",
                explanation.directory,
                if explanation.folder.is_empty() {
                    "the folder you named"
                } else {
                    &explanation.folder
                }
            ),
        )
    }

    fn opening(&mut self, explanation: &Explanation) -> io::Result<()> {
        self.summary(explanation)?;
        self.heading("The environment of the commands")?;
        for variable in &explanation.environment {
            let line = format!("{}={}", variable.name, variable.value);
            writeln!(self.out, "  {}", line.trim_end())?;
            if !variable.meaning.is_empty() {
                self.wrapped(6, 0, &variable.meaning)?;
            }
        }
        Ok(())
    }

    /// Writes a command's page; `known` options were explained in the step that stands next to them.
    fn step(
        &mut self,
        step: &StepExplanation,
        of: usize,
        (fresh, known): (Vec<&OptionRow>, Vec<(&OptionRow, usize)>),
    ) -> io::Result<()> {
        let rule = "─".repeat(self.form.width);
        let head = format!("Step {} of {of}: {}", step.number, step.title);
        let (rule, head) = (self.paint("36", &rule), self.paint("1;36", &head));
        writeln!(self.out, "\n{rule}\n{head}\n")?;
        if step.outcome == CommandOutcome::Skipped {
            let line = self.paint("31", "Not run: a command before it failed.");
            return writeln!(self.out, "{line}");
        }
        if !step.purpose.is_empty() {
            self.wrapped(0, 0, &step.purpose)?;
            writeln!(self.out)?;
        }
        self.wrapped(2, 4, &step.command)?;
        if !step.options.is_empty() {
            self.heading("Its words")?;
        }
        for option in fresh {
            let words = self.paint("33", &option.words);
            writeln!(self.out, "  {words}")?;
            self.wrapped(6, 0, &option.meaning)?;
        }
        if let Some((_, first)) = known.first() {
            let words: Vec<&str> = known
                .iter()
                .map(|(option, _)| option.words.as_str())
                .collect();
            let words = words.join(", ");
            self.wrapped(2, 4, &format!("as before, from step {first} on: {words}"))?;
        }
        if let CommandOutcome::Failed(code) = step.outcome {
            let line = format!("It failed, with exit code {code}; nvcc stops here.");
            let line = self.paint("1;31", &line);
            writeln!(self.out, "\n{line}")?;
        }
        for (name, text) in [
            ("standard output", &step.stdout),
            ("standard error", &step.stderr),
        ] {
            if !text.is_empty() {
                self.heading(&format!("What it said on {name}"))?;
                for line in text.lines() {
                    writeln!(self.out, "  {line}")?;
                }
            }
        }
        if !step.reads.is_empty() {
            self.heading("It read")?;
            for input in &step.reads {
                let from = input
                    .from
                    .map_or_else(|| "there before".to_owned(), |n| format!("from step {n}"));
                writeln!(self.out, "  {}  ({from})", input.name)?;
            }
        }
        self.tree(step)?;
        for file in &step.writes {
            self.file(file)?;
        }
        Ok(())
    }

    /// Writes new files on lines of their own, and the others in a paragraph.
    fn tree(&mut self, step: &StepExplanation) -> io::Result<()> {
        if step.tree.is_empty() {
            return Ok(());
        }
        self.heading("Files")?;
        let old: Vec<&str> = step
            .tree
            .iter()
            .filter(|row| row.state == FileState::Old)
            .map(|row| row.name.as_str())
            .collect();
        if !old.is_empty() {
            self.wrapped(2, 2, &format!("= {}", old.join(", ")))?;
        }
        for row in step.tree.iter().filter(|row| row.state != FileState::Old) {
            let mark = match row.state {
                FileState::New => "+",
                _ => "~",
            };
            let role = match row.role {
                Role::Output => ", what was asked for",
                _ => "",
            };
            let bytes = row.bytes.map_or_else(String::new, size);
            let line = self.paint("32", &format!("{mark} {}", row.name));
            writeln!(self.out, "  {line}  ({bytes}{role})")?;
        }
        Ok(())
    }

    fn file(&mut self, file: &FileExplanation) -> io::Result<()> {
        self.heading(&format!("{}: {}", file.name, file.what))?;
        let read_by = file.readers();
        self.wrapped(2, 0, &format!("{}. {read_by}", size(file.bytes)))?;
        for block in &file.blocks {
            self.block(block)?;
        }
        Ok(())
    }

    fn closing(&mut self, explanation: &Explanation) -> io::Result<()> {
        let outputs: Vec<String> = explanation
            .files()
            .filter(|(_, file)| file.role == Role::Output)
            .map(|(step, file)| {
                format!(
                    "{} ({}, from step {})",
                    file.path,
                    size(file.bytes),
                    step.number
                )
            })
            .collect();
        writeln!(self.out)?;
        if explanation.exit_code != 0 {
            let line = format!("nvcc ends with exit code {}.", explanation.exit_code);
            let line = self.paint("1;31", &line);
            return writeln!(self.out, "{line}");
        }
        self.wrapped(0, 0, &format!("Made: {}.", outputs.join(", ")))
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
