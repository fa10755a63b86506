//! Runs the commands of `warpcc jit`, and returns their exit codes. They are about the code that a driver compiles when a
//! program starts.

mod advise;
mod args;
mod binaries;
mod cache;
mod exit_code;
mod load;
mod print;
mod prove;
mod ptxas;
mod warm;

pub use args::JitCommand;
pub use load::load;

use crate::config::{Config, ConfigError, variable};
use crate::process_context::ProcessContext;

/// Runs one of the commands, and returns the exit code.
///
/// # Errors
/// The command could not be carried out.
pub fn run(command: &JitCommand, config: &Config, context: &ProcessContext) -> anyhow::Result<i32> {
    match command {
        JitCommand::Advise(args) => advise::advise(args, config, context),
        JitCommand::Warm(args) => warm::warm(args, context),
        JitCommand::Cache(args) => cache::cache(args, context),
        JitCommand::Prove(args) => prove::prove(args, config, context),
        JitCommand::Load(args) => load(args),
    }
}

/// The GPU and the driver of this machine, reported by a process of its own, which a faulty driver may end.
///
/// # Errors
/// There is none, in words.
pub fn this_machine(
    longest: std::time::Duration,
    context: &ProcessContext,
) -> Result<warpcc_jit::GpuWithDriver, String> {
    let loading = warpcc_jit::Loading {
        longest,
        ..warm::loading(0, args::By::Module, context)
    };
    loading.gpu()
}

/// Reads the settings. These commands do not use our own cache, so it is no error if its folder is missing: a missing home
/// is one of the problems that they report.
///
/// # Errors
/// A setting is wrong.
pub fn settings() -> Result<Config, ConfigError> {
    match Config::load(variable) {
        Err(ConfigError::NoHome) => {
            let nowhere = |name: &str| (name == "WARPCC_DIR").then(|| "/dev/null".into());
            Config::load(|name| variable(name).or_else(|| nowhere(name)))
        }
        other => other,
    }
}
