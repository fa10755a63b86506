//! Launcher and masquerade: stands in for the compiler, exactly as it would behave.
//!
//! Whatever goes wrong on the way ends in the user's own command with the real compiler; the
//! reason is counted.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use warpcc_cache::{DiskStore, Options};
use warpcc_plan::Unsupported;

use crate::build::{self, Manner};
use crate::config::Config;
use crate::direct::NotKept;
use crate::log::Log;
use crate::request::{DOMAIN, Request};
use crate::scratch::{self, Scratch};
use crate::{cli, commands, direct, fallback, history, locate};

/// What the environment says about us.
pub struct Surroundings {
    /// This program's file, and those of the warpccs that started it.
    pub ourselves: Vec<PathBuf>,
    /// The working directory.
    pub directory: PathBuf,
    /// The environment, whole.
    pub environment: Vec<(OsString, OsString)>,
    /// When this process began.
    pub started: SystemTime,
}

/// Decides what this process is: the compiler it is named after, one of warpcc's own commands,
/// or a launcher.
///
/// # Errors
/// What an own command could not do.
pub fn start(args: &[OsString]) -> anyhow::Result<i32> {
    let around = Surroundings {
        ourselves: crate::config::ourselves()?,
        directory: std::env::current_dir()?,
        environment: crate::config::environment(),
        started: SystemTime::now(),
    };
    let (name, rest) = match args {
        [name, rest @ ..] => (name.as_os_str(), rest),
        [] => (OsStr::new("warpcc"), args),
    };
    if locate::is_nvcc(name) {
        return Ok(launch(name, rest, around));
    }
    match rest {
        [first, rest @ ..]
            if !cli::is_subcommand(first) && !first.as_encoded_bytes().starts_with(b"-") =>
        {
            Ok(launch(first, rest, around))
        }
        _ => commands::run(args, around),
    }
}

/// Runs `compiler` with `args`; comes back with the exit code, or never.
pub fn launch(compiler: &OsStr, args: &[OsString], around: Surroundings) -> i32 {
    let path = around
        .environment
        .iter()
        .find(|(n, _)| n == "PATH")
        .map(|(_, v)| v.as_os_str());
    // `warpcc warpcc nvcc …`, as two build systems that both add a launcher write it.
    if let ([inner, rest @ ..], true) = (
        args,
        locate::is_ourselves(Path::new(compiler), &around.ourselves),
    ) && !locate::is_nvcc(compiler)
    {
        let inner = inner.clone();
        return launch(&inner, rest, around);
    }
    let config = Config::load(crate::config::variable);
    let chosen = config.as_ref().ok().and_then(|c| c.nvcc.value.clone());
    let bare = !compiler.as_encoded_bytes().contains(&b'/')
        || locate::is_ourselves(Path::new(compiler), &around.ourselves);
    let named = match chosen {
        Some(nvcc) if locate::is_nvcc(compiler) && bare => {
            locate::compiler(nvcc.as_os_str(), path, &around.ourselves)
        }
        _ => locate::compiler(compiler, path, &around.ourselves),
    };
    let Some(file) = named else {
        crate::log::warn(&format!(
            "{} is not in PATH; {}",
            compiler.display(),
            hint(compiler)
        ));
        return 127;
    };
    let config = match config {
        // Behind another warpcc there is nothing left to do, or to count.
        Ok(config)
            if locate::is_nvcc(compiler)
                && !config.disable.value
                && around.ourselves.len() == 1 =>
        {
            config
        }
        Ok(_) => return become_compiler(&file, args, &around),
        Err(error) => {
            crate::log::warn(&format!("{error}; running nvcc without warpcc"));
            return become_compiler(&file, args, &around);
        }
    };
    let log = Log::new(config.log.value.clone());
    let store = open_store(&config);
    match cached(&file, args, &around, &config, store.as_ref(), &log) {
        Ok(code) => code,
        Err(Left::Plain(reason)) => {
            log.line(|| format!("nothing to cache: {reason}"));
            count(
                store.as_ref(),
                &[("invocations.total", 1), ("invocations.passed", 1)],
            );
            become_compiler(&file, args, &around)
        }
        Err(Left::Unsupported(why)) if why.reason == build::REFUSED => {
            log.line(|| why.reason.to_owned());
            count(
                store.as_ref(),
                &[("invocations.total", 1), ("invocations.failed", 1)],
            );
            become_compiler(&file, args, &around)
        }
        Err(Left::Unsupported(why)) => {
            log.line(|| format!("running nvcc: {why}"));
            let reason = format!("fallback_reasons.{}", why.reason);
            count(
                store.as_ref(),
                &[
                    ("invocations.total", 1),
                    ("invocations.fallbacks", 1),
                    (&reason, 1),
                ],
            );
            become_compiler(&file, args, &around)
        }
    }
}

