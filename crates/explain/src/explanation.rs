//! The explanation as data: every form is written from it, and `--json` is it.

use serde::{Deserialize, Serialize};

use crate::block::Block;

/// The form of the JSON; a new number when a field is renamed, removed or means something else.
pub const FORMAT: u32 = 1;

/// A whole compilation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Explanation {
    /// The [`FORMAT`] that it was written in.
    pub format: u32,
    /// nvcc and its arguments, as they were given.
    pub command: Vec<String>,
    /// The working directory.
    pub directory: String,
    /// The toolkit, as its own macros say it: `13.5.37`.
    pub toolkit: Option<String>,
    /// Where nvcc was explained to keep intermediate files, with a slash at its end.
    pub folder: String,
    /// The variables that nvcc puts into the environment of its commands.
    pub environment: Vec<Variable>,
    /// The commands, in nvcc's order.
    pub steps: Vec<StepExplanation>,
    /// nvcc's exit code.
    pub exit_code: i32,
}

/// A variable of the environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Its purpose; empty where it is not described.
    pub meaning: String,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommandOutcome {
    /// It did its work.
    Ran,
    /// It failed with this exit code.
    Failed(i32),
    /// A command before it failed.
    Skipped,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepExplanation {
    /// Its number, from 1, in nvcc's order.
    pub number: usize,
    /// The tool: `cicc`, `ptxas`.
    pub tool: String,
    /// The architecture it works for.
    pub arch: Option<String>,
    /// Its work, as a heading.
    pub title: String,
    /// The reason for this step, in a few sentences.
    pub purpose: String,
    /// The command as nvcc prints it.
    pub command: String,
    /// Its words in turn, explained.
    pub options: Vec<OptionRow>,
    /// The steps whose files it reads.
    pub needs: Vec<usize>,
    /// The files that it read, as far as the plan names them; headers and libraries are not.
    pub reads: Vec<ReadFile>,
    /// The files that it wrote.
    pub writes: Vec<FileExplanation>,
    /// Every file of the compilation after this step.
    pub tree: Vec<TreeRow>,
    /// How it ended.
    pub outcome: CommandOutcome,
    /// How long it took, in microseconds.
    pub micros: u64,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// An option with its value, or another word of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionRow {
    /// The words of the command.
    pub words: String,
    /// Its meaning; "not described here" if unknown.
    pub meaning: String,
    /// Whether the meaning is known.
    pub known: bool,
}

/// The role of a file for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It was there before.
    Source,
    /// nvcc would remove it at the end.
    Intermediate,
    /// The output that was asked for.
    Output,
}

/// A file that a command read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadFile {
    /// Its name without folders.
    pub name: String,
    /// As the command spells it.
    pub path: String,
    /// The step that wrote it last.
    pub from: Option<usize>,
}

/// Whether a file was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileState {
    /// This step made it.
    New,
    /// This step wrote into it.
    Changed,
    /// It was there before this step.
    Old,
}

/// A file that a command wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileExplanation {
    /// Its name without folders.
    pub name: String,
    /// As the command spells it.
    pub path: String,
    /// Its role for the user.
    pub role: Role,
    /// New, or written into.
    pub state: FileState,
    /// Its size in bytes.
    pub bytes: u64,
    /// The kind of file.
    pub what: String,
    /// The later steps that read it.
    pub read_by: Vec<usize>,
    /// A summary of its content.
    #[serde(rename = "essence")]
    pub blocks: Vec<Block>,
}

impl FileExplanation {
    /// The steps that read it, as a sentence.
    pub fn readers(&self) -> String {
        let steps: Vec<String> = self.read_by.iter().map(ToString::to_string).collect();
        match (steps.as_slice(), self.role) {
            ([], Role::Output) => "The output that you asked for.".to_owned(),
            ([], _) => "No later command reads it.".to_owned(),
            ([one], _) => format!("Step {one} reads it."),
            (more, _) => format!("Steps {} read it.", more.join(", ")),
        }
    }
}

/// A file of the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeRow {
    /// Its name without folders.
    pub name: String,
    /// As the plan spells it.
    pub path: String,
    /// Its role for the user.
    pub role: Role,
    /// The change that this step made to it.
    pub state: FileState,
    /// The step that wrote it last.
    pub by: Option<usize>,
    /// Its size in bytes, where it was looked at.
    pub bytes: Option<u64>,
}

