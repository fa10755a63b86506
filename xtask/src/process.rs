//! Run other programs, with errors that name the command.

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::repo;

/// Cargo in the repository's root, with one of its subcommands, as a person starts it there.
///
/// Cargo sets variables for the package that it runs. If they are passed on, some build scripts (ring's) run again, and
/// everything that depends on them is built again.
pub fn cargo(subcommand: &str) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(repo::root()).arg(subcommand);
    for (name, _) in env::vars_os() {
        let ours = name.to_string_lossy();
        if ours.starts_with("CARGO_PKG_") || ours.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs a command whose output goes where ours goes; anything but success is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command
        .status()
        .with_context(|| format!("failed to start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// Runs a command and returns its standard output; anything but success is an error that
/// carries its standard error.
pub fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("failed to start `{shown}`"))?;
    if !output.status.success() {
        bail!(
            "`{shown}` failed: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether the command starts and succeeds. Its output is discarded.
pub fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The command as a person would type it, near enough to copy.
pub fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(quote).collect::<Vec<_>>().join(" ")
}

fn quote(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The first executable of this name on PATH.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|file| is_executable(file))
}

/// Whether this is a file that may be executed by someone.
pub fn is_executable(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_commands_can_be_pasted() {
        let mut command = Command::new("nvcc");
        command.args(["-gencode", "arch=compute_80,code=sm_80", "a b", "it's", ""]);
        assert_eq!(
            show(&command),
            r"nvcc -gencode arch=compute_80,code=sm_80 'a b' 'it'\''s' ''"
        );
    }

    #[test]
    fn failure_names_the_command() {
        let error = output(Command::new("sh").args(["-c", "echo broken >&2; exit 3"]))
            .expect_err("exit 3 is a failure");
        let text = format!("{error:#}");
        assert!(text.contains("sh -c") && text.contains("broken"), "{text}");
    }
}
