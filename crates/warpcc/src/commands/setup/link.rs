//! The folder in which warpcc has the name nvcc: the package's own, or one in the user's data folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::start_file::home_folder;
use crate::process_context::ProcessContext;

/// The folder with the link named nvcc, and the link's target.
pub struct Link {
    /// The folder, which is to be first in `PATH`.
    pub folder: PathBuf,
    /// The program that the name nvcc leads to.
    target: PathBuf,
    /// The link came with the program's package, and is not ours to change.
    is_packaged: bool,
}

/// A change to the link.
pub enum LinkChange {
    /// Nothing is changed, for this reason.
    None(String),
    /// Make it.
    Make {
        /// The link.
        link: PathBuf,
        /// The program.
        target: PathBuf,
    },
    /// Remove it.
    Remove(PathBuf),
}

/// The folder to use.
///
/// # Errors
/// There is no home.
pub fn find(context: &ProcessContext) -> anyhow::Result<Link> {
    let own = context
        .ourselves
        .first()
        .context("the path of this program is not known")?;
    // A Debian package and a tarball contain such a folder.
    let packaged = own
        .parent()
        .and_then(Path::parent)
        .map(|at| at.join("lib/warpcc"));
    if let Some(folder) = packaged
        && leads_to(&folder.join("nvcc"), own)
    {
        return Ok(Link {
            folder,
            target: own.clone(),
            is_packaged: true,
        });
    }
    let data = home_folder(context, "XDG_DATA_HOME", ".local/share")?;
    Ok(Link {
        folder: data.join("warpcc/bin"),
        target: own.clone(),
        is_packaged: false,
    })
}

fn leads_to(link: &Path, target: &Path) -> bool {
    link.canonicalize().is_ok_and(|file| file == target)
}

impl LinkChange {
    /// The change that makes the link.
    ///
    /// # Errors
    /// There is another file of that name.
    pub fn make(link: &Link) -> anyhow::Result<Self> {
        let file = link.folder.join("nvcc");
        if leads_to(&file, &link.target) {
            return Ok(Self::None(format!("{} already exists", file.display())));
        }
        if fs::symlink_metadata(&file).is_ok() && !is_link_to_warpcc(&file) {
            bail!("{} exists, and warpcc did not make it", file.display());
        }
        Ok(Self::Make {
            link: file,
            target: link.target.clone(),
        })
    }

    /// The change that removes the link.
    ///
    /// # Errors
    /// There is another file of that name.
    pub fn remove(link: &Link) -> anyhow::Result<Self> {
        let file = link.folder.join("nvcc");
        if link.is_packaged {
            let what = format!("{} belongs to the package, and stays", file.display());
            return Ok(Self::None(what));
        }
        match fs::symlink_metadata(&file) {
            Err(_) => Ok(Self::None(format!("{} does not exist", file.display()))),
            Ok(_) if is_link_to_warpcc(&file) => Ok(Self::Remove(file)),
            Ok(_) => bail!("warpcc did not make {}", file.display()),
        }
    }

    /// Makes the change.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn carry_out(&self) -> anyhow::Result<()> {
        match self {
            Self::None(_) => Ok(()),
            Self::Make { link, target } => {
                let folder = link.parent().unwrap_or(Path::new("/"));
                let made = fs::create_dir_all(folder).and_then(|()| put_link(link, target));
                made.with_context(|| format!("cannot make {}", link.display()))
            }
            Self::Remove(link) => {
                fs::remove_file(link)
                    .with_context(|| format!("cannot remove {}", link.display()))?;
                // `warpcc/bin` and `warpcc`, where nothing else is in them.
                for folder in link.ancestors().skip(1).take(2) {
                    drop(fs::remove_dir(folder));
                }
                Ok(())
            }
        }
    }
}

/// Whether a link leads to a warpcc, this one or an earlier installation.
fn is_link_to_warpcc(file: &Path) -> bool {
    fs::read_link(file).is_ok_and(|to| to.file_name().is_some_and(|name| name == "warpcc"))
}

/// Makes the link. Replaces an old one atomically.
fn put_link(link: &Path, target: &Path) -> std::io::Result<()> {
    let beside = link.with_file_name(format!(".nvcc-{}", std::process::id()));
    symlink(target, &beside)?;
    fs::rename(&beside, link).inspect_err(|_| drop(fs::remove_file(&beside)))
}
