//! Roots of Debian's releases by debootstrap, kept for the next time; and how to go into one of which nothing stays.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::suite::old_glibc;
use crate::{process, repo};

/// glibc 2.31, 2.36 and 2.41.
pub const SYSTEMS: [&str; 3] = ["bullseye", "bookworm", "trixie"];

/// The host compiler, and what the wheel is installed with.
const PACKAGES: &str = "g++,python3-venv,python3-pip";

/// Why no root can be made or used here.
pub fn refused() -> Option<String> {
    for (program, package) in [("debootstrap", "debootstrap"), ("unshare", "util-linux")] {
        let found = process::on_path(program);
        // Not in the PATH of everyone.
        if found.is_none() && !Path::new("/usr/sbin").join(program).exists() {
            return Some(format!("there is no {program}: apt-get install {package}"));
        }
    }
    let alone = ["--mount", "--pid", "--net", "--fork", "true"];
    if !process::succeeds(Command::new("unshare").args(alone)) {
        return Some(
            "a root needs mounts of its own, which only the real root may make".to_owned(),
        );
    }
    None
}

/// The root of a release, made unless it is there.
pub fn get(system: &str) -> Result<PathBuf> {
    if system.contains('/') || system.starts_with('.') {
        bail!("`{system}` is not the name of a Debian release");
    }
    let roots = repo::roots_dir();
    fs::create_dir_all(&roots).with_context(|| format!("failed to create {}", roots.display()))?;
    let lock = File::create(roots.join(format!(".{system}.lock")))?;
    lock.lock().context("failed to wait for who makes it")?;
    let root = roots.join(system);
    if root.exists() {
        return Ok(root);
    }
    let new = roots.join(format!("{system}.new"));
    if new.exists() {
        fs::remove_dir_all(&new).context("failed to remove half of a root")?;
    }
    eprintln!("{system}: debootstrap, some minutes");
    let mut debootstrap = Command::new("debootstrap");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let sbin = [PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")];
    let path = std::env::join_paths(std::env::split_paths(&path).chain(sbin))?;
    debootstrap
        .env("PATH", path)
        .args([
            "--variant=minbase",
            &format!("--include={PACKAGES}"),
            system,
        ])
        .arg(&new)
        .arg(old_glibc::repository()?)
        .stdout(std::process::Stdio::null());
    process::run(&mut debootstrap)?;
    // What was fetched is installed.
    process::run(Command::new("chroot").arg(&new).args(["apt-get", "clean"]))?;
    fs::rename(&new, &root).with_context(|| format!("failed to make {}", root.display()))?;
    Ok(root)
}

/// What is seen in a root.
pub struct Mounts<'a> {
    pub root: &'a Path,
    /// As /usr/local/cuda.
    pub toolkit: &'a Path,
    /// As ./dist of the folder that the commands run in.
    pub made: &'a Path,
    /// Has `upper`, `work`, `merged`, the home folder `home`, and `in`, whose files the commands find in their folder.
    pub work: &'a Path,
}

/// Starts `try.sh` in the root: changes go to `work/upper`, mounts and processes end with it, and there is no network.
pub fn enter(mounts: &Mounts) -> Result<Command> {
    const SETUP: &str = r#"
set -eu
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$ROOT,upperdir=$WORK/upper,workdir=$WORK/work" "$WORK/merged"
cd "$WORK/merged"
mkdir -p usr/local/cuda try dev/shm
cp "$WORK"/in/* try/
mkdir try/dist
mount --bind -o ro "$TOOLKIT" usr/local/cuda
mount --bind -o ro "$MADE" try/dist
mount --bind "$WORK/home" root
mount -t proc proc proc
mount -t tmpfs tmpfs dev/shm
exec chroot . /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 PIP_DISABLE_PIP_VERSION_CHECK=1 WARPCC_MAX_SIZE=1G \
    PATH=/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    sh -c 'cd /try && exec timeout --kill-after=10 900 sh -eu try.sh'
"#;
    for folder in [mounts.root, mounts.toolkit, mounts.made] {
        if !folder.is_dir() {
            bail!(
                "there is no {}: `cargo xtask dist` makes dist",
                folder.display()
            );
        }
    }
    let mut command = Command::new("unshare");
    command
        .args([
            "--mount",
            "--pid",
            "--net",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            SETUP,
        ])
        .env("ROOT", mounts.root)
        .env("TOOLKIT", mounts.toolkit)
        .env("MADE", mounts.made)
        .env("WORK", mounts.work);
    Ok(command)
}
