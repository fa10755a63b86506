//! Where installed Python packages are: the folders of a Python, or those below a container's root.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde::Deserialize;

use super::args::WhyGpuArgs;
use super::package::{self, Package, normalized};
use super::root::Root;
use crate::process_context::ProcessContext;

/// Names of folders with packages.
const FOLDERS: [&str; 2] = ["site-packages", "dist-packages"];
/// Folders below a root in which packages may be: `opt/conda/envs/NAME/lib/python3.12/site-packages` is the seventh.
const DEEPEST: usize = 9;
/// Folders of a root that hold no files of its own.
const NOT_FILES: [&str; 4] = ["proc", "sys", "dev", "run"];
/// What is asked of Python: names that are no UTF-8 as their bytes.
const ASK: &str = "\
import json, os, sys
def shown(p):
    try:
        p.encode()
        return p
    except UnicodeError:
        return list(os.fsencode(p))
print()
print(json.dumps([shown(p) for p in sys.path if p]))";

/// Folders of packages.
#[derive(Debug)]
pub struct PythonEnvironment {
    /// Where it is, for people.
    pub place: String,
    root: Root,
    folders: Vec<PathBuf>,
}

/// The packages of an environment.
#[derive(Debug, Default)]
pub struct Packages {
    /// By name.
    pub all: Vec<Package>,
    /// What is there and was not looked at, a sentence each.
    pub skipped: Vec<String>,
}

impl PythonEnvironment {
    /// The environment that the arguments mean.
    ///
    /// # Errors
    /// There is none.
    pub fn find(args: &WhyGpuArgs, context: &ProcessContext) -> anyhow::Result<Self> {
        if let Some(below) = &args.root {
            let root = Root::at(below);
            let mut folders = Vec::new();
            search(&root, below, 0, &mut folders);
            if folders.is_empty() {
                bail!("no site-packages below {}", below.display());
            }
            return Ok(Self {
                place: below.display().to_string(),
                root,
                folders,
            });
        }
        let python = match &args.python {
            Some(python) => python.clone(),
            None => active(context),
        };
        let folders = ask(&python)?;
        Ok(Self {
            place: python.display().to_string(),
            root: Root::of_system(),
            folders,
        })
    }

    /// Its packages. What cannot be read stops nothing.
    pub fn packages(&self) -> Packages {
        let mut packages = Packages::default();
        let mut names = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut without_files = Vec::new();
        for folder in &self.folders {
            // One folder may be named twice, or be a link to another: `lib64` is often one to `lib`.
            let real = self.root.resolve(folder);
            let Some(real) = real.filter(|real| real.is_dir() && seen.insert(real.clone())) else {
                continue;
            };
            let infos = match package::infos(&real) {
                Ok(infos) => infos,
                Err(error) => {
                    let shown = folder.display();
                    packages
                        .skipped
                        .push(format!("{shown} cannot be read: {error}"));
                    continue;
                }
            };
            for info in infos {
                match Package::read(&self.root, &info) {
                    // Python imports the first; a later folder's copy is hidden.
                    Ok(package) if names.insert(normalized(&package.name)) => {
                        if package.files_unknown {
                            without_files.push(package.name.clone());
                        }
                        packages.all.push(package);
                    }
                    Ok(_) => {}
                    Err(why) => packages.skipped.push(format!("{}: {why}", info.display())),
                }
            }
        }
        packages
            .all
            .sort_by_key(|package| normalized(&package.name));
        if !without_files.is_empty() {
            without_files.sort();
            packages.skipped.push(format!(
                "neither a list of files nor a folder of this name was found for {}",
                without_files.join(", ")
            ));
        }
        packages
    }
}

/// The active Python: of a virtual environment, of conda, or of `PATH`.
fn active(context: &ProcessContext) -> PathBuf {
    let variable = |name: &str| {
        let found = context.environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| PathBuf::from(value))
    };
    let prefixes = ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .into_iter()
        .filter_map(variable);
    let mut inside = prefixes.map(|prefix| prefix.join("bin/python"));
    inside
        .find(|python| python.is_file())
        .unwrap_or_else(|| "python3".into())
}

fn ask(python: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let output = Command::new(python)
        .args(["-c", ASK])
        .stdin(Stdio::null())
        .output();
    let output = output.with_context(|| {
        format!(
            "{} cannot be started; name a Python with --python, or a folder with --root",
            python.display()
        )
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.trim().lines().last().unwrap_or_default();
        bail!(
            "{} does not say where its packages are: {last}",
            python.display()
        );
    }
    // A `sitecustomize` may have printed something before.
    let last = output
        .stdout
        .trim_ascii_end()
        .rsplit(|byte| *byte == b'\n')
        .next();
    let folders: Vec<PathName> = serde_json::from_slice(last.unwrap_or_default())
        .with_context(|| format!("{} is not a Python interpreter", python.display()))?;
    let folders = folders.into_iter().map(|folder| match folder {
        PathName::Text(text) => text.into(),
        PathName::Bytes(bytes) => OsString::from_vec(bytes).into(),
    });
    Ok(folders.collect())
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PathName {
    Text(String),
    Bytes(Vec<u8>),
}

/// Looks for folders of packages. Links are followed where they say what such a folder is, within the root; others may
/// lead round in circles.
fn search(root: &Root, folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = folder.read_dir() else {
        return;
    };
    if is_named(folder) {
        found.push(folder.to_owned());
        return;
    }
    let mut below: Vec<PathBuf> = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        if depth == 0 && package::is_info(&path) {
            found.push(folder.to_owned());
            return;
        }
        let kind = entry.file_type();
        let is_folder = kind.as_ref().is_ok_and(std::fs::FileType::is_dir);
        let is_link = kind.is_ok_and(|kind| kind.is_symlink());
        if is_link && is_named(&path) && root.resolve(&path).is_some_and(|real| real.is_dir()) {
            found.push(path);
            continue;
        }
        let skip = depth == 0 && NOT_FILES.iter().any(|name| entry.file_name() == *name);
        if is_folder && !skip {
            below.push(path);
        }
    }
    below.sort();
    if depth < DEEPEST {
        for path in below {
            search(root, &path, depth + 1, found);
        }
    }
}

fn is_named(folder: &Path) -> bool {
    let name = folder.file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| FOLDERS.contains(&name))
}
