//! Makes the package for Debian, Ubuntu and their derivatives, with `dpkg-deb`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::contents::Contents;
use super::extras::{LICENCES, THIRD_PARTY};
use super::metadata;
use super::program::{Arch, OLDEST_GLIBC};
use super::tarball::{lay_out, put};
use crate::{process, repo};

const DESCRIPTION: &str = "\
Description: compiler cache and parallel driver for CUDA's nvcc
 warpcc runs the steps of an nvcc compile in parallel, and answers a repeated
 compile from disk without starting a compiler. What it writes is what nvcc
 writes, byte for byte. What it does not support is passed to nvcc unchanged.
 .
 The CUDA toolkit is not part of this package. The folder /usr/lib/warpcc has
 the program under the name nvcc: put before a toolkit in PATH, builds use it
 without being told.
";

/// Writes it into the folder `to`.
pub fn make(contents: &Contents, to: &Path) -> Result<PathBuf> {
    let stage = tempfile::tempdir().context("failed to create a folder")?;
    let root = stage.path().join("warpcc");
    lay_out(contents, &root.join("usr"))?;
    rearrange(contents, &root)?;
    fs::create_dir_all(root.join("DEBIAN"))?;
    put(
        &root.join("DEBIAN/md5sums"),
        md5sums(&root)?.as_bytes(),
        0o644,
    )?;
    let control = control(contents.arch, &contents.version, kib(&root)?)?;
    put(&root.join("DEBIAN/control"), control.as_bytes(), 0o644)?;
    let (version, arch) = (&contents.version, contents.arch.debian());
    let file = to.join(format!("warpcc_{version}_{arch}.deb"));
    process::run(
        // Folders as everyone's umask should be.
        Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&root),
    )?;
    process::run(
        Command::new("dpkg-deb")
            .env("SOURCE_DATE_EPOCH", contents.time.to_string())
            // Systems before Debian 12 cannot read zstd.
            .args(["--root-owner-group", "-Zxz", "--build"])
            .args([&root, &file]),
    )?;
    Ok(file)
}

/// Debian has places of its own for some files, and wants documentation compressed.
fn rearrange(contents: &Contents, root: &Path) -> Result<()> {
    let share = root.join("usr/share");
    let zsh = share.join("zsh/vendor-completions");
    fs::create_dir_all(&zsh)?;
    fs::rename(
        share.join("zsh/site-functions/_warpcc"),
        zsh.join("_warpcc"),
    )?;
    fs::remove_dir(share.join("zsh/site-functions"))?;
    for page in fs::read_dir(share.join("man/man1"))?.flatten() {
        gzip(&page.path())?;
    }
    let doc = share.join("doc/warpcc");
    // Their texts are in /usr/share/common-licenses and in `copyright`.
    for licence in LICENCES {
        fs::remove_file(doc.join(licence))?;
    }
    gzip(&doc.join(THIRD_PARTY))?;
    fs::rename(doc.join("CHANGELOG.md"), doc.join("NEWS.md"))?;
    gzip(&doc.join("NEWS.md"))?;
    let mit = fs::read_to_string(repo::root().join("LICENSE-MIT"))?;
    put(
        &doc.join("copyright"),
        copyright(&mit, &date(contents.time, "+%Y")?).as_bytes(),
        0o644,
    )?;
    let changelog = doc.join("changelog");
    put(&changelog, changelog_of(contents)?.as_bytes(), 0o644)?;
    gzip(&changelog)
}

fn gzip(file: &Path) -> Result<()> {
    process::run(Command::new("gzip").args(["-9", "--no-name"]).arg(file))
}

/// The package's maintainer: the author of the commit.
fn maintainer() -> Result<String> {
    let mut git = Command::new("git");
    git.current_dir(repo::root());
    let name = process::output(git.args(["log", "-1", "--format=%an <%ae>"]))?;
    Ok(name.trim().to_owned())
}

fn control(arch: Arch, version: &str, kib: u64) -> Result<String> {
    let (major, minor) = OLDEST_GLIBC;
    let address = metadata::repository()?;
    let homepage = match metadata::is_public(&address) {
        true => format!("Homepage: {address}\n"),
        false => String::new(),
    };
    Ok(format!(
        "Package: warpcc\nVersion: {version}\nSection: devel\nPriority: optional\n\
         Architecture: {}\nMaintainer: {}\nInstalled-Size: {kib}\n\
         Depends: libc6 (>= {major}.{minor})\nRecommends: g++\n\
         Suggests: nvidia-cuda-toolkit\nEnhances: nvidia-cuda-toolkit\n{homepage}{DESCRIPTION}",
        arch.debian(),
        maintainer()?,
    ))
}

fn changelog_of(contents: &Contents) -> Result<String> {
    Ok(format!(
        "warpcc ({}) unstable; urgency=medium\n\n  * What changed stands in NEWS.md.\n\n -- {}  {}\n",
        contents.version,
        maintainer()?,
        date(contents.time, "--rfc-email")?,
    ))
}

/// A time as `date` writes it.
fn date(time: u64, form: &str) -> Result<String> {
    let mut date = Command::new("date");
    date.env("LC_ALL", "C")
        .args(["--utc", form, &format!("--date=@{time}")]);
    Ok(process::output(&mut date)?.trim().to_owned())
}

fn copyright(mit: &str, year: &str) -> String {
    let mut text = format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: warpcc\nComment: Licences of what is linked in: {THIRD_PARTY}.gz\n\n\
         Files: *\nCopyright: {year} The warpcc authors\nLicense: Apache-2.0 or Expat\n\n\
         License: Apache-2.0\n On Debian systems, its text is in /usr/share/common-licenses/Apache-2.0.\n\n\
         License: Expat\n"
    );
    // The text of the licence, after its title and the line of the copyright.
    let permission = mit.find("Permission").map_or(mit, |at| &mit[at..]);
    for line in permission.trim().lines() {
        text += match line.trim() {
            "" => " .\n".to_owned(),
            line => format!(" {line}\n"),
        }
        .as_str();
    }
    text
}

/// Files below `root` by their paths in the package, in order, links left out.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.join("usr")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            match entry.file_type()? {
                kind if kind.is_dir() => folders.push(entry.path()),
                kind if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

fn md5sums(root: &Path) -> Result<String> {
    let mut md5sum = Command::new("md5sum");
    md5sum.current_dir(root);
    for file in files(root)? {
        md5sum.arg(file.strip_prefix(root)?);
    }
    process::output(&mut md5sum)
}

fn kib(root: &Path) -> Result<u64> {
    let sizes = files(root)?;
    let sizes = sizes
        .iter()
        .map(|file| file.metadata().map(|meta| meta.len()));
    let bytes = sizes.sum::<std::io::Result<u64>>()?;
    Ok(bytes.div_ceil(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copyright_has_the_permission_as_a_paragraph() -> Result<()> {
        let mit = fs::read_to_string(repo::root().join("LICENSE-MIT"))?;
        let text = copyright(&mit, "2026");
        let (_, expat) = text.split_once("License: Expat\n").context("it is there")?;
        assert!(
            expat.starts_with(" Permission is hereby granted"),
            "{expat}"
        );
        assert!(expat.lines().all(|line| line.starts_with(' ')), "{expat}");
        Ok(())
    }
}
