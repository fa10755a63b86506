//! The tarball: a folder that works wherever it is unpacked, and a second one with the debug information.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::contents::Contents;
use super::program::Arch;
use crate::process;

/// Without `.tar.gz`.
fn name(version: &str, arch: Arch) -> String {
    format!("warpcc-{version}-{}", arch.target())
}

/// Unpacks the one in the folder `from`, for AMD's and Intel's processors.
pub fn unpack(from: &Path, version: &str) -> Result<tempfile::TempDir> {
    let archive = from.join(name(version, Arch::X86_64) + ".tar.gz");
    let to = tempfile::tempdir().context("failed to create a folder")?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--strip-components=1", "--file"]);
    process::run(tar.arg(&archive).arg("--directory").arg(to.path()))?;
    Ok(to)
}

/// Writes both into the folder `to`.
pub fn make(contents: &Contents, to: &Path) -> Result<Vec<PathBuf>> {
    let name = name(&contents.version, contents.arch);
    let stage = tempfile::tempdir().context("failed to create a folder")?;
    let root = stage.path().join(&name);
    lay_out(contents, &root)?;
    let program = pack(stage.path(), &name, contents.time, to)?;

    let apart = format!("{name}-debug");
    for program in &contents.programs {
        let name = format!("bin/{}.debug", program.name);
        let debug = fs::read(&program.debug)?;
        put(&stage.path().join(&apart).join(name), &debug, 0o644)?;
    }
    let debug = pack(stage.path(), &apart, contents.time, to)?;
    Ok(vec![program, debug])
}

/// The programs and their extras below a prefix, and a folder in which the program is called nvcc.
pub fn lay_out(contents: &Contents, prefix: &Path) -> Result<()> {
    for program in &contents.programs {
        let bytes = fs::read(&program.stripped)?;
        put(&prefix.join("bin").join(program.name), &bytes, 0o755)?;
    }
    for extra in &contents.extras {
        put(&prefix.join(&extra.place), &extra.bytes, 0o644)?;
    }
    let names = prefix.join("lib/warpcc");
    fs::create_dir_all(&names)?;
    symlink("../../bin/warpcc", names.join("nvcc")).context("failed to make the link nvcc")
}

/// Writes a file, and the folders that it is in.
pub fn put(file: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("failed to create {}", folder.display()))?;
    }
    fs::write(file, bytes).with_context(|| format!("failed to write {}", file.display()))?;
    fs::set_permissions(file, fs::Permissions::from_mode(mode))
        .with_context(|| format!("failed to set the mode of {}", file.display()))
}

/// Packs `name` of `folder` as `name.tar.gz` in `to`. Two users who pack it get the same bytes.
fn pack(folder: &Path, name: &str, time: u64, to: &Path) -> Result<PathBuf> {
    let archive = to.join(format!("{name}.tar.gz"));
    process::run(
        Command::new("tar")
            .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
            .args(["--mode=u+w,go-w,a+rX", &format!("--mtime=@{time}")])
            .args(["--use-compress-program=gzip -9n", "--create", "--file"])
            .arg(&archive)
            .arg("--directory")
            .arg(folder)
            .arg(name),
    )?;
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::OURS;
    use crate::repo;

    #[test]
    fn binstall_finds_each_program_in_it() -> Result<()> {
        let name = name("1.2.3", Arch::X86_64);
        for (program, folder) in OURS.into_iter().zip(["warpcc", "remote"]) {
            let manifest = repo::root().join(format!("crates/{folder}/Cargo.toml"));
            let manifest: toml::Table = fs::read_to_string(manifest)?.parse()?;
            let package = &manifest["package"];
            assert_eq!(package["name"].as_str(), Some(program));
            let filled = |key: &str| {
                let text = package["metadata"]["binstall"][key].as_str();
                text.unwrap_or_default()
                    .replace("{ repo }", "https://example.org")
                    .replace("{ version }", "1.2.3")
                    .replace("{ target }", &Arch::X86_64.target())
                    .replace("{ bin }", program)
            };
            assert_eq!(
                filled("pkg-url"),
                format!("https://example.org/releases/download/v1.2.3/{name}.tar.gz")
            );
            // As `lay_out` puts it.
            assert_eq!(filled("bin-dir"), format!("{name}/bin/{program}"));
        }
        Ok(())
    }
}
