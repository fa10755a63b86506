//! Checks whether the watch library can be loaded into a program.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use warpcc_report::doctor::Finding;

use super::finding::{error_of, fine, warning};
use super::tools;
use super::variables::variable;
use crate::config::Config;
use crate::process_context::ProcessContext;

/// A program that every Linux has and that ends at once.
const PROGRAM: &str = "/bin/true";

pub(super) fn check(config: &Config, context: &ProcessContext, findings: &mut Vec<Finding>) {
    let why = "without it warpcc cannot see what a compiler reads, and whole calls are not cached";
    if !warpcc_watch::available() {
        findings.push(error_of(
            "this warpcc was built without a watch library",
            why,
            "build it on Linux with glibc, with a C compiler",
        ));
        return;
    }
    let temporary = variable(context, "TMPDIR").map_or_else(
        || PathBuf::from("/tmp"),
        |folder| context.directory.join(folder),
    );
    let own = temporary.join(format!("warpcc-doctor-{}", std::process::id()));
    let tried = attempt(config, context, &own);
    if let Ok(library) = &tried {
        tools::check(config, context, library, &own, findings);
    }
    drop(fs::remove_dir_all(&own));
    findings.push(match tried {
        Ok(_) => fine("the watch library loads and sees what a program reads"),
        Err(problem) => warning(
            format!("the watch library does not work: {problem}"),
            why,
            "WARPCC_DIR=/a/folder/that/programs/may/be/loaded/from, or TMPDIR likewise (mount option noexec?)",
        ),
    });
}

fn attempt(config: &Config, context: &ProcessContext, own: &Path) -> Result<PathBuf, String> {
    // The folder must be new and private, because other users can guess its name.
    DirBuilder::new()
        .mode(0o700)
        .create(own)
        .map_err(|error| format!("{}: {error}", own.display()))?;
    // As in a build, the library is in the cache or, if that is not possible, in a private folder.
    let kept = crate::watch_folder::in_cache(&config.dir.value);
    let library = [kept, Some(own.to_owned())]
        .into_iter()
        .flatten()
        .filter(|folder| warpcc_watch::can_preload_from(folder))
        .find_map(|folder| {
            fs::create_dir_all(&folder).ok()?;
            warpcc_watch::install(&folder).ok()
        })
        .ok_or("there is no folder that the loader loads it from")?;
    let log = own.join("log");
    let inherited = variable(context, "LD_PRELOAD");
    let environment =
        warpcc_watch::environment(&library, &log, inherited).map_err(|error| error.to_string())?;
    Command::new(PROGRAM)
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("{PROGRAM}: {error}"))?;
    let bytes = fs::read(&log).map_err(|_| format!("{PROGRAM} did not load it"))?;
    let seen = warpcc_watch::read_log(&bytes, std::path::Path::new(PROGRAM), &|_| true)
        .map_err(|error| error.to_string())?;
    match seen.untracked {
        Some(reason) => Err(reason),
        None if seen.processes.is_empty() => Err(format!("it did not see {PROGRAM}")),
        None => Ok(library),
    }
}
