//! A history as text: one step a line, its words quoted as in a shell. A call is a step, and so is every change before and
//! between the calls.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// One step: a verb and its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step(pub Vec<String>);

impl Step {
    /// A step of these words.
    pub fn new(words: &[&str]) -> Self {
        Self(words.iter().map(|w| (*w).to_owned()).collect())
    }

    /// The step's verb; empty for an empty step.
    pub fn verb(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// The words after the verb.
    pub fn rest(&self) -> &[String] {
        self.0.get(1..).unwrap_or_default()
    }

    /// Whether nvcc and warpcc run in this step.
    pub fn is_call(&self) -> bool {
        matches!(self.verb(), "call" | "together")
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:@%{}".contains(c);
        for (at, word) in self.0.iter().enumerate() {
            let blank = if at == 0 { "" } else { " " };
            if !word.is_empty() && word.chars().all(plain) {
                write!(f, "{blank}{word}")?;
            } else {
                write!(f, "{blank}'{}'", word.replace('\'', r"'\''"))?;
            }
        }
        Ok(())
    }
}

/// Steps in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History(pub Vec<Step>);

impl History {
    /// Reads a case file: lines that start with `#` are for people.
    ///
    /// # Errors
    /// A line with an open quote.
    pub fn parse(text: &str) -> Result<Self> {
        let mut steps = Vec::new();
        // A quoted word can have several lines.
        let mut step = String::new();
        for line in text.lines() {
            if step.is_empty() && (line.starts_with('#') || line.trim().is_empty()) {
                continue;
            }
            step += line;
            if let Some(words) = shlex::split(&step) {
                steps.push(Step(words));
                step.clear();
            } else {
                step.push('\n');
            }
        }
        if !step.is_empty() {
            bail!("an open quote: {step}");
        }
        Ok(Self(steps))
    }

    /// Reads a case file from disk.
    ///
    /// # Errors
    /// The file cannot be read or parsed.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    /// The history's shape: its verbs and directives without their names. Two failures with the same shape most likely have
    /// the same cause.
    pub fn shape(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        for step in &self.0 {
            let mut part = step.verb().to_owned();
            if step.verb() == "set" || step.verb() == "unset" {
                part = format!("set-{}", step.rest().first().map_or("", String::as_str));
            }
            for word in step.rest() {
                if let Some(directive) = word.strip_prefix('@') {
                    let verb = directive.split(' ').nth(1).unwrap_or("");
                    part += &format!("-{verb}");
                }
            }
            if !step.is_call() && parts.last() != Some(&part) {
                parts.push(part);
            }
        }
        parts.join("_").replace(['/', ' '], "-")
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.0 {
            writeln!(f, "{step}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_its_text() {
        let text = "write w/a.h '@cicc env SK_A' ''\ncall -c s.cu -o 'it'\\''s.o'\nwrite s.cu '#if 1\n#endif' x\n";
        let history = History::parse(text).expect("parses");
        assert_eq!(history.to_string(), text);
        assert_eq!(history.0[1].rest()[3], "it's.o");
        assert_eq!(history.0[2].rest()[1], "#if 1\n#endif");
        assert_eq!(history.shape(), "write-env_write");
        assert!(History::parse("write 'open").is_err());
    }
}
