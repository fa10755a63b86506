//! A folder in which histories run: its project, toolkits and caches, its variables, and how each step changes them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::fake_toolkit::FakeTool;
use super::files_open::no_process_starting;
use super::history::Step;
use super::mapper::Mappers;
use super::random::Random;
use super::tree;

/// The tools that the histories run.
#[derive(Clone, Debug)]
pub enum Tools {
    /// The fake tools.
    Fake(FakeTool),
    /// The real tools of these toolkits.
    Real(Vec<PathBuf>),
}

/// One worker's folder.
#[derive(Debug)]
pub struct Space {
    /// The folder of one history, which has everything but the files below `shm`. Each history has its own, because an
    /// uploader that the last one left behind may still be at work in the other.
    pub root: PathBuf,
    /// The folder that contains the roots.
    base: PathBuf,
    histories: u64,
    /// A folder in `/dev/shm`.
    pub shm: PathBuf,
    /// The program under test.
    pub warpcc: PathBuf,
    /// A guard that is switched off in warpcc.
    pub without: Option<String>,
    pub tools: Tools,
    /// The index of the chosen real toolkit.
    chosen: usize,
    /// Variables, besides those of [`Space::environment`].
    pub variables: BTreeMap<String, Option<String>>,
    /// The folder that calls run in.
    pub folder: String,
    /// The nvcc that calls name.
    pub nvcc: String,
    /// The umask, in octal.
    pub umask: Option<String>,
    /// Limits of the shell, as its options and values.
    pub limits: BTreeMap<String, String>,
    /// The folder of warpcc's cache, below the root.
    pub cache: String,
    /// The time that the fake tools get.
    pub clock: Option<String>,
    /// The change that is made while the next call runs.
    pub race: Option<Step>,
    /// The text that the readers of each pipe get, by the pipe's path.
    pub pipes: BTreeMap<String, String>,
    mappers: Mappers,
    /// Whether the expected results are warpcc's own with an empty cache, in place of nvcc's.
    pub fresh: bool,
}

