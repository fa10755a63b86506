//! Collects a step's files for another machine: programs with the libraries that they load, inputs and variables. It also
//! collects the observations that a run here would have made.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::Path;

use warpcc_cache::Digest;
use warpcc_cache::command::{Command, CommandInput};
use warpcc_plan::{FileKind, Step, Tool};
use warpcc_watch::{FOLDER_LIBRARY, FOLDER_VARIABLE};

use super::names;
use crate::context::RunContext;
use crate::key::LANGUAGE_VARIABLES;
use crate::relocate;
use crate::traced_inputs::TracedInputs;

/// The variable with the digests of programs that are not sent; no tool reads it.
const PROMISED: &str = "WARPCC_PROMISED";

/// A step that is ready to be sent, with the observations of a run here.
pub struct Packed {
    pub command: Command,
    pub seen: TracedInputs,
    /// Pairs of names in the result: the one there, and the one of a run here. In binary files both have the same length.
    pub names: Vec<(String, String)>,
}

/// A step that is being packed.
pub struct ActionBuilder<'w, 'a> {
    pub run: &'w RunContext<'a>,
    pub environment: Vec<(String, String)>,
    pub seen: TracedInputs,
    inputs: BTreeMap<String, CommandInput>,
    /// Whether the workers have the programs at the same paths.
    installed: bool,
    /// The digests of those programs on this machine.
    promised: Vec<String>,
}

impl<'w, 'a> ActionBuilder<'w, 'a> {
    /// Starts with the variables that every tool gets.
    pub fn new(run: &'w RunContext<'a>, tool: Tool) -> Option<Self> {
        let mut environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        for name in LANGUAGE_VARIABLES {
            if let Some(value) = run.options.variable(name) {
                environment.push(((*name).to_owned(), value.to_str()?.to_owned()));
            }
        }
        Some(Self {
            run,
            environment,
            seen: TracedInputs::default(),
            inputs: BTreeMap::new(),
            installed: run.options.executor.is_some_and(|e| e.has(tool)),
            promised: Vec::new(),
        })
    }

    /// Adds an input; `None` if another input has the same path.
    pub fn put(&mut self, input: CommandInput) -> Option<()> {
        match self.inputs.entry(input.path.clone()) {
            Entry::Vacant(place) => {
                place.insert(input);
                Some(())
            }
            Entry::Occupied(other) => (other.get().digest == input.digest).then_some(()),
        }
    }

    /// Adds a file that the tool reads and that seldom changes.
    pub fn add(&mut self, path: String, file: &Path, executable: bool) -> Option<()> {
        let digest = self.run.lasting_digest(file)?;
        self.seen.read.entry(file.into()).or_default();
        self.put(CommandInput {
            path,
            digest,
            file: file.to_owned(),
            executable,
        })
    }

    /// Adds the libraries that `object` loads, and their loader, so that the result depends on the same files as here.
    pub fn add_libraries(&mut self, object: &Path) -> Option<()> {
        let loaded = self.run.loaded(object)?;
        self.add("tc/ld.so".to_owned(), &loaded.loader, true)?;
        for (name, path) in &loaded.libraries {
            self.add(format!("tc/lib/{name}"), path, true)?;
        }
        Some(())
    }

    /// Packs the programs even if the workers have them.
    pub fn pack_programs(&mut self) {
        self.installed = false;
    }

    /// Adds a program; returns the arguments that start it there.
    pub fn add_program(&mut self, program: &Path) -> Option<Vec<String>> {
        if self.installed {
            return self.name_program(program);
        }
        self.add_libraries(program)?;
        let tool = format!("tc/bin/{}", program.file_name()?.to_str()?);
        self.add(tool.clone(), program, true)?;
        let words = [
            "tc/ld.so",
            "--inhibit-cache",
            "--library-path",
            "tc/lib",
            &tool,
        ];
        Some(words.map(str::to_owned).into())
    }

    /// Adds a program that only starts others, so that the result does not depend on it.
    pub fn add_starter(&mut self, program: &Path) -> Option<Vec<String>> {
        let (seen, promised) = (self.seen.clone(), self.promised.clone());
        let words = self.add_program(program)?;
        (self.seen, self.promised) = (seen, promised);
        Some(words)
    }

    /// Names a program that the workers have. The step depends on the same files as with the program here.
    fn name_program(&mut self, program: &Path) -> Option<Vec<String>> {
        let loaded = self.run.loaded(program)?;
        let libraries = loaded.libraries.into_iter().map(|(_, path)| path);
        let files = [program.to_owned(), loaded.loader];
        for file in files.into_iter().chain(libraries) {
            let digest = self.run.lasting_digest(&file)?;
            self.promised.push(digest.to_string());
            self.seen.read.entry(file.into()).or_default();
        }
        Some(vec![program.to_str()?.to_owned()])
    }

    /// Adds the files that `step` reads according to the plan.
    pub fn add_reads(&mut self, step: &Step) -> Option<()> {
        let run = self.run;
        for &id in &step.reads {
            let file = run.artifacts.path(id);
            self.put(CommandInput {
                path: names::place(run, id)?,
                digest: run.artifacts.digest(id).ok()?,
                file: run.options.directory.join(file),
                executable: false,
            })?;
            if run.graph.file(id).kind == FileKind::External {
                self.seen.read.entry(file.into()).or_default();
            }
        }
        Some(())
    }

    /// Makes the tool believe that it runs in our directory, for results in which the directory cannot be replaced
    /// afterwards; returns the loader's arguments for that.
    pub fn stand_in(&mut self, step: &Step, folder: &Path) -> Option<[String; 2]> {
        const PLACE: &str = "tc/preload/folder.so";
        let options = self.run.options;
        let directory = relocate::directory(step, self.run.artifacts, options);
        let is_real = directory.canonicalize().ok()? == directory;
        // If the directory has another name too, tools write one of the two, and they ignore a `PWD` that names another
        // directory.
        let other_name = options.variable("PWD").map(Path::new).is_some_and(|pwd| {
            pwd != directory && pwd.canonicalize().is_ok_and(|real| real == directory)
        });
        if FOLDER_LIBRARY.is_empty() || !is_real || other_name {
            return None;
        }
        let file = folder.join("folder.so");
        fs::write(&file, FOLDER_LIBRARY).ok()?;
        self.put(CommandInput {
            path: PLACE.to_owned(),
            digest: Digest::of_bytes(FOLDER_LIBRARY),
            file,
            executable: true,
        })?;
        let variable = (FOLDER_VARIABLE.to_owned(), directory.to_str()?.to_owned());
        self.environment.push(variable);
        // A variable would not do, because a runner may drop it. glibc has this option since 2.30.
        Some(["--preload", PLACE].map(str::to_owned))
    }

    /// Completes the step: `arguments` is the command that makes the outputs of `step`.
    pub fn close(mut self, step: &Step, arguments: Vec<String>) -> Option<Packed> {
        if !self.promised.is_empty() {
            // With another compiler here the action differs, so the cluster's cached results of the last one are not used
            // for it.
            let promised = (PROMISED.to_owned(), self.promised.join(" "));
            self.environment.push(promised);
        }
        let outputs = step.writes.iter().map(|&id| names::place(self.run, id));
        Some(Packed {
            command: Command {
                arguments,
                outputs: outputs.collect::<Option<_>>()?,
                environment: self.environment,
                inputs: self.inputs.into_values().collect(),
            },
            seen: self.seen,
            names: Vec::new(),
        })
    }
}
