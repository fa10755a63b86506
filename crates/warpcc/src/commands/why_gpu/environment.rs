//! Installed Python packages: where site-packages are, and which files each package has.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use super::args::WhyGpuArgs;
use crate::process_context::ProcessContext;

/// Names of folders with packages.
const FOLDERS: [&str; 2] = ["site-packages", "dist-packages"];
/// Folders below a root in which packages may be: `opt/conda/envs/NAME/lib/python3.12/site-packages` is the seventh.
const DEEPEST: usize = 9;
/// Folders of a root that hold no files of its own.
const NOT_FILES: [&str; 4] = ["proc", "sys", "dev", "run"];
/// What is asked of Python.
const ASK: &str = "import json, sys; print(json.dumps([p for p in sys.path if p]))";

/// Folders of packages.
#[derive(Debug)]
pub struct Environment {
    /// Where it is, for people.
    pub place: String,
    folders: Vec<PathBuf>,
}

/// An installed package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// As it calls itself.
    pub name: String,
    /// With the build: `2.9.0+cu128`.
    pub version: String,
    /// Its files that may hold code for a GPU.
    pub files: Vec<PathBuf>,
}

/// The name by which two spellings are one: `Flash_Attn` and `flash-attn`.
pub fn normalized(name: &str) -> String {
    let words = name.split(['-', '_', '.']).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

impl Environment {
    /// The environment that the arguments mean.
    ///
    /// # Errors
    /// There is none.
    pub fn find(args: &WhyGpuArgs, context: &ProcessContext) -> anyhow::Result<Self> {
        if let Some(root) = &args.root {
            let mut folders = Vec::new();
            search(root, 0, &mut folders);
            if folders.is_empty() {
                bail!("no site-packages below {}", root.display());
            }
            return Ok(Self {
                place: root.display().to_string(),
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
            folders,
        })
    }

    /// Its packages, by name.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn packages(&self) -> anyhow::Result<Vec<Package>> {
        let mut packages = Vec::new();
        let mut names = BTreeSet::new();
        for folder in self.folders.iter().filter(|folder| folder.is_dir()) {
            let entries = folder
                .read_dir()
                .with_context(|| format!("cannot read {}", folder.display()))?;
            let mut infos: Vec<PathBuf> = entries
                .filter_map(|entry| Some(entry.ok()?.path()))
                .filter(|path| path.extension() == Some(OsStr::new("dist-info")))
                .collect();
            infos.sort();
            for info in infos {
                // Python imports the first; a later folder's copy is hidden.
                if let Some(package) = package(folder, &info)
                    && names.insert(normalized(&package.name))
                {
                    packages.push(package);
                }
            }
        }
        packages.sort_by_key(|package| normalized(&package.name));
        Ok(packages)
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
    let folders: Vec<PathBuf> = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{} is no Python", python.display()))?;
    Ok(folders)
}

/// Looks for folders of packages; links are not followed, as a container's lead out of it.
fn search(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = folder.read_dir() else {
        return;
    };
    let name = folder
        .file_name()
        .and_then(OsStr::to_str)
        .unwrap_or_default();
    if FOLDERS.contains(&name) {
        found.push(folder.to_owned());
        return;
    }
    let mut below: Vec<PathBuf> = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        if depth == 0 && path.extension() == Some(OsStr::new("dist-info")) {
            found.push(folder.to_owned());
            return;
        }
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let skip = depth == 0 && NOT_FILES.iter().any(|name| entry.file_name() == *name);
        if is_folder && !skip {
            below.push(path);
        }
    }
    below.sort();
    if depth < DEEPEST {
        for path in below {
            search(&path, depth + 1, found);
        }
    }
}

/// A package by its information, and the files of its record.
fn package(folder: &Path, info: &Path) -> Option<Package> {
    let text = std::fs::read(info.join("METADATA")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let head = || text.lines().take_while(|line| !line.is_empty());
    let field = |name: &str| {
        let value = head().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.map(|value| value.trim().to_owned())
    };
    let name = field("Name")?;
    let record = std::fs::read(info.join("RECORD")).unwrap_or_default();
    let mut files: Vec<PathBuf> = String::from_utf8_lossy(&record)
        .lines()
        .map(recorded_path)
        .filter(|path| may_hold_code(path))
        .filter_map(|path| below(folder, Path::new(&path)))
        .collect();
    files.sort();
    files.dedup();
    Some(Package {
        name,
        version: field("Version").unwrap_or_default(),
        files,
    })
}

/// The path in a line of a record.
fn recorded_path(line: &str) -> String {
    match line.strip_prefix('"') {
        Some(rest) => {
            let end = rest.find("\",").unwrap_or(rest.len());
            rest[..end].replace("\"\"", "\"")
        }
        None => line.split(',').next().unwrap_or_default().to_owned(),
    }
}

/// Libraries and what holds nothing but code for a GPU. Static libraries are for a later link.
fn may_hold_code(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let ends = [".so", ".fatbin", ".cubin", ".pyd", ".dll"];
    ends.iter().any(|end| name.ends_with(end)) || name.contains(".so.")
}

/// A file of a record; nothing that leads out of the environment by more than its `bin` and `lib`.
fn below(folder: &Path, path: &Path) -> Option<PathBuf> {
    let ups = path
        .components()
        .filter(|part| *part == Component::ParentDir);
    if path.is_absolute() || ups.count() > 3 {
        return None;
    }
    let whole = folder.join(path);
    whole.is_file().then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_records_are_read_as_pip_does() {
        assert_eq!(normalized("Flash_Attn"), "flash-attn");
        assert_eq!(normalized("nvidia.cublas--cu12"), "nvidia-cublas-cu12");
        assert_eq!(recorded_path("a/b.so,sha256=x,1"), "a/b.so");
        assert_eq!(recorded_path("\"a,\"\"b\"\".so\",sha256=x,1"), "a,\"b\".so");
        assert!(may_hold_code("x/libnccl.so.2") && may_hold_code("x/_C.cpython-312.so"));
        assert!(!may_hold_code("x/resource.py") && !may_hold_code("libx.a"));
    }
}
