//! `warpcc setup`: lets a shell, CMake, PyTorch or a CI job use warpcc, shows each change, and takes it back.

mod block;
mod ci;
mod lines;
mod link;
mod start_file;

use std::io::{self, Write};

use anyhow::Context;
use clap::{ArgGroup, Args};

use super::output;
use crate::process_context::ProcessContext;
use ci::Ci;
use lines::Mode;
use link::LinkChange;
use start_file::{StartFile, StartFileEdit};

const SETUP_EXAMPLES: &str = "\
Examples:
  warpcc setup --shell --dry-run     shows what would change
  warpcc setup --shell               nvcc means warpcc in new shells
  warpcc setup --shell --undo        restores the start file, byte for byte
  warpcc setup --ci github           prints lines to copy into a job

The lines go between two marker comments into the start file of your shell: .bashrc, .zshrc,
config.fish, else .profile. A file that is a link or not yours is left alone.";

/// `warpcc setup`.
#[derive(Debug, Args)]
#[command(after_help = SETUP_EXAMPLES)]
#[command(group = ArgGroup::new("what").required(true).args(["shell", "cmake", "pip", "ci"]))]
pub struct SetupArgs {
    /// Make nvcc mean warpcc in new shells, with a folder that comes first in PATH
    #[arg(long)]
    pub shell: bool,
    /// Make CMake use warpcc in new shells, and print a preset for a project
    #[arg(long)]
    pub cmake: bool,
    /// Make builds of PyTorch extensions use warpcc in new shells
    #[arg(long)]
    pub pip: bool,
    /// Print lines for a CI job, and change nothing
    #[arg(long, value_enum, value_name = "SYSTEM")]
    pub ci: Option<Ci>,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Undo the change
    #[arg(long, conflicts_with = "ci")]
    pub undo: bool,
}

/// Shows and makes the changes; the exit code is 0.
///
/// # Errors
/// No home, a start file that is not to be touched, or one that cannot be written.
pub fn run(args: &SetupArgs, context: &ProcessContext) -> anyhow::Result<i32> {
    if let Some(ci) = args.ci {
        output::print(|out| out.write_all(ci.lines().as_bytes()))?;
        return Ok(0);
    }
    let mode = match (args.shell, args.cmake) {
        (true, _) => Mode::Shell,
        (_, true) => Mode::Cmake,
        _ => Mode::Pip,
    };
    let file = StartFile::find(context)?;
    let link = match mode {
        Mode::Shell => Some(link::find(context)?),
        Mode::Cmake | Mode::Pip => None,
    };
    let folder = link.as_ref().map(|link| link.folder.as_path());
    let lines = lines::lines(mode, file.shell, folder, context);
    let (change, of_link) = match args.undo {
        true => (
            file.without(mode.name())?,
            link.as_ref().map(LinkChange::remove).transpose()?,
        ),
        false => (
            file.with(mode.name(), &lines)?,
            link.as_ref().map(LinkChange::make).transpose()?,
        ),
    };
    output::print(|out| {
        write(&file, &change, of_link.as_ref(), args.dry_run, out)?;
        match (mode, args.undo) {
            (Mode::Cmake, false) => write!(out, "\n{}", lines::PRESET),
            _ => Ok(()),
        }
    })?;
    if !args.dry_run {
        // If only one of the two changes is made, it has no effect: a link outside PATH, or a folder in PATH that does not exist.
        if let Some(change) = &of_link {
            change.carry_out()?;
        }
        file.carry_out(&change)
            .with_context(|| format!("cannot change {}", file.path.display()))?;
    }
    Ok(0)
}

fn write(
    file: &StartFile,
    change: &StartFileEdit,
    of_link: Option<&LinkChange>,
    dry_run: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let would = if dry_run { "would " } else { "" };
    if let Some(change) = of_link {
        match change {
            LinkChange::None(what) => writeln!(out, "{what}")?,
            LinkChange::Make { link, target } => {
                writeln!(
                    out,
                    "{would}link {} to {}",
                    link.display(),
                    target.display()
                )?;
            }
            LinkChange::Remove(link) => writeln!(out, "{would}remove {}", link.display())?,
        }
    }
    let path = file.path.display();
    match change {
        StartFileEdit::None(why) => writeln!(out, "{path}: {why}"),
        StartFileEdit::Write {
            block: Some(block), ..
        } => {
            writeln!(out, "{would}write to {path}:")?;
            for line in block.lines() {
                writeln!(out, "  {line}")?;
            }
            writeln!(out, "A new shell reads it.")
        }
        StartFileEdit::Write { block: None, .. } => {
            writeln!(out, "{would}take the lines of warpcc out of {path}")
        }
        StartFileEdit::Remove => writeln!(out, "{would}remove {path}, which has nothing else"),
    }
}