impl Explanation {
    /// The explanation with pieces of text replaced wherever they stand, so that two machines tell the
    /// same one.
    ///
    /// # Errors
    /// A replacement that makes it no explanation any more.
    pub fn replaced(&self, pieces: &[(String, String)]) -> Result<Self, serde_json::Error> {
        let mut value = serde_json::to_value(self)?;
        replace(&mut value, pieces);
        serde_json::from_value(value)
    }

    /// The words of a step that no earlier step of the same tool had, and the other ones with the
    /// first step that had them.
    pub fn fresh_options<'s>(
        &'s self,
        step: &'s StepExplanation,
    ) -> (Vec<&'s OptionRow>, Vec<(&'s OptionRow, usize)>) {
        let mut fresh = Vec::new();
        let mut explained = Vec::new();
        for option in &step.options {
            let earlier = self.steps.iter().find(|other| {
                other.number < step.number
                    && other.tool == step.tool
                    && other.options.contains(option)
            });
            match earlier {
                Some(earlier) => explained.push((option, earlier.number)),
                None => fresh.push(option),
            }
        }
        (fresh, explained)
    }

    /// The explanation for reading from the beginning: what kind of file something is, and
    /// why a command runs, is said once.
    #[must_use]
    pub fn without_repeats(&self) -> Self {
        let mut explained = std::collections::HashSet::new();
        let mut explanation = self.clone();
        for step in &mut explanation.steps {
            if !explained.insert(step.purpose.clone()) {
                step.purpose.clear();
            }
            for file in &mut step.writes {
                file.blocks.retain(|block| match block {
                    Block::Text { text } => explained.insert(text.clone()),
                    _ => true,
                });
            }
        }
        explanation
    }

    /// Every file that a step wrote, with the step.
    pub fn files(&self) -> impl Iterator<Item = (&StepExplanation, &FileExplanation)> {
        self.steps
            .iter()
            .flat_map(|step| step.writes.iter().map(move |file| (step, file)))
    }
}

fn replace(value: &mut serde_json::Value, pieces: &[(String, String)]) {
    use serde_json::Value;
    match value {
        Value::String(text) => {
            for (from, to) in pieces {
                if text.contains(from.as_str()) {
                    *text = text.replace(from.as_str(), to);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, pieces)),
        Value::Object(fields) => fields.values_mut().for_each(|item| replace(item, pieces)),
        _ => {}
    }
}

/// `812 B`, `12.4 KiB`, `3.10 MiB`.
pub fn size(bytes: u64) -> String {
    const KIB: f64 = 1024.0;
    let scaled = bytes as f64;
    match scaled {
        b if b < KIB => format!("{bytes} B"),
        b if b < KIB * KIB => format!("{:.1} KiB", b / KIB),
        b => format!("{:.2} MiB", b / KIB / KIB),
    }
}

/// `nvcc` and its arguments as a line for a shell.
pub fn quoted(words: &[String]) -> String {
    let plain = |word: &str| {
        !word.is_empty()
            && word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "/._-+=:,@%^".contains(c))
    };
    let shown = words.iter().map(|word| match plain(word) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_is_the_same_after_json_and_can_be_masked() {
        let explanation = Explanation {
            format: FORMAT,
            command: vec!["nvcc".into(), "-c".into(), "/home/me/a.cu".into()],
            ..Explanation::default()
        };
        let text = serde_json::to_string(&explanation).expect("JSON");
        assert_eq!(
            serde_json::from_str::<Explanation>(&text).expect("an explanation"),
            explanation
        );
        let masked = explanation
            .replaced(&[("/home/me".into(), "/p".into())])
            .expect("an explanation");
        assert_eq!(quoted(&masked.command), "nvcc -c /p/a.cu");
    }

    #[test]
    fn sizes_and_quotes_read_well() {
        assert_eq!(size(812), "812 B");
        assert_eq!(size(12_700), "12.4 KiB");
        assert_eq!(size(3_250_585), "3.10 MiB");
        assert_eq!(quoted(&["a b".into(), "it's".into()]), r"'a b' 'it'\''s'");
    }
}
