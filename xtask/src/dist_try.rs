//! `cargo xtask dist-try`: installs each package of `dist/` in fresh roots of old and new systems, uses it, and removes it.
//!
//! It runs the commands of docs/install.md, so that the page has no command that does not work.

mod page;
mod roots;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{dist, process, repo, toolkit};
use page::InstallPage;

/// The page whose commands are run.
const INSTALL: &str = "docs/install.md";
/// What is done with an installed program.
const SCRIPT: &str = include_str!("../dist/try.sh");

/// The packages to try, and the systems.
#[derive(clap::Args)]
pub struct DistTryOptions {
    /// The systems: bullseye, bookworm, trixie; all when none is named
    systems: Vec<String>,
    /// One way to install: wheel, deb or tarball
    #[arg(long)]
    way: Option<String>,
    /// The CUDA toolkit
    #[arg(long, default_value = toolkit::NEWEST)]
    toolkit: String,
}

/// A form, and the section of the page that has its commands.
const WAYS: [(&str, &str); 3] = [
    ("wheel", "Wheel"),
    ("deb", "Debian package"),
    ("tarball", "Tarball"),
];

/// `cargo xtask dist-try`.
pub fn main(options: &DistTryOptions) -> Result<()> {
    if let Some(why) = roots::refused() {
        println!("nothing was tried: {why}");
        return Ok(());
    }
    let text = fs::read_to_string(repo::root().join(INSTALL))
        .with_context(|| format!("failed to read {INSTALL}"))?;
    let page = InstallPage::parse(&text);
    let nvcc = toolkit::install(&options.toolkit)?;
    let home = nvcc.ancestors().nth(2).context("nvcc is in a toolkit")?;
    let known = roots::SYSTEMS.map(str::to_owned).to_vec();
    let systems = match options.systems.is_empty() {
        true => known,
        false => options.systems.clone(),
    };
    let wanted = |way: &str| options.way.as_deref().is_none_or(|only| only == way);
    let mut failed = Vec::new();
    for system in &systems {
        let root = match roots::get(system) {
            Ok(root) => root,
            Err(error) => {
                println!("{system}: skipped, because no root of it could be made: {error:#}");
                continue;
            }
        };
        for (way, section) in WAYS.into_iter().filter(|(way, _)| wanted(way)) {
            let start = Instant::now();
            let script = script(&page, section)?;
            let result = attempt(&root, home, &script);
            let took = start.elapsed().as_secs_f64();
            match &result {
                Ok(()) => println!("{system} {way}: ok, {took:.0} s"),
                Err(error) => println!("{system} {way}: FAILED after {took:.0} s: {error:#}"),
            }
            if result.is_err() {
                failed.push(format!("{system} {way}"));
            }
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("failed: {}", failed.join(", "))
}

/// One shell script: the page's commands for a way, and what is checked between them.
fn script(page: &InstallPage, section: &str) -> Result<String> {
    let [install, remove] = page.blocks(section)? else {
        bail!(
            "section `{section}` of {INSTALL} must have two blocks: how to install, and how to remove"
        );
    };
    let one = |name: &str| {
        let blocks = page.blocks(name)?;
        blocks
            .first()
            .with_context(|| format!("`{name}` of {INSTALL} has no commands"))
    };
    let named_nvcc = match section {
        "Debian package" => one("Under the name nvcc")?.as_str(),
        _ => "",
    };
    let parts = [
        ("INSTALL", install.as_str()),
        ("REMOVE", remove.as_str()),
        ("AFTER", one("After installing")?.as_str()),
        ("NAMED_NVCC", named_nvcc),
        ("CACHE", one("The cache's folder")?.as_str()),
    ];
    let filled = parts
        .into_iter()
        .fold(SCRIPT.to_owned(), |script, (name, commands)| {
            script.replace(&format!("# @{name}@\n"), commands)
        });
    match filled.lines().find(|line| line.starts_with("# @")) {
        Some(line) => {
            bail!("xtask/dist/try.sh has the placeholder `{line}`, for which there is no command")
        }
        None => Ok(filled),
    }
}

/// Runs the script in a root of which nothing stays, and looks for what the removal left.
fn attempt(root: &Path, toolkit: &Path, script: &str) -> Result<()> {
    let work = tempfile::Builder::new()
        .prefix(".try-")
        .tempdir_in(repo::roots_dir())
        .context("failed to create a folder for what is tried")?;
    let at = |name: &str| work.path().join(name);
    for name in ["upper", "work", "merged", "home", "in"] {
        fs::create_dir(at(name))?;
    }
    fs::write(at("in/try.sh"), script)?;
    fs::copy(
        repo::root().join("docs/tutorial/saxpy.cu"),
        at("in/saxpy.cu"),
    )?;
    let mounts = roots::Mounts {
        root,
        toolkit,
        made: &dist::folder(),
        work: work.path(),
    };
    let mut command = roots::enter(&mounts)?;
    let said = at("said");
    let out = fs::File::create(&said)?;
    let shown = process::show(&command);
    let status = command
        .stdin(std::process::Stdio::null())
        .stdout(out.try_clone()?)
        .stderr(out)
        .status()
        .with_context(|| format!("failed to start `{shown}`"))?;
    let said = fs::read_to_string(&said)?;
    print!("{}", indent(&said));
    if !status.success() {
        bail!("{status}");
    }
    let left = left_over(&at("upper"))?;
    if !left.is_empty() {
        bail!("the removal left {}", left.join(", "));
    }
    Ok(())
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// Paths that a removal may leave changed: records of the package manager, the loader's cache, and files of the script.
const KEPT: [&str; 5] = [
    "/var/lib/dpkg/",
    "/var/log/",
    "/var/cache/",
    "/etc/ld.so.cache",
    "/try/",
];

/// Files in the upper layer of the root that are not below one of the paths in `kept`.
fn left_over(upper: &Path) -> Result<Vec<String>> {
    let mut find = Command::new("find");
    // Folders that were only touched, and marks of what was removed (character devices), are nothing new.
    find.arg(upper).args(["!", "-type", "d", "!", "-type", "c"]);
    let listed = process::output(&mut find)?;
    let prefix = upper.to_string_lossy().into_owned();
    let places = listed.lines().filter_map(|line| line.strip_prefix(&prefix));
    let is_ours = |place: &str| place.starts_with("/var/lib/dpkg/info/warpcc");
    Ok(places
        .filter(|place| is_ours(place) || !KEPT.iter().any(|kept| place.starts_with(kept)))
        .map(str::to_owned)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> InstallPage {
        let text = fs::read_to_string(repo::root().join(INSTALL)).expect("the page is there");
        InstallPage::parse(&text)
    }

    #[test]
    fn every_way_stands_on_the_page() -> Result<()> {
        for (_, section) in WAYS {
            let script = script(&page(), section)?;
            assert!(script.contains("dist/warpcc"), "{script}");
            let checked = tempfile::NamedTempFile::new()?;
            fs::write(checked.path(), &script)?;
            // Read, not run.
            process::run(Command::new("sh").arg("-n").arg(checked.path()))?;
        }
        Ok(())
    }

    #[test]
    fn every_command_of_the_page_is_run() -> Result<()> {
        let scripts = WAYS.map(|(_, section)| script(&page(), section));
        let scripts: String = scripts.into_iter().collect::<Result<_>>()?;
        for (section, block) in page().all_blocks() {
            assert!(
                scripts.contains(block),
                "nothing runs this of `{section}`:\n{block}"
            );
        }
        Ok(())
    }

    #[test]
    fn remaining_files_are_found() -> Result<()> {
        let upper = tempfile::tempdir()?;
        let put = |place: &str| {
            let file = upper.path().join(place);
            fs::create_dir_all(file.parent().unwrap_or(upper.path()))?;
            fs::write(file, "")
        };
        put("var/lib/dpkg/status")?;
        put("var/lib/dpkg/info/warpcc.list")?;
        put("usr/share/man/man1/warpcc.1.gz")?;
        let mut left = left_over(upper.path())?;
        left.sort();
        let expected = [
            "/usr/share/man/man1/warpcc.1.gz",
            "/var/lib/dpkg/info/warpcc.list",
        ];
        assert_eq!(left, expected);
        Ok(())
    }
}
