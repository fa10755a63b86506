//! The command line of warpcc's own subcommands, as typed; what they mean is the driver's.
//!
//! Launching a compiler (`warpcc nvcc -c x.cu`, or warpcc under the name of nvcc)
//! never comes here: its arguments are nvcc's, and it must not pay for clap.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueHint};
use clap_complete::Generator;

use crate::explain::ExplainArgs;
use crate::fatbin::FatbinCommand;
use crate::insight::{DoctorArgs, MonitorArgs, ReportArgs};
use crate::jit::JitCommand;
use crate::rtc::RtcCommand;

const EXAMPLES: &str = "\
Examples:
  warpcc nvcc -c kernel.cu -o kernel.o       compile, in parallel and through the cache
  cmake -DCMAKE_CUDA_COMPILER_LAUNCHER=warpcc ...
  warpcc run --graph plan.svg -- -c kernel.cu
                                             compile, and draw what nvcc did
  warpcc stats                               how often the cache was hit
  warpcc why -- nvcc -c kernel.cu            why this command missed
  warpcc report -o build.html                where the time of the last build went
  warpcc explain nvcc -c kernel.cu           what nvcc does with it, step by step

Any other first word is a compiler to launch.
Settings come from the environment and a file: warpcc config";

const RUN_EXAMPLES: &str = "\
Examples:
  warpcc run --graph plan.png -- -c kernel.cu -arch=all-major
  warpcc run --table times.csv --save parts -- -c kernel.cu
  warpcc run --trace trace.json -- -c kernel.cu    open it in ui.perfetto.dev";

const WHY_EXAMPLES: &str = "\
Examples:
  warpcc why -- nvcc -c kernel.cu -o kernel.o";

/// Subcommands and what else clap answers; everything else is a compiler.
const OWN_WORDS: [&str; 19] = [
    "run",
    "stats",
    "report",
    "monitor",
    "doctor",
    "cache",
    "remote",
    "config",
    "why",
    "explain",
    "fatbin",
    "jit",
    "rtc",
    "completions",
    "help",
    "-h",
    "--help",
    "-V",
    "--version",
];

/// Parallel, cached CUDA compilation in front of nvcc
#[derive(Debug, Parser)]
#[command(name = "warpcc", version, after_help = EXAMPLES, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What the user asked warpcc itself to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compile, and write a graph, a table or a trace of what ran
    Run(RunArgs),
    /// Show cache hits and misses, and why calls fell back to nvcc
    Stats(StatsArgs),
    /// Show where the time of a build went
    Report(ReportArgs),
    /// Show what runs on this machine now
    Monitor(MonitorArgs),
    /// Find problems with this setup, and say how to fix them
    Doctor(DoctorArgs),
    /// Manage the cache folder
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Manage the shared caches
    #[command(subcommand)]
    Remote(RemoteCommand),
    /// Show every setting and where it was set
    Config(ConfigArgs),
    /// Say why a command hits or misses the cache
    Why(WhyArgs),
    /// Run a command one step at a time, and explain what each step does
    Explain(ExplainArgs),
    /// Inspect CUDA binaries: what they contain, and what a driver does with them
    #[command(subcommand)]
    Fatbin(FatbinCommand),
    /// Predict and prepare what a driver compiles when a program starts
    #[command(subcommand)]
    Jit(JitCommand),
    /// Compile a program's run-time kernels ahead of time
    #[command(subcommand)]
    Rtc(RtcCommand),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

/// `warpcc run`.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct RunArgs {
    /// Draw the commands and the files between them; the file's ending chooses dot, svg or png
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(value_parser = OsStringValueParser::new().try_map(GraphFile::from_name))]
    pub graph: Option<GraphFile>,
    /// Write one line per command: seconds, memory, files and their sizes (CSV)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub table: Option<PathBuf>,
    /// Keep all intermediate files in this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub save: Option<PathBuf>,
    /// Write the environment and the commands in full, like nvcc --verbose
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub verbose: Option<PathBuf>,
    /// Write a timeline for ui.perfetto.dev or chrome://tracing (JSON)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Show progress in one line of the terminal; nothing without a terminal
    #[arg(long)]
    pub progress: bool,
    /// Run nvcc's commands exactly, with nothing overlapped
    #[arg(long)]
    pub faithful: bool,
    /// Run one command after the other, in nvcc's order
    #[arg(long, conflicts_with = "jobs")]
    pub sequential: bool,
    /// Don't use or store cached results
    #[arg(long)]
    pub no_cache: bool,
    /// Run at most this many commands at once
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// The nvcc to use
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pub nvcc: Option<PathBuf>,
    /// nvcc's arguments, with or without a compiler's name before them
    #[arg(last = true, required = true, value_name = "ARGS")]
    pub args: Vec<OsString>,
}

/// `warpcc stats`.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Write JSON
    #[arg(long)]
    pub json: bool,
    /// Reset all counters after showing them
    #[arg(long)]
    pub zero: bool,
}

