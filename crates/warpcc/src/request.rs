//! One call of nvcc: the program, its arguments and its directory; and the parts of the direct key.
//!
//! The parts of the direct key are everything that is known without starting a process:
//!
//! | part | why |
//! |---|---|
//! | nvcc: path | the paths of its headers contain it; its content is in the input manifest |
//! | host compiler, `as`, `ld`: the files that PATH names | with another PATH, other programs may run |
//! | option, input, host option | the command line, with options files expanded and without `-t`; of `-o` and `-MF` only that they are given, where the result does not contain their values |
//! | working directory | relative paths start there; left out if every path is absolute and the result does not contain it |
//! | variables of gcc, nvcc and the message language | they change what the tools do |
//! | archive: its old content | `ar` updates an existing archive |
//! | source content | in place of its path, in [content keys](crate::content_key) only |
//! | scratch folder | debug information contains it; left out without debug information |
//! | relocatable: the names of the mapped folders | in the key, a path below such a folder begins with this name |
//! | folder in folder: which mapped folder is in another one | a path below both begins with the inner one's name |
//!
//! Files that the tools read, or looked for and did not find, are not in the key. They are in the record's input manifest.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use warpcc_cache::{Digest, Explaining, KeyParts, KeySink, KeyVariants, guards, regular_file};
use warpcc_engine::Terminal;
use warpcc_engine::key::{HOST_VARIABLES, LANGUAGE_VARIABLES, key_variants};
use warpcc_engine::run_environment::{RunEnvironment, directory_as_called};
use warpcc_engine::search_path::find_program;
use warpcc_path_map::{BaseDirs, PathMap, WorkDir, discover};
use warpcc_plan::{Invocation, Unsupported};

use crate::{locate, temporary_folder};

/// Changes when the meaning of a direct record changes.
const DOMAIN: &str = "warpcc direct 2";

/// The part of a key that has a source's content.
pub const SOURCE_CONTENT: &str = "source content";

/// Variables that nvcc and its profile read. `PTXAS_FLAGS += ` in nvcc.profile means that the
/// caller's value is kept.
const NVCC_VARIABLES: &[&str] = &[
    "NVCC_CCBIN",
    "INCLUDES",
    "SYSTEM_INCLUDES",
    "LIBRARIES",
    "CUDAFE_FLAGS",
    "PTXAS_FLAGS",
    "OPENCC_FLAGS",
    "CICC_FLAGS",
    "NVLINK_FLAGS",
    "FATBINARY_FLAGS",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "CICC_PATH",
    "NVVMIR_LIBRARY_DIR",
    "TOP",
    "CUDA_ROOT",
    "NVVM_BRANCH",
    "_NVVM_BRANCH_",
];

/// A call of nvcc.
#[derive(Clone)]
pub struct Request {
    /// The real nvcc.
    pub nvcc: PathBuf,
    /// The user's arguments.
    pub args: Vec<OsString>,
    /// The working directory.
    pub directory: PathBuf,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Folders whose paths are replaced by fixed names in keys and results.
    pub path_map: PathMap,
    /// For a content key, the content of the only source.
    pub source: Option<Digest>,
    /// The parsed command line.
    pub invocation: Invocation,
    /// The terminal that diagnostics go to; `None` where they go elsewhere.
    pub terminal: Option<Terminal>,
}

/// Variables that name a file to which each process of gcc or clang appends. No argument names it.
const FILE_VARIABLES: [&str; 7] = [
    "DEPENDENCIES_OUTPUT",
    "SUNPRO_DEPENDENCIES",
    "CC_LOG_DIAGNOSTICS_FILE",
    "CC_PRINT_HEADERS_FILE",
    "CC_PRINT_INTERNAL_STAT_FILE",
    "CC_PRINT_OPTIONS_FILE",
    "CC_PRINT_PROC_STAT_FILE",
];

