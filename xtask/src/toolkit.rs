//! Installs a CUDA toolkit from PyPI, pinned by a lock file, so that every machine tests against
//! the same bytes and NVIDIA's installer is not needed.
//!
//! The lock files are `xtask/toolkits/<version>.txt` in pip's requirements format, each wheel
//! with its hash. A toolkit is complete when its marker holds the hash of the lock file it was
//! made from: it is installed next to its place and renamed into it, under a lock that dies with
//! its holder, so neither an interrupted install nor a second process can leave half a toolkit.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

use crate::{process, repo};

/// The toolkit that demo, tests and benchmarks use unless told otherwise.
pub const NEWEST: &str = "13.5";

/// The oldest toolkit the tests use.
pub const OLDEST: &str = "13.0";

const MARKER: &str = ".warpcc-toolkit";

/// `cargo xtask toolkit [VERSION...]`.
pub fn main(versions: &[String]) -> Result<()> {
    let versions = match versions {
        [] => vec![NEWEST.to_owned()],
        [all] if all == "all" => known()?,
        some => some.to_vec(),
    };
    for version in versions {
        let nvcc = install(&version)?;
        println!("{version}  {}", nvcc.display());
    }
    Ok(())
}

/// The `nvcc` of an installed toolkit.
pub fn find(version: &str) -> Result<PathBuf> {
    let home = repo::toolkits_dir().join(version);
    let nvcc = nvcc_in(&home);
    if installed(&home, &lock_id(version)?) && process::is_executable(&nvcc) {
        Ok(nvcc)
    } else {
        bail!(
            "CUDA toolkit {version} is not installed in {}: run `cargo xtask toolkit {version}`",
            home.display()
        )
    }
}

/// Waits until no other process installs this toolkit, and keeps others waiting for as long as the file is open.
pub fn lock(version: &str) -> Result<File> {
    let toolkits = repo::toolkits_dir();
    fs::create_dir_all(&toolkits)
        .with_context(|| format!("failed to create {}", toolkits.display()))?;
    let path = toolkits.join(format!(".{version}.lock"));
    let failed = || format!("failed to lock {}", path.display());
    let lock = File::create(&path).with_context(failed)?;
    lock.lock().with_context(failed)?;
    Ok(lock)
}

/// Installs a toolkit unless it is there already, and returns its `nvcc`.
pub fn install(version: &str) -> Result<PathBuf> {
    let id = lock_id(version)?;
    let toolkits = repo::toolkits_dir();
    let home = toolkits.join(version);
    if !installed(&home, &id) {
        // A process that waited here finds the work done.
        let _lock = lock(version)?;
        if !installed(&home, &id) {
            download(version, &id, &toolkits, &home)?;
        }
    }
    // Also into a toolkit that was installed before the links were known to be needed.
    add_links(&home.join("nvidia/cu13"))?;
    find(version)
}

/// The versions there are lock files for, oldest first.
pub fn known() -> Result<Vec<String>> {
    let dir = lock_dir();
    let mut versions = Vec::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("failed to list {}", dir.display()))? {
        let name = entry?.file_name();
        if let Some(version) = name.to_str().and_then(|name| name.strip_suffix(".txt")) {
            versions.push(version.to_owned());
        }
    }
    versions.sort_by_key(|version| {
        version
            .split('.')
            .map(|part| part.parse::<u32>().unwrap_or(0))
            .collect::<Vec<_>>()
    });
    Ok(versions)
}

fn download(version: &str, id: &str, toolkits: &Path, home: &Path) -> Result<()> {
    check_pip()?;
    let new = tempfile::Builder::new()
        .prefix(&format!(".{version}-"))
        .tempdir_in(toolkits)
        .with_context(|| format!("failed to create a folder in {}", toolkits.display()))?;
    eprintln!(
        "installing CUDA toolkit {version} from PyPI into {}",
        home.display()
    );
    process::run(
        Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", "--no-input", "--no-deps"])
            .args(["--require-hashes", "--only-binary=:all:", "--no-compile"])
            .args(["--disable-pip-version-check", "--no-warn-script-location"])
            .arg("--root-user-action=ignore")
            // The user's own settings must not decide where this goes.
            .args(["--no-user", "--target"])
            .arg(new.path())
            .arg("-r")
            .arg(lock_file(version)),
    )
    .with_context(|| format!("failed to install CUDA toolkit {version}"))?;
    let nvcc = nvcc_in(new.path());
    process::output(Command::new(&nvcc).arg("--version"))
        .context("the wheels were installed but their nvcc does not run on this machine")?;
    add_links(&new.path().join("nvidia/cu13"))?;
    fs::write(new.path().join(MARKER), id).context("failed to write the toolkit's marker")?;

    if home.exists() {
        // The toolkit was made from another lock file. It is moved aside first: a rename cannot replace a folder with files.
        let old = tempfile::tempdir_in(toolkits).context("failed to create a folder")?;
        fs::rename(home, old.path().join("old"))
            .with_context(|| format!("failed to move {} aside", home.display()))?;
    }
    let new = new.keep();
    fs::rename(&new, home)
        .with_context(|| format!("failed to move {} to {}", new.display(), home.display()))
}

