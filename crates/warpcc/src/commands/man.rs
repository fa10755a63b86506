//! `warpcc man`: the manual pages, made of what `--help` is made of.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use super::output;

/// `warpcc man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Where to write them, such as ~/.local/share/man/man1; created if missing
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Writes a page for `command`, and one for each command below it; the exit code is 0.
///
/// # Errors
/// The folder or a page cannot be written.
pub fn run(args: &ManArgs, mut command: clap::Command) -> anyhow::Result<i32> {
    fs::create_dir_all(&args.folder)
        .with_context(|| format!("cannot create {}", args.folder.display()))?;
    command.build();
    write(&command, "warpcc", &args.folder)?;
    Ok(0)
}

/// `name` is how man finds the page: `warpcc-cache-clear`.
fn write(command: &clap::Command, name: &str, folder: &Path) -> anyhow::Result<()> {
    let page = clap_mangen::Man::new(command.clone())
        .title(name.to_uppercase())
        .section("1");
    let mut text = Vec::new();
    page.render(&mut text)
        .with_context(|| format!("cannot make the page of {name}"))?;
    let file = folder.join(format!("{name}.1"));
    output::write_file(&file, |out| out.write_all(&text))?;
    // `help` repeats every command below itself.
    let below = command
        .get_subcommands()
        .filter(|below| below.get_name() != "help");
    for below in below.filter(|below| !below.is_hide_set()) {
        write(below, &format!("{name}-{}", below.get_name()), folder)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_for_every_command() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let command = clap::Command::new("warpcc")
            .about("About it")
            .subcommand(clap::Command::new("hidden").hide(true))
            .subcommand(
                clap::Command::new("cache")
                    .subcommand(clap::Command::new("clear").about("Empty it")),
            );
        let args = ManArgs {
            folder: folder.path().join("a/man1"),
        };
        run(&args, command)?;
        let mut names: Vec<_> = fs::read_dir(&args.folder)?
            .map(|entry| entry.map(|entry| entry.file_name().into_string().unwrap_or_default()))
            .collect::<Result<_, _>>()?;
        names.sort();
        assert_eq!(
            names,
            ["warpcc-cache-clear.1", "warpcc-cache.1", "warpcc.1"]
        );
        let page = fs::read_to_string(args.folder.join("warpcc-cache-clear.1"))?;
        assert!(page.contains(".TH WARPCC-CACHE-CLEAR 1"), "{page}");
        assert!(page.contains("Empty it"), "{page}");
        Ok(())
    }
}
