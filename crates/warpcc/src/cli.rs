//! The command line of warpcc's own subcommands, as typed; which command each form runs.
//!
//! A compiler call (`warpcc nvcc -c x.cu`, or warpcc under the name of nvcc) does not come here: its arguments are
//! nvcc's, and loading clap would make a hit slower.

use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::cache::{self, CacheCommand};
use crate::commands::compile_commands::{self, CompileCommandsArgs};
use crate::commands::completions::{self, CompletionsArgs};
use crate::commands::config::{self as config_command, ConfigArgs};
use crate::commands::doctor::{self, DoctorArgs};
use crate::commands::explain::{self, ExplainArgs};
use crate::commands::fatbin::{self, FatbinCommand};
use crate::commands::jit::{self, JitCommand};
use crate::commands::man::{self, ManArgs};
use crate::commands::monitor::{self, MonitorArgs};
use crate::commands::remote::{self, RemoteCommand};
use crate::commands::report::{self, ReportArgs};
use crate::commands::rtc::{self, RtcCommand};
use crate::commands::run::{self, RunArgs};
use crate::commands::setup::{self, SetupArgs};
use crate::commands::shim::{self, ShimArgs};
use crate::commands::stats::{self, StatsArgs};
use crate::commands::version;
use crate::commands::why::{self, WhyArgs};
use crate::commands::why_gpu::{self, WhyGpuArgs};
use crate::config::{Config, variable};
use crate::process_context::ProcessContext;
use crate::subcommand_words;

const EXAMPLES: &str = "\
Examples:
  warpcc nvcc -c kernel.cu -o kernel.o       compile, in parallel and through the cache
  cmake -DCMAKE_CUDA_COMPILER_LAUNCHER=warpcc ...
  warpcc run --graph plan.svg -- -c kernel.cu
                                             compile, and draw what nvcc did
  warpcc stats                               how often the cache was hit
  warpcc why                                 why calls of the last build missed
  warpcc report -o build.html                where the time of the last build went
  warpcc explain nvcc -c kernel.cu           what nvcc does with it, step by step

Any other first word is a compiler to launch.
Settings come from the environment and a file: warpcc config";

/// Parallel, cached CUDA compilation in front of nvcc
#[derive(Debug, Parser)]
#[command(name = "warpcc", version, after_help = EXAMPLES, max_term_width = 100)]
#[command(override_usage = "warpcc COMPILER [ARGS]...\n       warpcc <COMMAND>")]
#[command(subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    /// With --version: also what the program was built from and for
    // Answered before clap reads the line; here it stands in the help.
    #[arg(short, long, requires = "version")]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

/// The commands of warpcc itself.
#[derive(Debug, Subcommand)]
enum Command {
    /// Compile, and write a graph, a table or a trace of what ran
    Run(RunArgs),
    /// Show cache hits and misses, and why calls were bypassed
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
    /// Say why the last build, a file or a command missed the cache
    Why(WhyArgs),
    /// Say which installed Python packages run on a GPU, which must be compiled first, which fail, and how to fix them
    WhyGpu(WhyGpuArgs),
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
    /// Set up a shell, CMake, PyTorch or a CI job to use warpcc
    Setup(SetupArgs),
    /// Make a toolkit folder whose nvcc is warpcc, for programs that only take $CUDA_HOME/bin/nvcc
    Shim(ShimArgs),
    /// Write the compilation database from which clangd reads CUDA sources
    CompileCommands(CompileCommandsArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Write manual pages
    Man(ManArgs),
}

/// Runs the command that `args` (the program's name first) ask for; gives the exit code.
///
/// # Errors
/// The command failed. The message is for the user, and names the file.
pub fn run(args: &[OsString], context: ProcessContext) -> anyhow::Result<i32> {
    if version::is_asked(args.get(1..).unwrap_or_default()) {
        return version::run();
    }
    let command = match parse(args) {
        Ok(command) => command,
        Err(error) => {
            // Help and the version also come this way. A closed pipe is the reader's business.
            _ = error.print();
            let first = args.get(1).and_then(|word| word.to_str());
            if error.exit_code() != 0 {
                if let Some(ours) = first.and_then(subcommand_words::meant_by) {
                    crate::log::fail(&format!("did you mean `{ours}`?"));
                } else if args.len() > 2 && first.is_some_and(|word| word.starts_with('-')) {
                    crate::log::fail("the compiler comes first: warpcc nvcc -c x.cu");
                }
            }
            return Ok(error.exit_code());
        }
    };
    let config = || Config::load(variable);
    match command {
        Command::Completions(args) => completions::run(&args, Cli::command()),
        Command::Setup(args) => setup::run(&args, &context),
        Command::Man(args) => man::run(&args, Cli::command()),
        Command::Fatbin(command) => fatbin::run(&command),
        Command::WhyGpu(args) => why_gpu::run(&args, &context),
        // Started by `jit warm`, which has read the settings.
        Command::Jit(JitCommand::Load(args)) => jit::load(&args),
        Command::Jit(command) => jit::run(&command, &jit::settings()?, &context),
        Command::Rtc(command) => rtc::run(&command, &context),
        // A wrong setting is one of the things to find.
        Command::Doctor(args) => doctor::run(&args, config(), &context),
        Command::Run(args) => run::run(&args, &config()?, context),
        Command::Explain(args) => explain::run(&args, &config()?, context),
        Command::Shim(args) => shim::run(&args, &config()?, &context),
        Command::CompileCommands(args) => compile_commands::run(&args, &config()?, &context),
        Command::Stats(args) => stats::run(&args, &config()?),
        Command::Report(args) => report::run(&args, &config()?),
        Command::Monitor(args) => monitor::run(&args, &config()?),
        Command::Cache(command) => cache::run(&command, &config()?),
        Command::Remote(command) => remote::run(&command, &config()?, &context.ourselves[0]),
        // It may mend a wrong setting.
        Command::Config(args) if !args.set.is_empty() => config_command::set(&args.set, variable),
        Command::Config(args) => config_command::run(&args, &config()?),
        Command::Why(args) => why::run(&args, &config()?, &context),
    }
}

/// Whether the command `word` takes `args`.
pub fn takes(word: &str, args: &[OsString]) -> bool {
    let first = ["warpcc", word].map(OsString::from);
    parse(first.iter().chain(args)).is_ok()
}

/// Read the command line, with the program's name first.
///
/// An `Err` is also how clap returns help and the version: print it with
/// `clap::Error::print` and end with `clap::Error::exit_code`.
fn parse<I>(args: I) -> Result<Command, clap::Error>
where
    I: IntoIterator<Item: Into<OsString> + Clone>,
{
    Cli::try_parse_from(args).map(|cli| cli.command)
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;
