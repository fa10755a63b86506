//! `warpcc why`: says why calls of the last build missed, or one file's last call, or a command.

mod call;
mod command;
mod last_build;
mod print;

use std::ffi::OsString;
use std::path::Path;

use clap::Args;

use super::nvcc::{find_nvcc, program_that_is_no_nvcc, split_compiler};
use super::output;
use crate::config::Config;
use crate::process_context::ProcessContext;
use print::Why;

const WHY_EXAMPLES: &str = "\
Examples:
  warpcc why                                 the misses of the last build
  warpcc why kernel.cu                       the last call that compiled this file
  warpcc why -- nvcc -c kernel.cu -o kernel.o
                                             what this command would do now";

/// `warpcc why`.
#[derive(Debug, Args)]
#[command(after_help = WHY_EXAMPLES)]
pub struct WhyArgs {
    /// A source file, or a command with or without the compiler's name; without it, the last build
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "ARGS")]
    pub args: Vec<OsString>,
}

/// Prints the reasons. The exit code is 0, or 1 if the cache remembers no such call.
///
/// # Errors
/// No nvcc, or no cache.
pub fn run(args: &WhyArgs, config: &Config, context: &ProcessContext) -> anyhow::Result<i32> {
    match args.args.as_slice() {
        [] => last_build::run(config),
        [file] if names_source(file) => call::run(Path::new(file), config, context),
        words => {
            let why = match program_that_is_no_nvcc(words, context) {
                Some(program) => Why::OtherProgram(program),
                None => {
                    let (named, rest) = split_compiler(words);
                    let nvcc = find_nvcc(named, config, context)?;
                    command::why(nvcc, rest, &context.directory, config, context)?
                }
            };
            output::print(|out| print::write(&why, out))?;
            Ok(0)
        }
    }
}

/// A single word that is no option and no compiler.
fn names_source(word: &OsString) -> bool {
    let (compiler, _) = split_compiler(std::slice::from_ref(word));
    compiler.is_none() && !word.as_encoded_bytes().starts_with(b"-")
}
