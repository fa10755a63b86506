//! Fetches one source through its registry's own client and configuration, so that no
//! host is named here and a mirror works. It does not know what the source is for.

use super::catalogue::{self, SourceKind, WorkloadSource};
use crate::repo;
use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A Python program that reads pip's index page and takes the file by its name. pip itself would
/// first build an sdist's metadata, which for these fails or takes long.
const FROM_INDEX: &str = r#"
import os, re, shutil, sys, urllib.error, urllib.parse, urllib.request
from pip._internal.configuration import Configuration
from pip._internal.models.index import PyPI
name, file, out = sys.argv[1:]
settings = Configuration(isolated=False)
settings.load()
settings = dict(settings.items())
index = os.environ.get("PIP_INDEX_URL") or settings.get("global.index-url") or PyPI.simple_url
page = index.rstrip("/") + "/" + re.sub(r"[-_.]+", "-", name).lower() + "/"
asked = page
try:
    with urllib.request.urlopen(page, timeout=60) as answer:
        text = answer.read().decode()
    for link in re.findall(r'href="([^"]+)"', text):
        url = urllib.parse.urljoin(page, link).split('#')[0]
        if urllib.parse.unquote(url).endswith("/" + file):
            asked = url
            with urllib.request.urlopen(url, timeout=60) as answer, open(out, "wb") as target:
                shutil.copyfileobj(answer, target)
            break
    else:
        sys.exit(f"{page} does not list {file}")
except urllib.error.HTTPError as error:
    sys.exit(f"{asked} answers {error.code} {error.reason}")
except OSError as error:
    sys.exit(f"{asked} does not answer: {getattr(error, 'reason', None) or error}")
"#;

/// Fetches what a workload needs, and returns the folder its commands run in.
pub fn workload(name: &str) -> Result<PathBuf> {
    let catalogue = catalogue::read()?;
    let entry = catalogue.entry(name)?;
    for needed in &entry.needs {
        let source = catalogue
            .source
            .iter()
            .find(|source| &source.name == needed)
            .with_context(|| format!("workload {name} needs {needed}, which is no source"))?;
        fetch(source, &repo::sources_dir()).with_context(|| format!("fetching {needed}"))?;
    }
    let out = catalogue::out(name);
    let dir = repo::sources_dir().join(entry.dir.replace("{out}", &out.to_string_lossy()));
    // The folder of outputs is made, and emptied, before each build.
    if dir != out && !dir.is_dir() {
        bail!("{} is not in what was fetched for {name}", dir.display());
    }
    Ok(dir)
}

/// Put a source below `root`; nothing happens when it is there already.
pub fn fetch(source: &WorkloadSource, root: &Path) -> Result<()> {
    let done = root.join("fetched").join(&source.name);
    // The marker holds the hash, so that another pin fetches again.
    let there = || fs::read_to_string(&done).is_ok_and(|sha| sha == source.sha256);
    if there() {
        return Ok(());
    }
    let fetched = root.join("fetched");
    fs::create_dir_all(&fetched).with_context(|| fetched.display().to_string())?;
    // Clones share the folder; a process that waited here finds the work done.
    let lock = File::create(fetched.join(format!(".{}.lock", source.name)))?;
    lock.lock()?;
    if there() {
        return Ok(());
    }
    eprintln!("fetching {} into {}", source.file, root.display());
    match source.kind {
        SourceKind::Pypi => from_pypi(source, root)?,
        SourceKind::Crate => from_cargo(source, root)?,
        SourceKind::Debian => from_apt(source, root)?,
    }
    fs::write(&done, &source.sha256)?;
    Ok(())
}

