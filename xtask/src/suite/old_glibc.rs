//! Installs a glibc before 2.34, for the test that programs do not hang under it: before that release `dlsym` allocates.
//! It comes from Debian's packages, unpacked into a folder of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::fetched::Fetched;
use crate::process;

const OLD: Fetched = Fetched {
    name: "old-glibc",
    program: "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
};

/// The path of its installed dynamic loader. The libraries are next to the loader.
pub fn loader() -> PathBuf {
    OLD.path()
}

/// Installs the library unless it is there. Where the packages cannot be fetched, prints a message, and the test is
/// skipped.
pub fn install() -> Result<()> {
    if !cfg!(target_arch = "x86_64") || process::on_path("apt-get").is_none() {
        return Ok(());
    }
    if let Err(error) = OLD.install(unpack) {
        println!("the test with an old C library is skipped, because there is none: {error:#}");
    }
    Ok(())
}

/// The repository of this machine's own packages.
pub fn repository() -> Result<String> {
    let format = [
        "indextargets",
        "--format",
        "$(REPO_URI)",
        "Created-By: Packages",
    ];
    let known = process::output(Command::new("apt-get").args(format))?;
    let first = known.lines().find(|line| !line.contains("security"));
    Ok(first.context("apt-get knows no repository")?.to_owned())
}

fn unpack(home: &Path, lock_file: &Path) -> Result<()> {
    let wanted = fs::read_to_string(lock_file)?;
    let line = wanted.lines().find(|line| !line.starts_with('#'));
    let mut words = line.unwrap_or_default().split(' ');
    let Some(suite) = words.next() else {
        bail!("{} names no suite", lock_file.display());
    };
    let apt = home.join("apt");
    for folder in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(apt.join(folder))?;
    }
    let sources = apt.join("sources.list");
    // The packages are signed by keys that newer systems need not have. Only one test runs their programs.
    let line = format!("deb [trusted=yes] {} {suite} main\n", repository()?);
    fs::write(&sources, line)?;
    let set = |name: &str, value: &Path| format!("{name}={}", value.display());
    let options = [
        set("Dir::Etc::sourcelist", &sources),
        set("Dir::Etc::sourceparts", Path::new("/dev/null")),
        set("Dir::State::Lists", &apt.join("lists")),
        set("Dir::Cache", &apt.join("cache")),
        "APT::Sandbox::User=root".to_owned(),
    ];
    let apt_get = |words: &[String]| {
        let mut command = Command::new("apt-get");
        command.arg("-qq").current_dir(home);
        for option in &options {
            command.args(["-o", option]);
        }
        process::run(command.args(words))
    };
    apt_get(&["update".to_owned()])?;
    let packages = words.map(|name| format!("{name}/{suite}"));
    apt_get(&[vec!["download".to_owned()], packages.collect()].concat())?;
    for entry in fs::read_dir(home)?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == "deb") {
            process::run(Command::new("dpkg").arg("-x").arg(&path).arg(home))?;
            fs::remove_file(&path)?;
        }
    }
    fs::remove_dir_all(&apt)?;
    // This loader knows no --version yet.
    let library = loader().with_file_name("libc.so.6");
    process::output(Command::new(loader()).arg("--list").arg(library))
        .context("the packages were unpacked but their loader does not run here")?;
    Ok(())
}