impl Request {
    /// Parses a call.
    ///
    /// # Errors
    /// An argument that is not UTF-8, or anything that [`Invocation::parse`] refuses.
    pub fn new(
        nvcc: PathBuf,
        args: &[OsString],
        directory: PathBuf,
        environment: Vec<(OsString, OsString)>,
        base_dirs: &BaseDirs,
    ) -> Result<Self, Unsupported> {
        let text_args: Vec<String> = args
            .iter()
            .map(|a| a.to_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(|| Unsupported::new("an argument that is not UTF-8", ""))?;
        let flags = |name: &str| {
            variable(&environment, name).map_or(Ok(String::new()), |value| {
                value
                    .to_str()
                    .map(str::to_owned)
                    .ok_or_else(|| Unsupported::new("an argument that is not UTF-8", name))
            })
        };
        let read = |name: &str| regular_file::read(&directory.join(name)).ok();
        let mut invocation = match locate::is_clang(nvcc.as_os_str()) {
            true => Invocation::of_clang(&text_args),
            false => Invocation::parse(
                &text_args,
                &flags("NVCC_PREPEND_FLAGS")?,
                &flags("NVCC_APPEND_FLAGS")?,
                &read,
            )?,
        };
        if guards::options_files_are_read() {
            invocation.plain = invocation.plain.or(invocation.hidden_plain);
        }
        let is_set = |name: &&str| variable(&environment, name).is_some();
        if let Some(name) = FILE_VARIABLES.iter().copied().find(is_set) {
            invocation.plain = Some(name);
        }
        let tmpdir = variable(&environment, "TMPDIR");
        if let Some(reason) = temporary_folder::why_unusable(&directory, tmpdir) {
            invocation.plain = Some(reason);
        }
        let terminal = Terminal::behind(
            std::io::stderr(),
            std::io::stdin(),
            std::io::stdout(),
            |name| variable(&environment, name),
        );
        // clang's preprocessed text is nowhere, and so cannot be searched for folders.
        let is_never_mapped = invocation.leaves_intermediate_files() || invocation.is_of_clang;
        let path_map = if base_dirs.is_empty() || is_never_mapped {
            PathMap::default()
        } else {
            path_map_of(
                &nvcc,
                args,
                &directory,
                &environment,
                &invocation,
                base_dirs,
            )
        };
        Ok(Self {
            nvcc,
            args: args.to_vec(),
            path_map,
            source: None,
            directory,
            environment,
            invocation,
            terminal,
        })
    }

    /// A variable of the environment.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        variable(&self.environment, name)
    }

