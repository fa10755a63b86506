//! Whether a new warpcc reads the cache of the previous release, and whether that one still works with the folder after.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{process, programs, repo};

/// What the new program is to do with an older cache.
#[derive(Clone, Copy, PartialEq)]
pub enum OldCacheUse {
    /// It answers from it.
    Read,
    /// It makes everything anew, for the changelog says that it does.
    Ignored,
}

/// Compiles with the release `asked` and again with `new`, in one cache folder. Without `asked` the newest tag is taken;
/// if there is none, that is said, and it is all.
pub fn check(asked: Option<&str>, new: &Path, expected: OldCacheUse) -> Result<()> {
    let newest = newest_tag();
    let Some(asked) = asked.or(newest.as_deref()) else {
        println!(
            "there is no previous release: no tag v*. --previous names a folder, a tarball, a tag or a commit"
        );
        return Ok(());
    };
    let folder = tempfile::tempdir().context("failed to create a folder")?;
    let old = obtain(asked, folder.path())?;
    println!("previous: {asked}, {}", old.display());
    let trial = Trial::prepare(folder.path())?;
    for what in CALLS {
        trial.compare(&old, new, what, expected)?;
    }
    let said = match expected {
        OldCacheUse::Read => "its cache is read",
        OldCacheUse::Ignored => "its cache is left alone",
    };
    println!("{said}, and the older program works with the folder after");
    Ok(())
}

/// The newest release that this commit comes after.
fn newest_tag() -> Option<String> {
    let mut git = Command::new("git");
    git.current_dir(repo::root());
    let words = ["describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^"];
    let tag = process::output(git.args(words)).ok()?;
    Some(tag.trim().to_owned())
}

/// The program of a release: from its folder, its tarball, or built from its tag or commit.
fn obtain(asked: &str, to: &Path) -> Result<PathBuf> {
    let path = Path::new(asked);
    if path.is_dir() {
        return program_below(path);
    }
    if path.is_file() {
        let unpacked = to.join("previous");
        fs::create_dir(&unpacked)?;
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--strip-components=1", "--file"]);
        process::run(tar.arg(path).arg("--directory").arg(&unpacked))?;
        return program_below(&unpacked);
    }
    build(asked)
}

fn program_below(folder: &Path) -> Result<PathBuf> {
    let places = [folder.join("bin/warpcc"), folder.join("warpcc")];
    let found = places
        .into_iter()
        .find(|place| process::is_executable(place));
    let found = found.with_context(|| format!("there is no warpcc in {}", folder.display()))?;
    std::path::absolute(found).context("there is no current folder")
}

/// Builds a commit in a work tree of its own, kept below `target` for the next time.
fn build(revision: &str) -> Result<PathBuf> {
    let git = || {
        let mut git = Command::new("git");
        git.current_dir(repo::root());
        git
    };
    let commit = format!("{revision}^{{commit}}");
    let commit = process::output(git().args(["rev-parse", "--verify", "--quiet", &commit]))
        .with_context(|| format!("`{revision}` is neither a folder, a file nor a commit"))?;
    let home = repo::target_dir().join("previous").join(commit.trim());
    let (tree, target) = (home.join("tree"), home.join("target"));
    let program = target.join("release/warpcc");
    if program.is_file() {
        return Ok(program);
    }
    fs::create_dir_all(&tree).with_context(|| format!("failed to create {}", tree.display()))?;
    // Not a work tree of git's, which would be known to this checkout for good.
    let archive = home.join("tree.tar");
    let mut pack = git();
    pack.args(["archive", "--format=tar", "--output"])
        .arg(&archive);
    process::run(pack.arg(commit.trim()))?;
    let mut unpack = Command::new("tar");
    unpack.arg("--extract").arg("--file").arg(&archive);
    process::run(unpack.arg("--directory").arg(&tree))?;
    fs::remove_file(&archive)?;
    let mut cargo = process::cargo("build");
    cargo
        .current_dir(&tree)
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_INCREMENTAL", "0")
        .args(["--locked", "--release"]);
    for name in programs::OURS {
        // The network has not always been a program of its own.
        let is_there =
            fs::read_to_string(tree.join("Cargo.lock"))?.contains(&format!("name = \"{name}\""));
        if is_there {
            cargo.args(["--package", name]);
        }
    }
    process::run(&mut cargo)?;
    ensure!(program.is_file(), "{revision} built no warpcc");
    Ok(program)
}

/// Calls of different kinds of records: a source with code for two architectures, and one whose host code is linked.
const CALLS: [&[&str]; 2] = [
    &[
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_90,code=sm_90",
        "-c",
        "saxpy.cu",
        "-o",
        "out",
    ],
    &["-arch=sm_80", "-ptx", "saxpy.cu", "-o", "out"],
];

/// A folder with a source, and a cache that two programs use in turns.
struct Trial {
    nvcc: PathBuf,
    folder: PathBuf,
}

impl Trial {
    fn prepare(folder: &Path) -> Result<Self> {
        let source = repo::root().join("docs/tutorial/saxpy.cu");
        fs::copy(&source, folder.join("saxpy.cu"))
            .with_context(|| format!("failed to copy {}", source.display()))?;
        Ok(Self {
            nvcc: programs::nvcc(None)?,
            folder: folder.to_owned(),
        })
    }

    /// The old program compiles, the new one is asked for the same, and then the old one again.
    fn compare(&self, old: &Path, new: &Path, call: &[&str], expected: OldCacheUse) -> Result<()> {
        let (first, _) = self.call(old, call)?;
        let (second, said) = self.call(new, call)?;
        let hit = said.contains("direct hit");
        match (expected, hit) {
            (OldCacheUse::Read, false) => bail!(
                "the cache of the previous release was not read. Is that meant? Then say so in the changelog, and here \
                 with --new-cache-format. warpcc said:\n{said}"
            ),
            (OldCacheUse::Ignored, true) => {
                bail!("the cache of the previous release is read: --new-cache-format is not needed")
            }
            _ => {}
        }
        let (third, _) = self.call(old, call)?;
        ensure!(
            first == second && second == third,
            "the programs made different outputs of `nvcc {}`",
            call.join(" ")
        );
        Ok(())
    }

    /// The output and the log.
    fn call(&self, warpcc: &Path, call: &[&str]) -> Result<(Vec<u8>, String)> {
        let mut command = Command::new(warpcc);
        command
            .current_dir(&self.folder)
            .arg(&self.nvcc)
            .args(call)
            .env("WARPCC_DIR", self.folder.join("cache"))
            .env("WARPCC_LOG", "stderr");
        let output = self.folder.join("out");
        if output.exists() {
            fs::remove_file(&output)?;
        }
        let shown = process::show(&command);
        let said = command
            .output()
            .with_context(|| format!("failed to start `{shown}`"))?;
        let log = String::from_utf8_lossy(&said.stderr).into_owned();
        ensure!(
            said.status.success(),
            "`{shown}` failed: {}\n{log}",
            said.status
        );
        let bytes = fs::read(&output).with_context(|| format!("`{shown}` made no output"))?;
        Ok((bytes, log))
    }
}