fn from_pypi(source: &WorkloadSource, root: &Path) -> Result<()> {
    let archive = root.join(&source.file);
    let output = Command::new("python3")
        .args(["-c", FROM_INDEX, &source.name, &source.file])
        .arg(&archive)
        .output()
        .context("starting python3")?;
    ensure!(
        output.status.success(),
        "the Python package index gave no {} of the package {}: {}",
        source.file,
        source.name,
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    verify(&archive, &source.sha256)?;
    if source.file.ends_with(".whl") {
        let to = root.join(&source.name);
        // Headers of another version must not stay.
        if to.exists() {
            fs::remove_dir_all(&to)?;
        }
        headers_of_wheel(&archive, &to)?;
    } else {
        run(Command::new("tar")
            .arg("-xzf")
            .arg(&archive)
            .arg("-C")
            .arg(root))?;
    }
    fs::remove_file(&archive)?;
    Ok(())
}

/// Unpacks only the headers: the libraries of these wheels are hundreds of megabytes that no compilation reads.
fn headers_of_wheel(wheel: &Path, to: &Path) -> Result<()> {
    const UNPACK: &str = r#"
import os, sys, zipfile
wheel, to = sys.argv[1:]
archive = zipfile.ZipFile(wheel)
for item in archive.infolist():
    before, found, name = item.filename.partition("/include/")
    if found and not item.is_dir():
        path = os.path.join(to, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "wb").write(archive.read(item))
"#;
    run(Command::new("python3")
        .args(["-c", UNPACK])
        .arg(wheel)
        .arg(to))
}

fn from_cargo(source: &WorkloadSource, root: &Path) -> Result<()> {
    // NAME-VERSION; the version may hold a dash, the name's last part has no digit first.
    let (name, version) = source
        .file
        .strip_prefix(&source.name)
        .and_then(|rest| rest.strip_prefix('-'))
        .map(|version| (&source.name, version))
        .with_context(|| format!("{} is not {}-VERSION", source.file, source.name))?;
    let project = root.join("cargo").join(&source.file);
    fs::create_dir_all(project.join("src"))?;
    fs::write(project.join("src/lib.rs"), "")?;
    fs::write(
        project.join("Cargo.toml"),
        format!(
            "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\
             [workspace]\n[dependencies]\n\"{name}\" = \"={version}\"\n"
        ),
    )?;
    run(Command::new("cargo")
        .args(["vendor", "--quiet", "--versioned-dirs", "vendor"])
        .current_dir(&project))?;
    // cargo has checked the file against the index; this checks the index.
    let lock = fs::read_to_string(project.join("Cargo.lock"))?;
    ensure!(
        lock.contains(&format!("checksum = \"{}\"", source.sha256)),
        "{} has another checksum than {}",
        source.file,
        source.sha256
    );
    let to = root.join("crates").join(&source.file);
    fs::create_dir_all(root.join("crates"))?;
    if to.exists() {
        fs::remove_dir_all(&to)?;
    }
    fs::rename(project.join("vendor").join(&source.file), &to)?;
    fs::remove_dir_all(&project)?;
    Ok(())
}

/// Fetches source packages with apt, in folders of ours. The system's own lists stay as they are.
fn from_apt(source: &WorkloadSource, root: &Path) -> Result<()> {
    let apt = root.join("apt");
    for dir in ["parts", "lists/partial", "files"] {
        fs::create_dir_all(apt.join(dir))?;
    }
    deb_src(&apt.join("parts"))?;
    let options = [
        "-oDir::Etc::SourceList=/dev/null".to_owned(),
        format!("-oDir::Etc::SourceParts={}", apt.join("parts").display()),
        format!("-oDir::State::Lists={}", apt.join("lists").display()),
    ];
    run(Command::new("apt-get")
        .arg("-qq")
        .arg("update")
        .args(&options))?;
    run(Command::new("apt-get")
        .args(["-qq", "source", "--download-only", &source.name])
        .args(&options)
        .current_dir(apt.join("files")))?;
    let archive = apt.join("files").join(&source.file);
    verify(&archive, &source.sha256)?;
    let to = root.join(&source.name);
    fs::create_dir_all(&to)?;
    run(Command::new("tar")
        .args(["--strip-components=1", "-xf"])
        .arg(&archive)
        .arg("-C")
        .arg(&to))?;
    fs::remove_dir_all(&apt)?;
    Ok(())
}

fn deb_src(to: &Path) -> Result<()> {
    let etc = Path::new("/etc/apt");
    let mut files: Vec<PathBuf> = fs::read_dir(etc.join("sources.list.d"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|item| item.path())
        .collect();
    files.push(etc.join("sources.list"));
    let mut any = false;
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        // A third party's repository has none of these sources, and may have no index.
        if !text.to_lowercase().contains("debian") {
            continue;
        }
        let text: String = text
            .lines()
            .map(|line| match line.split_once(' ') {
                Some(("Types:", _)) => "Types: deb-src\n".to_owned(),
                Some(("deb", rest)) => format!("deb-src {rest}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let name = file.file_name().context("a file of apt's without a name")?;
        fs::write(to.join(name), text)?;
        any = true;
    }
    if !any {
        bail!("apt has no Debian sources here");
    }
    Ok(())
}

fn verify(file: &Path, sha256: &str) -> Result<()> {
    let bytes = fs::read(file).with_context(|| file.display().to_string())?;
    let got: String = Sha256::digest(&bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    if got != sha256 {
        // Otherwise the file would be taken for a finished download next time.
        fs::remove_file(file)?;
        bail!("{} has SHA-256 {got}, not {sha256}", file.display());
    }
    Ok(())
}

fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("starting {}", command.get_program().to_string_lossy()))?;
    ensure!(
        status.success(),
        "{} failed ({status})",
        command.get_program().to_string_lossy()
    );
    Ok(())
}
