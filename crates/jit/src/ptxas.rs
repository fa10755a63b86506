//! A toolkit's `ptxas`: its place, the architectures that it knows, and its arguments for a text.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use warpcc_fatbin::{Arch, Gpu, Suffix, ptx_compiles};

use crate::process;

/// It only prints its help.
const PATIENCE: Duration = Duration::from_secs(30);

/// The assembler, and what it knows.
#[derive(Debug, Clone)]
pub struct Ptxas {
    /// The file.
    pub program: PathBuf,
    /// The machine architectures it makes.
    pub targets: BTreeSet<Arch>,
}

/// Why there is no `ptxas` to use.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It does not start.
    #[error("{0} cannot be started: {1}")]
    Start(PathBuf, std::io::Error),
    /// It starts, and names no architecture.
    #[error("`{0} --help` names no architecture: this ptxas is not supported")]
    Answer(PathBuf),
}

impl Ptxas {
    /// Asks a `ptxas` which architectures it knows.
    ///
    /// # Errors
    /// The program is not a `ptxas`.
    pub fn ask(program: &Path) -> Result<Self, AskError> {
        let start = |error| AskError::Start(program.to_owned(), error);
        let folder = tempfile::tempdir().map_err(start)?;
        let log = folder.path().join("help");
        let help = process::run(Command::new(program).arg("--help"), &log, PATIENCE);
        let targets = targets(&help.map_err(start)?.said);
        if targets.is_empty() {
            return Err(AskError::Answer(program.to_owned()));
        }
        Ok(Self {
            program: program.to_owned(),
            targets,
        })
    }

    /// The architecture with the highest number, without a letter.
    pub fn newest(&self) -> Option<u32> {
        self.targets.iter().map(|arch| arch.number).max()
    }

    /// The architecture to assemble PTX for `text` to, so that it runs on `gpu`; `None` where that is impossible: the
    /// PTX is not for this GPU, or this `ptxas` does not know it.
    pub fn target(&self, text: Arch, gpu: u32) -> Option<Arch> {
        if !ptx_compiles(text, Gpu::Known(gpu)) {
            return None;
        }
        let target = Arch {
            number: gpu,
            suffix: match text.suffix {
                Suffix::Exact => Suffix::Exact,
                // ptxas makes plain code of family PTX for each member.
                Suffix::Family | Suffix::None => Suffix::None,
            },
        };
        self.targets.contains(&target).then_some(target)
    }
}

/// The `sm_…` that its help names.
fn targets(help: &str) -> BTreeSet<Arch> {
    let words = help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words
        .filter(|word| word.starts_with("sm_"))
        .filter_map(|word| word.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ptxas(words: &str) -> Ptxas {
        Ptxas {
            program: PathBuf::new(),
            targets: targets(words),
        }
    }

    #[test]
    fn targets_are_read_from_the_help() {
        let help = "Allowed values for this option:  'compute_90','sm_90','sm_90a','sm_100f'.\n\
                    Default value:  'sm_75'. See 'sm_<n>'.";
        let known: Vec<String> = targets(help).iter().map(Arch::to_string).collect();
        assert_eq!(known, ["75", "90", "90a", "100f"]);
    }

    #[test]
    fn letters_go_where_they_may() {
        let ptxas = ptxas("'sm_80' 'sm_90' 'sm_90a' 'sm_100' 'sm_100a' 'sm_100f' 'sm_103'");
        let target = |text: &str, gpu| {
            let target = ptxas.target(text.parse().expect("an arch"), gpu)?;
            Some(target.to_string())
        };
        assert_eq!(target("80", 90).as_deref(), Some("90"));
        assert_eq!(target("90a", 90).as_deref(), Some("90a"));
        assert_eq!(target("90a", 100), None);
        assert_eq!(target("100f", 103).as_deref(), Some("103"));
        assert_eq!(target("90", 80), None);
        assert_eq!(target("80", 86), None, "it does not know sm_86");
        assert_eq!(ptxas.newest(), Some(103));
    }
}
