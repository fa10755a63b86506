//! One command of nvcc → the commands with which clang reads its sources, by way of nvcc's dry run.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use warpcc_plan::clang::{self, SourceReading};
use warpcc_plan::{TaskGraph, Transcript};

use super::super::nvcc::{find_nvcc, split_compiler};
use super::database::CompileCommand;
use crate::config::{BEHIND, Config};
use crate::fallback;
use crate::process_context::ProcessContext;

/// What a database says about one command.
pub enum Reading {
    /// It is not one of nvcc.
    Other(CompileCommand),
    /// nvcc does not say what it would do.
    Refused {
        /// As it was.
        entry: CompileCommand,
        /// What nvcc says.
        why: String,
    },
    /// The sources that it compiles: those of the entry, and none where it compiles nothing.
    Sources(Vec<Source>),
}

/// One source, and how clang reads it.
pub struct Source {
    directory: String,
    /// Its words, and what only device code has.
    pub reading: SourceReading,
    /// The toolkit's folder.
    toolkit: Option<PathBuf>,
    /// The folder of a gcc that is not the one that clang would take.
    gcc: Option<String>,
    /// The nvcc.
    pub nvcc: PathBuf,
}

/// The words before the compiler that may be a launcher's.
const LAUNCHERS: usize = 3;

/// Asks nvcc.
pub struct Translator<'a> {
    /// The settings, for nvcc's place.
    pub config: &'a Config,
    /// The environment. The build is assumed to have the same one.
    pub context: &'a ProcessContext,
}

impl Translator<'_> {
    /// Asks nvcc what a command does.
    pub fn read(&self, entry: CompileCommand) -> Reading {
        let Some(words) = entry.words() else {
            return Reading::Other(entry);
        };
        let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        let starts = (0..words.len().min(LAUNCHERS)).map(|at| split_compiler(&words[at..]));
        let found = starts
            .into_iter()
            .find_map(|(named, rest)| Some((named?, rest)));
        let Some((named, rest)) = found else {
            return Reading::Other(entry);
        };
        match self.sources(&entry, named, rest) {
            Ok(sources) => Reading::Sources(sources),
            Err(why) => Reading::Refused { entry, why },
        }
    }

    fn sources(
        &self,
        entry: &CompileCommand,
        named: &Path,
        args: &[OsString],
    ) -> Result<Vec<Source>, String> {
        let nvcc = find_nvcc(Some(named), self.config, self.context);
        let nvcc = nvcc.map_err(|error| error.to_string())?;
        let directory = Path::new(&entry.directory);
        let mut command = Command::new(&nvcc);
        command.args(args).arg("--dryrun");
        let output = self.ask(command, directory)?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            let said = text.lines().find(|line| !line.starts_with("#$"));
            return Err(said.unwrap_or("nvcc refuses the command line").to_owned());
        }
        let transcript = Transcript::parse(&text).map_err(|error| error.to_string())?;
        let graph = TaskGraph::build(&transcript, "").map_err(|error| error.to_string())?;
        let readings = clang::source_readings(&transcript, &graph).into_iter();
        // A command with several sources has an entry for each.
        let readings = readings.filter(|r| directory.join(&r.source) == entry.path());
        let source = |reading: SourceReading| {
            let toolkit = reading.device.as_ref().and_then(|d| d.toolkit.as_deref());
            Source {
                directory: entry.directory.clone(),
                toolkit: toolkit.map(|t| Path::new(t).canonicalize().unwrap_or(t.into())),
                gcc: self.folder_of_gcc(&reading.host_compiler, directory),
                nvcc: nvcc.clone(),
                reading,
            }
        };
        Ok(readings.map(source).collect())
    }

    /// The folder of the headers' gcc, where the build names one: clang looks for the newest that is installed, as does the
    /// name `gcc`.
    fn folder_of_gcc(&self, compiler: &str, directory: &Path) -> Option<String> {
        if matches!(compiler, "gcc" | "g++") || compiler.contains("clang") {
            return None;
        }
        let mut command = Command::new(compiler);
        command.arg("-print-search-dirs");
        let output = self.ask(command, directory).ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let folder = text.lines().find_map(|line| line.strip_prefix("install: "));
        folder.map(|folder| folder.trim_end_matches('/').to_owned())
    }

    fn ask(&self, mut command: Command, directory: &Path) -> Result<Output, String> {
        let program = command.get_program().to_string_lossy().into_owned();
        command
            .current_dir(directory)
            .env_clear()
            .envs(self.context.environment.iter().map(|(n, v)| (n, v)))
            .env(BEHIND, fallback::behind_value(&self.context.ourselves))
            .stdin(Stdio::null());
        let cannot = |error| format!("{program} cannot be started: {error}");
        command.output().map_err(cannot)
    }
}

impl Source {
    /// The architecture that the build names last.
    pub fn architecture(&self) -> Option<&str> {
        self.reading.device.as_ref()?.architecture.as_deref()
    }
}

/// The entry of a source. `names` has clangd's name for each architecture, where a clangd was asked.
pub fn entry_of(
    source: &Source,
    host: bool,
    names: Option<&BTreeMap<String, Option<String>>>,
) -> CompileCommand {
    let mut words: Vec<String> = vec!["clang++".into(), "-x".into()];
    match &source.reading.device {
        None => words.push("c++".into()),
        Some(_) => {
            words.push("cuda".into());
            let side = if host { "host" } else { "device" };
            words.push(format!("--cuda-{side}-only"));
            let toolkit = source.toolkit.iter().map(|t| t.as_os_str());
            words.extend(toolkit.map(|t| format!("--cuda-path={}", shown(t))));
            let named = source.architecture().map(str::to_owned);
            let named = match names {
                Some(names) => named.and_then(|name| names.get(&name).cloned().flatten()),
                None => named,
            };
            words.extend(named.map(|name| format!("--cuda-gpu-arch={name}")));
        }
    }
    words.extend(
        source
            .gcc
            .iter()
            .map(|gcc| format!("--gcc-install-dir={gcc}")),
    );
    words.extend(source.reading.words.iter().cloned());
    // gcc has warnings that clang does not have, and toolkits are newer than clang.
    words.push("-Wno-unknown-warning-option".into());
    if source.reading.device.is_some() {
        words.push("-Wno-unknown-cuda-version".into());
    }
    words.extend(["-fsyntax-only".into(), source.reading.source.clone()]);
    CompileCommand {
        directory: source.directory.clone(),
        file: source.reading.source.clone(),
        arguments: Some(words),
        command: None,
        output: None,
    }
}

fn shown(text: &OsStr) -> String {
    text.to_string_lossy().into_owned()
}
