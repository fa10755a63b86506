//! What is sent with a step: programs with the libraries they load, files, variables; and what a run here would have seen
//! of them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::Path;

use warpcc_cache::Digest;
use warpcc_cache::command::{Command, Input};
use warpcc_plan::{Arg, FileId, FileKind, Part, Step, Tool};
use warpcc_watch::{FOLDER_LIBRARY, FOLDER_VARIABLE};

use super::{KEEP, MARK};
use crate::key::{LANGUAGE_VARIABLES, packs_directory};
use crate::relocate;
use crate::task::{Located, Worker};
use crate::traced_inputs::Seen;

/// The folder of a command there, whatever it is called.
const THERE: &str = "/proc/self/cwd/";

/// The variable that holds what a program that is not sent contains here; nobody reads it.
const PROMISED: &str = "WARPCC_PROMISED";

/// A step for another machine, and what a run of it here would have seen.
pub struct Packed {
    pub command: Command,
    pub seen: Seen,
    /// Names that stand in the result: there, and what stands there after a run here. In binary files both are of one
    /// length.
    pub names: Vec<(String, String)>,
}

/// What is being packed.
pub struct ActionBuilder<'w, 'a> {
    pub worker: &'w Worker<'a>,
    pub environment: Vec<(String, String)>,
    pub seen: Seen,
    inputs: BTreeMap<String, Input>,
    /// Whether the workers have the programs where they are here.
    installed: bool,
    /// What those contain here.
    promised: Vec<String>,
}

impl<'w, 'a> ActionBuilder<'w, 'a> {
    /// With the variables that every tool gets.
    pub fn new(worker: &'w Worker<'a>, tool: Tool) -> Option<Self> {
        let mut environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        for name in LANGUAGE_VARIABLES {
            if let Some(value) = worker.options.variable(name) {
                environment.push(((*name).to_owned(), value.to_str()?.to_owned()));
            }
        }
        Some(Self {
            worker,
            environment,
            seen: Seen::default(),
            inputs: BTreeMap::new(),
            installed: worker.options.executor.is_some_and(|e| e.has(tool)),
            promised: Vec::new(),
        })
    }

    /// Adds an input; nothing where another one has its place.
    pub fn put(&mut self, input: Input) -> Option<()> {
        match self.inputs.entry(input.path.clone()) {
            Entry::Vacant(place) => {
                place.insert(input);
                Some(())
            }
            Entry::Occupied(other) => (other.get().digest == input.digest).then_some(()),
        }
    }

    /// Adds a file that changes seldom, which the tool reads.
    pub fn add(&mut self, path: String, file: &Path, executable: bool) -> Option<()> {
        let digest = self.worker.lasting_digest(file)?;
        self.seen.read.entry(file.into()).or_default();
        self.put(Input {
            path,
            digest,
            file: file.to_owned(),
            executable,
        })
    }

    /// Adds what `object` loads. The loader goes along, so that the libraries do: then what a result depends on is the
    /// same as here.
    pub fn add_libraries(&mut self, object: &Path) -> Option<()> {
        let loaded = self.worker.loaded(object)?;
        self.add("tc/ld.so".to_owned(), &loaded.loader, true)?;
        for (name, path) in &loaded.libraries {
            self.add(format!("tc/lib/{name}"), path, true)?;
        }
        Some(())
    }

    /// Packs the programs although the workers have them.
    pub fn pack_programs(&mut self) {
        self.installed = false;
    }

    /// Adds a program; gives the words that start it there.
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

    /// Adds a program that only starts others: the result does not depend on it.
    pub fn add_starter(&mut self, program: &Path) -> Option<Vec<String>> {
        let (seen, promised) = (self.seen.clone(), self.promised.clone());
        let words = self.add_program(program)?;
        (self.seen, self.promised) = (seen, promised);
        Some(words)
    }

    /// Names a program that the workers have. What it rests on is what the program here would have.
    fn name_program(&mut self, program: &Path) -> Option<Vec<String>> {
        let loaded = self.worker.loaded(program)?;
        let libraries = loaded.libraries.into_iter().map(|(_, path)| path);
        let files = [program.to_owned(), loaded.loader];
        for file in files.into_iter().chain(libraries) {
            let digest = self.worker.lasting_digest(&file)?;
            self.promised.push(digest.to_string());
            self.seen.read.entry(file.into()).or_default();
        }
        Some(vec![program.to_str()?.to_owned()])
    }

