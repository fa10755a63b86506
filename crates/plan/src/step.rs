//! The typed form of one command: a tool, its arguments with the files in them, what it reads
//! and what it writes. Temporary names are never edited as text; they are [`Part::File`]s.

use std::fmt;

/// Index of a file in [`crate::TaskGraph::files`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// The role of a file for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Inside the private keep folder: the user does not see it.
    Temp,
    /// Written where the user asked for it.
    Output,
    /// Read only: it was there before.
    External,
}

/// A file that the plan mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFile {
    /// As the dry run spells it.
    pub path: String,
    /// Temp, output or external.
    pub kind: FileKind,
    /// The step that writes it, by index.
    pub writer: Option<usize>,
}

impl PlanFile {
    /// The last component of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// A tool of the CUDA toolkit or of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    /// Host compiler with `-E`.
    Preprocess,
    /// `cudafe++`: splits host from device code.
    CudaFe,
    /// `cicc`: device C++ to PTX (or LTO-IR, OptiX-IR).
    Cicc,
    /// `cicc` as far as its front end, for the stub alone (docs/design/overlap.md).
    EarlyStub,
    /// `ptxas`: PTX to cubin.
    Ptxas,
    /// `fatbinary`.
    Fatbinary,
    /// `nvlink`.
    Nvlink,
    /// Host compiler with `-c`.
    HostCompile,
    /// Host compiler with `-S`: the first half of a split host compile (docs/design/overlap.md).
    HostAssembly,
    /// Puts the fat binary into the assembly and assembles: the second half.
    Assemble,
    /// Host compiler as linker.
    HostLink,
    /// `ar`.
    Archive,
    /// nvcc's own dependency filter, which runs in this process.
    FilterDependencies,
}

impl Tool {
    /// The name in reports, tables and statistics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Preprocess => "preprocess",
            Self::CudaFe => "cudafe++",
            Self::Cicc => "cicc",
            Self::EarlyStub => "stub",
            Self::Ptxas => "ptxas",
            Self::Fatbinary => "fatbinary",
            Self::Nvlink => "nvlink",
            Self::HostCompile | Self::HostAssembly => "host",
            Self::Assemble => "as",
            Self::HostLink => "link",
            Self::Archive => "ar",
            Self::FilterDependencies => "dependencies",
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A piece of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Literal text, part of the key as it stands.
    Text(String),
    /// A file of the plan.
    File(FileId),
}

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arg(pub Vec<Part>);

impl Arg {
    /// An argument without files.
    pub fn text(text: impl Into<String>) -> Self {
        Self(vec![Part::Text(text.into())])
    }

    /// An argument that is a file.
    pub fn file(file: FileId) -> Self {
        Self(vec![Part::File(file)])
    }

    /// The literal text, if there is nothing else.
    pub fn as_text(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Part::Text(t)] => Some(t),
            [] => Some(""),
            _ => None,
        }
    }
}

/// The program of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// Looked up in the PATH that the dry run set, unless it has a slash.
    Named(String),
    /// The path that `COMPILER -print-prog-name=NAME` prints: nvcc asks the host compiler for `ar`.
    AskCompiler {
        /// The compiler to ask.
        compiler: String,
        /// The program it is asked for.
        name: String,
    },
    /// No process: done in this one.
    Internal,
}

/// One command of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The kind of command.
    pub tool: Tool,
    /// The program to execute.
    pub program: Program,
    /// Arguments after the program.
    pub args: Vec<Arg>,
    /// Files it reads, in order of appearance, the implied ones last.
    pub reads: Vec<FileId>,
    /// Files it writes.
    pub writes: Vec<FileId>,
    /// Files that nvcc removes right before it, such as an old archive before `ar`.
    pub removes: Vec<String>,
    /// The architecture it works for: `compute_90`, `sm_90`; `None` for the host.
    pub arch: Option<String>,
    /// The line as nvcc printed it, for reports.
    pub raw: String,
}

impl Step {
    /// Whether the base names of the files it reads and writes can show in its results.
    ///
    /// Seen on 13.5: cicc's do not (its stub holds the stub's path, which is handled apart);
    /// ptxas's only with debug information; the host compiler writes its source's into the
    /// object. For the cheap tools the question is not asked.
    pub fn names_matter(&self) -> bool {
        match self.tool {
            Tool::Cicc => false,
            Tool::Ptxas => self.has_debug_information(),
            _ => true,
        }
    }

    /// Whether a flag asks for debug information or line tables, in which paths stand.
    pub fn has_debug_information(&self) -> bool {
        self.args.iter().filter_map(Arg::as_text).any(|a| {
            (a.starts_with("-g") && !a.starts_with("-gno")) && a != "-g0"
                || a == "-G"
                || a.contains("lineinfo")
                || a.contains("line-info")
                || a == "--device-debug"
        })
    }
}