/// Adds links that the wheels lack: `nvlink -dlto` loads `nvvm/lib64/libnvvm.so`, which the wheels only have as
/// `lib/libnvvm.so.4`.
fn add_links(root: &Path) -> Result<()> {
    // 13.0's nvcc.profile looks for libraries in lib64, which the wheels call lib.
    let lib64 = root.join("lib64");
    if !lib64.exists() {
        std::os::unix::fs::symlink("lib", &lib64)
            .with_context(|| format!("failed to make {}", lib64.display()))?;
    }
    let folder = root.join("nvvm/lib64");
    let link = folder.join("libnvvm.so");
    if link.exists() {
        return Ok(());
    }
    fs::create_dir_all(&folder)
        .and_then(|()| std::os::unix::fs::symlink("../../lib/libnvvm.so.4", &link))
        .with_context(|| format!("failed to make {}", link.display()))
}

fn check_pip() -> Result<()> {
    if process::on_path("python3").is_none() {
        bail!(
            "toolkits come from PyPI, and there is no python3 on PATH: install Python 3 with pip \
             (Debian: apt-get install python3-pip), or name an nvcc of your own in WARPCC_NVCC"
        );
    }
    if !process::succeeds(Command::new("python3").args(["-m", "pip", "--version"])) {
        bail!(
            "toolkits come from PyPI, and python3 has no pip: install it (Debian: apt-get install \
             python3-pip; elsewhere: python3 -m ensurepip), or name an nvcc of your own in \
             WARPCC_NVCC"
        );
    }
    Ok(())
}

fn installed(home: &Path, id: &str) -> bool {
    fs::read_to_string(home.join(MARKER)).is_ok_and(|found| found == id)
}

fn nvcc_in(home: &Path) -> PathBuf {
    home.join("nvidia/cu13/bin/nvcc")
}

fn lock_dir() -> PathBuf {
    repo::root().join("xtask/toolkits")
}

fn lock_file(version: &str) -> PathBuf {
    lock_dir().join(format!("{version}.txt"))
}

/// The contents of the marker of a toolkit made from the current lock file: the lines that pip reads.
///
/// The lines themselves rather than their hash: they are short, and a person can compare them.
fn lock_id(version: &str) -> Result<String> {
    let file = lock_file(version);
    let text = fs::read_to_string(&file).map_err(|error| {
        let known = known().unwrap_or_default().join(", ");
        anyhow!(error).context(format!(
            "no lock file {} for CUDA toolkit {version} (there are: {known})",
            file.display()
        ))
    })?;
    Ok(without_comments(&text))
}

fn without_comments(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .filter(|line| !line.starts_with('#'))
        .fold(String::new(), |all, line| all + line + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_requirement_is_pinned_and_hashed() {
        let versions = known().expect("the lock files are in the repository");
        assert!(versions.contains(&NEWEST.to_owned()) && versions.contains(&OLDEST.to_owned()));
        for version in versions {
            let id = lock_id(&version).expect("a lock file can be read");
            for requirement in id.replace("\\\n", " ").lines() {
                assert!(
                    requirement.contains("=="),
                    "{version}: not pinned: {requirement}"
                );
                assert!(
                    requirement.contains("--hash=sha256:"),
                    "{version}: {requirement}"
                );
            }
            for package in ["nvidia-cuda-nvcc==", "nvidia-nvvm==", "nvidia-cuda-crt=="] {
                assert!(id.contains(package), "{version} lacks {package}");
            }
        }
    }

    #[test]
    fn a_comment_does_not_make_a_toolkit_old() {
        assert_eq!(
            without_comments("# a\nx==1 \\\n  --hash=2\n\n"),
            "x==1 \\\n--hash=2\n"
        );
    }

    #[test]
    fn an_unknown_version_lists_the_known_ones() {
        let error = lock_id("9.9").expect_err("there is no 9.9");
        assert!(format!("{error:#}").contains(NEWEST), "{error:#}");
    }
}
