//! `warpcc completions`: the script that lets a shell complete warpcc's commands.

use std::io::{self, Write};

use clap::Args;
use clap_complete::Generator;

use super::output;

/// `warpcc completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell to complete in
    #[arg(value_enum)]
    pub shell: CompletionShell,
}

/// A shell warpcc completes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CompletionShell {
    /// bash
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

/// Prints the script for warpcc's command line, `command`; the exit code is 0.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: &CompletionsArgs, command: clap::Command) -> anyhow::Result<i32> {
    output::print(|out| write(args.shell, command, out))?;
    Ok(0)
}

/// Write the completion script for `shell`.
pub fn write(
    shell: CompletionShell,
    mut command: clap::Command,
    out: &mut dyn Write,
) -> io::Result<()> {
    command.set_bin_name("warpcc");
    command.build();
    // The generators panic on a failed write; a `Vec` cannot fail, `out` can.
    let mut script = Vec::new();
    match shell {
        CompletionShell::Bash => clap_complete::Shell::Bash.generate(&command, &mut script),
        CompletionShell::Zsh => clap_complete::Shell::Zsh.generate(&command, &mut script),
        CompletionShell::Fish => clap_complete::Shell::Fish.generate(&command, &mut script),
    }
    out.write_all(&script)
}
