//! The arguments of `warpcc compile-commands`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

const EXAMPLES: &str = "\
Examples:
  warpcc compile-commands build/compile_commands.json
                              from the database that CMake wrote (CMAKE_EXPORT_COMPILE_COMMANDS=ON)
  warpcc compile-commands     from the remembered calls of `warpcc nvcc` for sources below this folder

clangd finds compile_commands.json in the folder of a source and in those above it.";

/// `warpcc compile-commands`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompileCommandsArgs {
    /// The database to translate; without it, warpcc translates the calls that it remembers
    #[arg(value_name = "DATABASE", value_hint = ValueHint::FilePath)]
    pub database: Option<PathBuf>,
    /// The file to write [default: compile_commands.json in the project's folder]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// The project's folder: remembered calls count if they compile a source below it
    #[arg(long, value_name = "FOLDER", default_value = ".", value_hint = ValueHint::DirPath)]
    pub project: PathBuf,
    /// Read sources as they are compiled for the host, without __CUDA_ARCH__
    #[arg(long)]
    pub host: bool,
    /// The clangd that will read the file, to ask which architectures it knows [default: the one in PATH]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::ExecutablePath)]
    pub clangd: Option<PathBuf>,
}