impl Space {
    /// A space below `root`, which it owns.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(root: &Path, tools: Tools, warpcc: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        let root = root.canonicalize()?;
        let id = std::process::id();
        let name = root
            .file_name()
            .map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let space = Self {
            shm: PathBuf::from(format!("/dev/shm/warpcc-soak-{id}-{name}")),
            base: root.clone(),
            histories: 0,
            root,
            warpcc,
            without: None,
            tools,
            chosen: 0,
            variables: BTreeMap::new(),
            folder: String::new(),
            nvcc: String::new(),
            umask: None,
            limits: BTreeMap::new(),
            cache: String::new(),
            clock: None,
            race: None,
            pipes: BTreeMap::new(),
            mappers: Mappers::default(),
            fresh: false,
        };
        Ok(space)
    }

    /// Whether the tools are the fake ones.
    pub fn is_fake(&self) -> bool {
        matches!(self.tools, Tools::Fake(_))
    }

    /// Has the history of this seed choose among real toolkits.
    pub fn choose_toolkit(&mut self, seed: u64) {
        self.chosen = Random::new(!seed).below(64);
    }

    /// The real toolkit that was chosen; the next one for `ahead` 1.
    fn toolkit(&self, ahead: usize) -> PathBuf {
        match &self.tools {
            Tools::Fake(_) => self.root.join("tk"),
            Tools::Real(tops) => tops[(self.chosen + ahead) % tops.len()].clone(),
        }
    }

    /// The real toolkit of this history.
    pub fn real_toolkit(&self) -> Option<PathBuf> {
        (!self.is_fake()).then(|| self.toolkit(0))
    }

    /// Whether a limit on file sizes, or a low limit on open files, is set.
    pub fn is_tight(&self) -> bool {
        let number = |option| {
            self.limits
                .get(option)
                .and_then(|value| value.parse::<u64>().ok())
        };
        number("f").is_some() || number("n").is_some_and(|files| files < 256)
    }

    /// Puts everything into the state before a history's first step.
    ///
    /// # Errors
    /// A folder cannot be made.
    pub fn reset(&mut self) -> io::Result<()> {
        self.clear();
        self.mappers.clear();
        self.histories += 1;
        self.root = self.base.join(self.histories.to_string());
        for name in ["w", "tmp", "tmp2", "home", "keep", "shared"] {
            fs::create_dir_all(self.root.join(name))?;
        }
        fs::create_dir_all(&self.shm)?;
        self.variables.clear();
        self.umask = None;
        self.limits.clear();
        self.cache = "cache".to_owned();
        self.clock = None;
        self.race = None;
        self.pipes.clear();
        self.fresh = false;
        self.folder = "{root}/w".to_owned();
        self.nvcc = "{tk}/bin/nvcc".to_owned();
        if let Tools::Fake(program) = &self.tools {
            let _quiet = no_process_starting();
            program.install_toolkit(&self.root.join("tk"), 1)?;
            program.install_host(&self.root.join("host"), 1)?;
        }
        Ok(())
    }

    /// Removes everything.
    pub fn clear(&self) {
        for entry in fs::read_dir(&self.base).into_iter().flatten().flatten() {
            tree::remove(&entry.path());
        }
        tree::remove(&self.shm);
    }

    /// The folders in which nvcc and warpcc can leave files.
    pub fn watched(&self) -> [PathBuf; 3] {
        [self.root.join("w"), self.root.join("w2"), self.shm.clone()]
    }

    /// Puts this space's paths into a step's text.
    pub fn fill(&self, text: &str) -> String {
        if !text.contains('{') {
            return text.to_owned();
        }
        text.replace("{root}", &self.root.to_string_lossy())
            .replace("{shm}", &self.shm.to_string_lossy())
            .replace("{tk}", &self.toolkit(0).to_string_lossy())
            .replace("{tk-other}", &self.toolkit(1).to_string_lossy())
    }

    /// A path of a step; relative ones are below the project.
    pub fn path(&self, text: &str) -> PathBuf {
        // The calls' working folder, not this process's.
        let text = text.strip_prefix("/proc/self/cwd/").unwrap_or(text);
        self.root.join("w").join(self.fill(text))
    }

    /// The environment of every command, whole.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let host = if self.is_fake() { "{root}/host:" } else { "" };
        let mut all: BTreeMap<String, String> = [
            ("PATH", self.fill(&format!("{host}/usr/bin:/bin"))),
            ("HOME", self.fill("{root}/home")),
            ("TMPDIR", self.fill("{root}/tmp")),
            ("LC_ALL", "C".to_owned()),
            ("PWD", self.fill(&self.folder)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        for (name, value) in &self.variables {
            match value {
                Some(value) => _ = all.insert(name.clone(), self.fill(value)),
                None => _ = all.remove(name),
            }
        }
        all
    }

    /// Carries out a step that is no call. A change that cannot be made is skipped, so that a shortened history still works.
    pub fn change(&mut self, step: &Step) {
        let words: Vec<&str> = step.rest().iter().map(String::as_str).collect();
        match (step.verb(), words.as_slice()) {
            ("set", [name, value]) => {
                self.variables
                    .insert((*name).to_owned(), Some((*value).to_owned()));
            }
            ("unset", [name]) => _ = self.variables.insert((*name).to_owned(), None),
            ("umask", [mask]) => self.umask = Some((*mask).to_owned()),
            ("limit", [option, value]) => {
                self.limits
                    .insert((*option).to_owned(), (*value).to_owned());
            }
            ("cache", [name]) => self.cache = (*name).to_owned(),
            ("fresh", []) => self.fresh = true,
            ("clock", [time]) => self.clock = Some((*time).to_owned()),
            ("map", [path, line]) => {
                // A change that cannot be made is skipped.
                _ = self.write_mapped(path, line);
            }
            ("pipe", [path, line]) => {
                self.change_files(step);
                self.pipes.insert((*path).to_owned(), format!("{line}\n"));
            }
            ("race", words) => self.race = Some(Step::new(words)),
            ("cd", [folder]) if self.path(folder).is_dir() => {
                self.folder = if folder.starts_with(['/', '{']) {
                    (*folder).to_owned()
                } else {
                    format!("{{root}}/w/{folder}")
                };
            }
            ("use", [nvcc]) if self.path(nvcc).exists() => self.nvcc = (*nvcc).to_owned(),
            _ => self.change_files(step),
        }
    }

    fn write_mapped(&mut self, path: &str, line: &str) -> io::Result<()> {
        let Tools::Fake(program) = &self.tools else {
            return Ok(());
        };
        let mapper = self.root.join("host/mapper");
        if !mapper.exists() {
            let _quiet = no_process_starting();
            program.install(&mapper, 1)?;
        }
        let (path, line) = (self.path(path), self.fill(line));
        self.mappers.write(&mapper, &path, &line)
    }
}