/// Why a call is nvcc's alone.
enum Left {
    Plain(&'static str),
    Unsupported(Unsupported),
}

impl From<Unsupported> for Left {
    fn from(why: Unsupported) -> Self {
        Self::Unsupported(why)
    }
}

fn cached(
    nvcc: &Path,
    args: &[OsString],
    around: &Surroundings,
    config: &Config,
    store: Option<&DiskStore>,
    log: &Log,
) -> Result<i32, Left> {
    let request = Request::new(
        nvcc.to_owned(),
        args,
        around.directory.clone(),
        around.environment.clone(),
    )?;
    if let Some(reason) = request.invocation.plain {
        return Err(Left::Plain(reason));
    }
    let listing = request.listing();
    let key = listing.key(DOMAIN);
    let reads_cache = !config.recache.value;
    let serve = |store: &DiskStore| match direct::serve(store, &request, &key) {
        Ok(hit) => hit,
        Err(error) => {
            log.line(|| format!("direct hit not usable: {error}"));
            false
        }
    };
    let hit = |store: &DiskStore| {
        store.count(&[("invocations.total", 1), ("invocations.direct_hits", 1)]);
        log.line(|| "direct hit".to_owned());
        Ok(0)
    };
    if let Some(store) = store.filter(|_| reads_cache)
        && serve(store)
    {
        return hit(store);
    }
    let name = &key.hex()[..16];
    let (scratch, waited) = Scratch::open(&request.temporary(), name)
        .map_err(|e| Unsupported::new("no private folder", e.to_string()))?;
    // Another process has just built the same thing.
    if let Some(store) = store.filter(|_| waited && reads_cache)
        && serve(store)
    {
        drop(scratch);
        return hit(store);
    }
    let manner = Manner {
        store,
        reads_cache,
        writes_cache: store.is_some() && !config.readonly.value,
        key,
        jobs: config.job_limit().get(),
        sequential: false,
        faithful: false,
        save: None,
        started: around.started,
        ourselves: &around.ourselves,
    };
    let scratch = Arc::new(scratch);
    let built = build::build(&request, &manner, Arc::clone(&scratch));
    scratch.remove();
    let built = built?;
    log_build(log, &built);
    if let Some(store) = store {
        let mut counts = build::step_counts(&built);
        counts.push(("invocations.total".to_owned(), 1));
        counts.push((
            if built.code == 0 {
                "invocations.built"
            } else {
                "invocations.failed"
            }
            .to_owned(),
            1,
        ));
        if let Some(why) = built.not_stored.as_ref().filter(|_| built.code == 0) {
            counts.push((format!("not_direct.{}", kind_of(why)), 1));
            if let NotKept::Store(_) = why {
                crate::log::warn(&format!(
                    "built, but not kept: {why} (`warpcc config` shows where the cache is)"
                ));
            }
        }
        let counts: Vec<(&str, u64)> = counts.iter().map(|(n, c)| (n.as_str(), *c)).collect();
        store.count(&counts);
        if manner.writes_cache {
            history::remember(store, &request, &listing);
            scratch::sweep(&request.temporary());
            if store.needs_gc() {
                history::collect_in_background(&around.ourselves[0]);
            }
        }
    }
    Ok(built.code)
}

/// Says in the log how a build went.
pub fn log_build(log: &Log, built: &build::Built) {
    log.line(|| match &built.not_stored {
        None => format!("built, exit code {}", built.code),
        Some(why) => format!(
            "built, exit code {}; will not hit as a whole: {why}",
            built.code
        ),
    });
    for task in &built.run.tasks {
        if let Some(why) = &task.not_stored {
            log.line(|| format!("{} not stored: {why}", built.graph.steps[task.step].tool));
        }
    }
    if let Some(why) = built.retried {
        log.line(|| format!("ran twice: {why}"));
    }
}

/// A reason without the path in it, to be counted.
fn kind_of(why: &NotKept) -> &str {
    let NotKept::Unfit(why) = why else {
        return "the cache cannot be written";
    };
    [
        "changed while it was in use",
        "is gone",
        "appeared meanwhile",
        "not a regular file",
    ]
    .into_iter()
    .find(|kind| why.contains(kind))
    .unwrap_or(why)
}

fn become_compiler(file: &Path, args: &[OsString], around: &Surroundings) -> i32 {
    let error = fallback::become_compiler(file, args, &around.ourselves);
    crate::log::warn(&error.to_string());
    if error.kind() == std::io::ErrorKind::NotFound {
        127
    } else {
        126
    }
}

/// The cache, or nothing and a warning: it never fails a build.
pub fn open_store(config: &Config) -> Option<DiskStore> {
    let options = Options {
        max_size: config.max_size.value.bytes().unwrap_or(0),
        readonly: config.readonly.value,
    };
    match DiskStore::open(&config.dir.value, options) {
        Ok(store) => Some(store),
        Err(error) => {
            crate::log::warn(&format!("no cache: {error}"));
            None
        }
    }
}

fn count(store: Option<&DiskStore>, counts: &[(&str, u64)]) {
    if let Some(store) = store {
        store.count(counts);
    }
}

fn hint(compiler: &OsStr) -> String {
    match compiler.to_str().and_then(crate::cli::nearest_subcommand) {
        Some(near) => format!("did you mean `warpcc {near}`?"),
        None => "name a compiler or see `warpcc --help`".to_owned(),
    }
}
