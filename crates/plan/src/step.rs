//! The typed form of one command: a tool, its arguments with the files in them, what it reads
//! and what it writes. Temporary names are never edited as text; they are [`Part::File`]s.

use std::fmt;

/// The word by which cicc is its front end alone.
pub const FRONT_END: &str = "-lgenfe";

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
    /// Only read: it existed before.
    External,
}

/// A file that the plan mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFile {
    /// The path as the dry run spells it.
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

    /// Whether this is the file of a module id, the text that nvcc makes of the source's path for names in an object.
    pub fn is_module_id(&self) -> bool {
        self.path.ends_with(".module_id")
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
    /// `cicc` as libNVVM alone: bitcode to PTX, after a [`Tool::Cicc`] that is its front end alone (docs/design/early-cutoff.md).
    Nvvm,
    /// `ptxas`: PTX to cubin.
    Ptxas,
    /// `fatbinary`.
    Fatbinary,
    /// `nvlink`.
    Nvlink,
    /// Host compiler with `-c`.
    HostCompile,
    /// `clang -cc1`: a CUDA source for the host or for one architecture, where clang is the CUDA compiler.
    Clang,
    /// Host compiler with `-S`: the first half of a split host compile (docs/design/overlap.md).
    HostAssembly,
    /// Inserts the fat binary into the assembly and assembles it: the second half.
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
            Self::Nvvm => "nvvm",
            Self::Ptxas => "ptxas",
            Self::Fatbinary => "fatbinary",
            Self::Nvlink => "nvlink",
            Self::HostCompile | Self::HostAssembly => "host",
            Self::Clang => "clang",
            Self::Assemble => "as",
            Self::HostLink => "link",
            Self::Archive => "ar",
            Self::FilterDependencies => "dependencies",
        }
    }

    /// Whether it comes with the CUDA toolkit. The others are the host's.
    pub fn is_of_toolkit(self) -> bool {
        match self {
            Self::CudaFe
            | Self::Cicc
            | Self::Nvvm
            | Self::Ptxas
            | Self::Fatbinary
            | Self::Nvlink
            | Self::FilterDependencies => true,
            Self::Preprocess
            | Self::HostCompile
            | Self::Clang
            | Self::HostAssembly
            | Self::Assemble
            | Self::HostLink
            | Self::Archive => false,
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
    /// Literal text, which is part of the key as it is.
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

    /// The literal text, if the argument contains no file.
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
    /// No program: this process does the work.
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
    /// The files that it reads, in order of appearance, with the implied ones last.
    pub reads: Vec<FileId>,
    /// Files it writes.
    pub writes: Vec<FileId>,
    /// Files that nvcc removes right before the step, such as an old archive before `ar`.
    pub removes: Vec<String>,
    /// The architecture it works for: `compute_90`, `sm_90`; `None` for the host.
    pub arch: Option<String>,
    /// The line as nvcc printed it, for reports.
    pub raw: String,
}

impl Step {
    /// Whether the results may contain the base names of the step's files.
    ///
    /// Seen on 13.5: cicc's results do not contain them (the path in its stub is handled separately); those of ptxas do only
    /// with debug information; the object contains the name of the host compiler's source. For the cheap tools this is not
    /// examined: the answer is yes.
    pub fn names_matter(&self) -> bool {
        match self.tool {
            Tool::Cicc | Tool::Nvvm => false,
            Tool::Ptxas => self.has_debug_information(),
            _ => true,
        }
    }

    /// Whether this is cicc's front end alone, which makes bitcode.
    pub fn is_front_end(&self) -> bool {
        let first = self.args.first().and_then(Arg::as_text);
        self.tool == Tool::Cicc && first == Some(FRONT_END)
    }

    /// Whether an option asks for debug information or line tables, which contain paths.
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