/// `warpcc cache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum CacheCommand {
    /// Print its path
    Dir,
    /// Print its size and number of entries
    Size,
    /// Remove everything in it
    Clear,
    /// Remove the entries used longest ago, until the cache fits its limit
    Gc,
    /// Check every entry against its checksum, and remove what is damaged
    Verify,
}

/// `warpcc remote`.
#[derive(Debug, Subcommand)]
pub enum RemoteCommand {
    /// Test each shared cache: what it is, and how fast it answers
    Ping(RemoteArgs),
    /// Show downloads, uploads and waiting uploads of each shared cache
    Stat(RemoteArgs),
    /// Upload everything that waits; for the last step of a CI job
    Upload(UploadArgs),
}

/// `warpcc remote ping` and `stat`.
#[derive(Debug, Args)]
pub struct RemoteArgs {
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// `warpcc remote upload`.
#[derive(Debug, Args)]
pub struct UploadArgs {
    /// Stop after so many seconds; the rest is kept for the next upload
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub limit: u64,
    /// As builds start it: leave alone what is left alone, and say nothing
    #[arg(long, hide = true)]
    pub background: bool,
}

/// `warpcc config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// `warpcc why`.
#[derive(Debug, Args)]
#[command(after_help = WHY_EXAMPLES)]
pub struct WhyArgs {
    /// The command, with or without the compiler's name
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(required = true, value_name = "ARGS")]
    pub args: Vec<OsString>,
}

/// `warpcc completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell to complete in
    #[arg(value_enum)]
    pub shell: Shell,
}

/// A shell warpcc completes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Shell {
    /// bash
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

/// How a graph is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphFormat {
    /// Text for Graphviz.
    Dot,
    /// A drawing that scales and has tooltips.
    Svg,
    /// A picture.
    Png,
}

/// Where to draw a graph, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphFile {
    /// The file to write.
    pub path: PathBuf,
    /// The form its name asks for.
    pub format: GraphFormat,
}

impl GraphFile {
    fn from_name(name: OsString) -> Result<Self, &'static str> {
        let path = PathBuf::from(name);
        let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        let format = match ending.to_ascii_lowercase().as_str() {
            "dot" | "gv" => GraphFormat::Dot,
            "svg" => GraphFormat::Svg,
            "png" => GraphFormat::Png,
            _ => return Err("the name must end in .dot, .svg or .png"),
        };
        Ok(Self { path, format })
    }
}

/// Whether warpcc's first argument is for warpcc; if not, it names a compiler to launch.
pub fn is_subcommand(first_arg: &OsStr) -> bool {
    OWN_WORDS.iter().any(|word| first_arg == *word)
}

/// The subcommand that a compiler which could not be found was probably meant to be.
pub fn nearest_subcommand(first_arg: &str) -> Option<&'static str> {
    let close = |word: &&str| strsim::jaro_winkler(first_arg, word) > 0.84;
    OWN_WORDS
        .into_iter()
        .filter(|word| !word.starts_with('-'))
        .find(close)
}

/// Read the command line, with the program's name first.
///
/// An `Err` is also how clap returns help and the version: print it with
/// `clap::Error::print` and end with `clap::Error::exit_code`.
pub fn parse<I>(args: I) -> Result<Command, clap::Error>
where
    I: IntoIterator<Item: Into<OsString> + Clone>,
{
    Cli::try_parse_from(args).map(|cli| cli.command)
}

/// Take the compiler's name off the front of `run`'s or `why`'s arguments, if it is there.
///
/// A compiler is named `nvcc` or begins so (`/opt/cuda/bin/nvcc-13.0`); a source
/// file that begins so (`nvcc_test.cu`) has an extension that says otherwise.
pub fn split_compiler(args: &[OsString]) -> (Option<&Path>, &[OsString]) {
    match args.split_first() {
        Some((first, rest)) if names_compiler(Path::new(first)) => (Some(Path::new(first)), rest),
        _ => (None, args),
    }
}

fn names_compiler(first: &Path) -> bool {
    let Some(name) = first.file_name().and_then(OsStr::to_str) else {
        return false;
    };
    let source = |ending: &OsStr| {
        [
            "cu", "c", "cc", "cpp", "cxx", "o", "a", "so", "ptx", "cubin", "fatbin",
        ]
        .iter()
        .any(|known| ending == *known)
    };
    name.starts_with("nvcc") && !first.extension().is_some_and(source)
}

/// Write the completion script for `shell`.
pub fn completions(shell: Shell, out: &mut dyn Write) -> io::Result<()> {
    let mut command = Cli::command();
    command.set_bin_name("warpcc");
    command.build();
    // The generators panic on a failed write; a `Vec` cannot fail, `out` can.
    let mut script = Vec::new();
    match shell {
        Shell::Bash => clap_complete::Shell::Bash.generate(&command, &mut script),
        Shell::Zsh => clap_complete::Shell::Zsh.generate(&command, &mut script),
        Shell::Fish => clap_complete::Shell::Fish.generate(&command, &mut script),
    }
    out.write_all(&script)
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;