    /// The environment, directory and path map with which the conditions of a record are checked.
    pub fn run_environment(&self) -> RunEnvironment<'_> {
        RunEnvironment {
            environment: &self.environment,
            directory: &self.directory,
            path_map: &self.path_map,
        }
    }

    /// The working directory with its path map.
    pub fn work_dir(&self) -> WorkDir<'_> {
        WorkDir {
            directory: &self.directory,
            path_map: &self.path_map,
        }
    }

    /// The folder for temporary files.
    pub fn temporary(&self) -> PathBuf {
        temporary_folder::of(&self.directory, self.variable("TMPDIR"))
    }

    /// The keys under which this call's result may be stored, made from `key_parts`.
    pub fn keys(&self, key_parts: &KeyParts) -> KeyVariants {
        let terminal = self.terminal.as_ref();
        key_variants(key_parts.key(DOMAIN), self.work_dir(), terminal)
    }

    /// The parts of the direct key, by name.
    pub fn key_parts(&self) -> KeyParts {
        self.key_parts_under(&self.path_map)
    }

    /// The same with another path map.
    fn key_parts_under(&self, path_map: &PathMap) -> KeyParts {
        let mut sink = Explaining::new();
        let invocation = &self.invocation;
        let fixed = |path: &OsStr| path_map.fixed_bytes(path.as_encoded_bytes()).into_owned();
        if !path_map.is_empty() {
            sink.part("relocatable", path_map.names().as_bytes());
        }
        match &self.source {
            // A content key needs no such part: a path that leads from one mapped folder into another one is searched for
            // when the result is made.
            Some(source) => sink.part(SOURCE_CONTENT, source.to_string().as_bytes()),
            None => {
                for place in path_map.nesting() {
                    sink.part("folder in folder", place.as_bytes());
                }
            }
        }
        sink.part("nvcc", &fixed(self.nvcc.as_os_str()));
        let path = self.variable("PATH");
        let named = invocation
            .compiler_bindir
            .as_deref()
            .or_else(|| self.variable("NVCC_CCBIN").and_then(OsStr::to_str));
        let compilers: Vec<String> = match named {
            Some(file) if self.directory.join(file).is_dir() => {
                vec![format!("{file}/gcc"), format!("{file}/g++")]
            }
            Some(file) => vec![file.to_owned()],
            None => vec!["gcc".to_owned(), "g++".to_owned()],
        };
        for name in compilers.iter().map(String::as_str).chain(["as", "ld"]) {
            let file = find_program(name, path, &self.directory).unwrap_or_default();
            let name = path_map.fixed(name);
            if !guards::is_off("programs-in-keys") {
                sink.part(&format!("program {name}"), &fixed(file.as_os_str()));
            }
        }
        for (name, value) in invocation.named_key_parts(&|path| path_map.fixed(path).into_owned()) {
            sink.part(name, value.as_bytes());
        }
        if (!self.is_independent_of_directory() || invocation.makes_lto_code())
            && !guards::is_off("folder-in-keys")
        {
            sink.part("working directory", &fixed(self.directory.as_os_str()));
            let pwd = self.variable("PWD");
            if let Some(called) = directory_as_called(pwd, &self.directory) {
                sink.part("working directory as called", &fixed(called));
            }
        }
        if invocation.debug && !guards::is_off("scratch-folder") {
            sink.part(
                "scratch folder",
                self.temporary().as_os_str().as_encoded_bytes(),
            );
        }
        for name in NVCC_VARIABLES
            .iter()
            .chain(HOST_VARIABLES)
            .chain(LANGUAGE_VARIABLES)
        {
            if let Some(value) = self.variable(name)
                && !guards::is_off("variables-in-keys")
            {
                let value = path_map.fixed_list(value.as_encoded_bytes());
                sink.part(&format!("variable {name}"), &value);
            }
        }
        if invocation.is_of_clang && self.terminal.as_ref().is_some_and(Terminal::is_for_output) {
            sink.part("standard output", b"a terminal");
        }
        if invocation.library
            && !guards::is_off("archive-before")
            && let Some(archive) = &invocation.output
        {
            let old_content = Digest::of_file(&self.directory.join(archive))
                .map_or_else(|_| "nothing".to_owned(), |d| d.to_string());
            sink.part("archive before", old_content.as_bytes());
        }
        sink.finish()
    }

    /// The key parts that the call would have with `base_dir = "auto"`, and that path map. `None` where the call has a path map
    /// already, leaves intermediate files, or has no folder to map.
    pub fn key_parts_without_folders(&self) -> Option<(KeyParts, PathMap)> {
        let is_never_mapped =
            self.invocation.leaves_intermediate_files() || self.invocation.is_of_clang;
        if !self.path_map.is_empty() || is_never_mapped {
            return None;
        }
        let path_map = self.folders(&BaseDirs::found());
        (!path_map.is_empty()).then(|| (self.key_parts_under(&path_map), path_map))
    }

    /// The folders of the call that this setting would map.
    pub fn folders(&self, base_dirs: &BaseDirs) -> PathMap {
        path_map_of(
            &self.nvcc,
            &self.args,
            &self.directory,
            &self.environment,
            &self.invocation,
            base_dirs,
        )
    }

    /// Whether the call has the same result in every working directory.
    pub fn is_independent_of_directory(&self) -> bool {
        self.invocation.output_is_free() && self.invocation.is_absolute()
    }

    /// The identity by which `warpcc why` finds the last call like this one: the working directory and the output, or the
    /// inputs if no output is named.
    pub fn identity(&self) -> KeyParts {
        let mut sink = Explaining::new();
        sink.part(
            "working directory",
            self.directory.as_os_str().as_encoded_bytes(),
        );
        match &self.invocation.output {
            Some(output) => sink.part("output", output.as_bytes()),
            None => self
                .invocation
                .inputs
                .iter()
                .for_each(|i| sink.part("input", i.as_bytes())),
        }
        sink.finish()
    }

    /// A path of the user, made absolute.
    pub fn absolute(&self, path: &str) -> PathBuf {
        self.directory.join(Path::new(path))
    }
}

fn path_map_of(
    nvcc: &Path,
    args: &[OsString],
    directory: &Path,
    environment: &[(OsString, OsString)],
    invocation: &Invocation,
    base_dirs: &BaseDirs,
) -> PathMap {
    let words = args.iter().map(OsString::as_os_str);
    let words = words.chain([nvcc.as_os_str()]).filter_map(OsStr::to_str);
    let words: Vec<String> = words.map(str::to_owned).collect();
    let call = warpcc_path_map::CallFolders {
        directory,
        called: variable(environment, "PWD").map(Path::new),
        inputs: &invocation.inputs,
        words: &words,
    };
    discover(base_dirs, &call)
}

fn variable<'a>(environment: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    environment
        .iter()
        .find(|(n, _)| n == name)
        .map(|(_, v)| v.as_os_str())
}