    /// Adds what the plan says that `step` reads.
    pub fn add_reads(&mut self, step: &Step) -> Option<()> {
        let worker = self.worker;
        for &id in &step.reads {
            let file = worker.artifacts.path(id);
            self.put(Input {
                path: worker.place(id)?,
                digest: worker.artifacts.digest(id).ok()?,
                file: worker.options.directory.join(file),
                executable: false,
            })?;
            if worker.graph.file(id).kind == FileKind::External {
                self.seen.read.entry(file.into()).or_default();
            }
        }
        Some(())
    }

    /// Lets the tool believe that it runs in our directory, which it writes where nobody can put it right; gives the
    /// loader's words for that.
    fn stand_in(&mut self, step: &Step, folder: &Path) -> Option<[String; 2]> {
        const PLACE: &str = "tc/preload/folder.so";
        let options = self.worker.options;
        let directory = relocate::directory(step, self.worker.artifacts, options);
        let is_real = directory.canonicalize().ok()? == directory;
        // Under another name for it, tools write the one or the other; a `PWD` of elsewhere they do not believe.
        let other_name = options.variable("PWD").map(Path::new).is_some_and(|pwd| {
            pwd != directory && pwd.canonicalize().is_ok_and(|real| real == directory)
        });
        if FOLDER_LIBRARY.is_empty() || !is_real || other_name {
            return None;
        }
        let file = folder.join("folder.so");
        fs::write(&file, FOLDER_LIBRARY).ok()?;
        self.put(Input {
            path: PLACE.to_owned(),
            digest: Digest::of_bytes(FOLDER_LIBRARY),
            file,
            executable: true,
        })?;
        let variable = (FOLDER_VARIABLE.to_owned(), directory.to_str()?.to_owned());
        self.environment.push(variable);
        // Not by a variable, which a runner may keep to itself. glibc has this since 2.30.
        Some(["--preload", PLACE].map(str::to_owned))
    }

    /// Closes it: `arguments` make the outputs of `step`.
    pub fn close(mut self, step: &Step, arguments: Vec<String>) -> Option<Packed> {
        if !self.promised.is_empty() {
            // With another compiler here it is another action: the cluster's results of the last one are not for it.
            let promised = (PROMISED.to_owned(), self.promised.join(" "));
            self.environment.push(promised);
        }
        let outputs = step.writes.iter().map(|&id| self.worker.place(id));
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

impl Worker<'_> {
    /// Where a file of the plan is there.
    pub fn place(&self, id: FileId) -> Option<String> {
        let here = self.artifacts.path(id).to_str()?;
        Some(match here.strip_prefix(&self.graph.private) {
            Some(rest) => format!("{KEEP}{rest}"),
            None => format!("{MARK}/{}/{}", id.0, self.graph.file(id).name()),
        })
    }

    /// An argument as it is there.
    pub fn word(&self, arg: &Arg) -> Option<String> {
        let mut text = String::new();
        for part in &arg.0 {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::File(id) => text.push_str(&self.place(*id)?),
            }
        }
        Some(text)
    }

    /// Packs `step`; `folder` is an empty one of ours. Nothing where it has to run here.
    pub fn pack(
        &self,
        index: usize,
        step: &Step,
        program: &Located,
        folder: &Path,
    ) -> Option<Packed> {
        match step.tool {
            Tool::HostCompile | Tool::HostAssembly => {
                self.pack_host_compile(index, step, program, folder)
            }
            Tool::Nvlink => self.pack_link(step, program),
            _ => self.pack_tool(step, program, folder),
        }
    }

    /// A tool that reads what the plan says.
    fn pack_tool(&self, step: &Step, program: &Located, folder: &Path) -> Option<Packed> {
        let mut builder = ActionBuilder::new(self, step.tool)?;
        let packs = packs_directory(step, self.graph);
        if packs {
            builder.pack_programs();
        }
        let mut arguments = builder.add_program(&program.path)?;
        if step.tool == Tool::Cicc {
            let folder = Path::new(self.options.variable("NVVMIR_LIBRARY_DIR")?);
            let library = folder.join("libdevice.10.bc");
            builder.add("tc/libdevice/libdevice.10.bc".to_owned(), &library, false)?;
            let variable = ("NVVMIR_LIBRARY_DIR".to_owned(), "tc/libdevice".to_owned());
            builder.environment.push(variable);
        }
        if packs {
            arguments.splice(1..1, builder.stand_in(step, folder)?);
        }
        builder.add_reads(step)?;
        for arg in &step.args {
            let is_file = matches!(arg.0[..], [Part::File(_)]);
            // It makes relative names absolute with the directory that it is told of.
            let before = if packs && is_file { THERE } else { "" };
            arguments.push(format!("{before}{}", self.word(arg)?));
        }
        let mut packed = builder.close(step, arguments)?;
        if packs {
            let private = self.graph.private.clone();
            packed.names.push((format!("{THERE}{KEEP}"), private));
        }
        Some(packed)
    }
}
