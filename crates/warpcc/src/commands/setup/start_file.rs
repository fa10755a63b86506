//! The start file of the user's shell: which one it is, whether it may be changed, and how it is written.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::block;
use crate::commands::output::replace_file;
use crate::process_context::ProcessContext;

/// How a shell sets variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellSyntax {
    /// bash, zsh and other shells like sh.
    Posix,
    /// fish.
    Fish,
}

impl ShellSyntax {
    /// Sets a variable for all that the shell starts.
    pub fn set(self, name: &str, value: &str) -> String {
        let value = self.quoted(value);
        match self {
            Self::Posix => format!("export {name}={value}\n"),
            Self::Fish => format!("set -gx {name} {value}\n"),
        }
    }

    /// Sets a variable unless it is set already.
    pub fn set_where_unset(self, name: &str, value: &str) -> String {
        let set = self.set(name, value);
        match self {
            Self::Posix => format!("[ -n \"${{{name}:-}}\" ] || {set}"),
            Self::Fish => format!("set -q {name}; or {set}"),
        }
    }

    /// Puts a folder before all others in `PATH`.
    pub fn first_in_path(self, folder: &Path) -> String {
        let folder = self.quoted(&folder.to_string_lossy());
        match self {
            Self::Posix => format!("export PATH={folder}:\"$PATH\"\n"),
            Self::Fish => format!("set -gx PATH {folder} $PATH\n"),
        }
    }

    fn quoted(self, value: &str) -> String {
        match self {
            Self::Posix => format!("'{}'", value.replace('\'', "'\\''")),
            Self::Fish => format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'")),
        }
    }
}

/// A start file as it is now.
pub struct StartFile {
    /// The file's path.
    pub path: PathBuf,
    /// The shell that reads the file.
    pub shell: ShellSyntax,
    /// The contents; `None` where there is no file.
    text: Option<Vec<u8>>,
    permissions: Permissions,
}

/// A change to a start file.
pub enum StartFileEdit {
    /// Nothing is changed, for this reason.
    None(&'static str),
    /// Write this.
    Write {
        /// The whole file.
        text: Vec<u8>,
        /// The lines that are put in.
        block: Option<String>,
    },
    /// Remove it.
    Remove,
}

/// A folder that the XDG rules name, or the usual one in the home.
///
/// # Errors
/// There is no home.
pub fn home_folder(
    context: &ProcessContext,
    variable: &str,
    usual: &str,
) -> anyhow::Result<PathBuf> {
    let value = |name: &str| {
        let found = context.environment.iter().find(|(n, _)| n == name);
        let path = found.map(|(_, value)| PathBuf::from(value));
        path.filter(|path| path.is_absolute())
    };
    let named = value(variable).or_else(|| value("HOME").map(|home| home.join(usual)));
    named.context("there is no home folder: HOME is not set to an absolute path")
}

impl StartFile {
    /// The start file of the shell that `SHELL` names.
    ///
    /// # Errors
    /// No home, or a file that is not to be touched.
    pub fn find(context: &ProcessContext) -> anyhow::Result<Self> {
        let shell = context.environment.iter().find(|(n, _)| n == "SHELL");
        let shell = shell.map(|(_, value)| Path::new(value));
        let name = shell
            .and_then(Path::file_name)
            .and_then(|name| name.to_str());
        let (path, shell) = match name {
            Some("bash") => (
                home_folder(context, "", "")?.join(".bashrc"),
                ShellSyntax::Posix,
            ),
            Some("zsh") => (
                home_folder(context, "ZDOTDIR", "")?.join(".zshrc"),
                ShellSyntax::Posix,
            ),
            Some("fish") => {
                let config = home_folder(context, "XDG_CONFIG_HOME", ".config")?;
                (config.join("fish/config.fish"), ShellSyntax::Fish)
            }
            _ => (
                home_folder(context, "", "")?.join(".profile"),
                ShellSyntax::Posix,
            ),
        };
        Self::read(path, shell)
    }

    fn read(path: PathBuf, shell: ShellSyntax) -> anyhow::Result<Self> {
        let shown = path.display();
        let (text, permissions) = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (None, Permissions::from_mode(0o644))
            }
            Err(error) => return Err(error).with_context(|| format!("cannot examine {shown}")),
            Ok(found) if found.is_symlink() => bail!(
                "{shown} is a symbolic link, as dotfile managers make: add the lines that --dry-run shows by hand"
            ),
            Ok(found) if !found.is_file() => bail!("{shown} is not a regular file"),
            Ok(found) if found.uid() != rustix::process::geteuid().as_raw() => {
                bail!("{shown} belongs to another user")
            }
            Ok(found) if found.nlink() > 1 => {
                bail!("{shown} has another hard link, which would not change")
            }
            Ok(found) => {
                let text = fs::read(&path).with_context(|| format!("cannot read {shown}"))?;
                (Some(text), found.permissions())
            }
        };
        Ok(Self {
            path,
            shell,
            text,
            permissions,
        })
    }

    /// The change that puts in the block `name`.
    ///
    /// # Errors
    /// A block that does not end.
    pub fn with(&self, name: &str, lines: &str) -> anyhow::Result<StartFileEdit> {
        let text = block::with(self.text.as_deref(), name, lines)
            .with_context(|| self.path.display().to_string())?;
        if self.text.as_deref() == Some(&text) {
            return Ok(StartFileEdit::None("has these lines already"));
        }
        Ok(StartFileEdit::Write {
            text,
            block: Some(lines.to_owned()),
        })
    }

    /// The change that takes out the block `name`.
    ///
    /// # Errors
    /// A block that does not end.
    pub fn without(&self, name: &str) -> anyhow::Result<StartFileEdit> {
        let before = self.text.as_deref().unwrap_or_default();
        let edited =
            block::without(before, name).with_context(|| self.path.display().to_string())?;
        Ok(match edited {
            None => StartFileEdit::None("has no lines of this setup"),
            Some(edited) if edited.was_no_file => StartFileEdit::Remove,
            Some(edited) => StartFileEdit::Write {
                text: edited.text,
                block: None,
            },
        })
    }

    /// Makes the change, whole or not at all.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn carry_out(&self, change: &StartFileEdit) -> anyhow::Result<()> {
        match change {
            StartFileEdit::None(_) => Ok(()),
            StartFileEdit::Write { text, .. } => {
                if let Some(folder) = self.path.parent() {
                    fs::create_dir_all(folder)?;
                }
                replace_file(&self.path, text, self.permissions.clone())
            }
            StartFileEdit::Remove => Ok(fs::remove_file(&self.path)?),
        }
    }
}
