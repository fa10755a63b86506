//! Launcher and masquerade: stands in for the compiler, exactly as it would behave.
//!
//! Whatever goes wrong on the way ends in the user's own command with the real compiler; the
//! reason is counted.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use warpcc_cache::{Access, DiskStore, OpenError, Options, Upstream};
use warpcc_engine::Executor;
use warpcc_plan::Unsupported;
use warpcc_remote::Shared;

use crate::account::Account;
use crate::build::{self, Manner};
use crate::cluster::Elsewhere;
use crate::config::Config;
use crate::direct::Served;
use crate::log::Log;
use crate::machine::{self, Lineage};
use crate::request::{DOMAIN, Request};
use crate::scratch::{self, Naming, Scratch, Wanted};
use crate::signals::Interrupt;
use crate::{cli, commands, direct, fallback, history, locate};

/// What the environment says about us.
pub struct Surroundings {
    /// This program's file, and those of the warpccs that started it.
    pub ourselves: Vec<PathBuf>,
    /// The working directory; empty where it has been removed.
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
    let directory = std::env::current_dir();
    let around = Surroundings {
        ourselves: crate::config::ourselves()?,
        directory: directory.as_deref().unwrap_or(Path::new("")).to_owned(),
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
        _ => {
            // A compiler needs no working directory for absolute paths; these commands do.
            directory?;
            commands::run(args, around)
        }
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
    let mut named_by = None;
    let named = named.or_else(|| {
        // PyTorch is given "warpcc nvcc", and knows its toolkit by a variable.
        let wanted = locate::is_nvcc(compiler) && bare;
        let name = wanted.then(|| Path::new(compiler).file_name())??;
        let (file, by) = locate::in_toolkit(name, &around.environment, &around.ourselves)?;
        named_by = Some(by);
        Some(file)
    });
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
    if log.is_on() {
        let environment = &around.environment;
        locate::tell(&file, named_by, environment, &around.ourselves, &log);
    }
    let store = open_store(&config);
    let lineage = Lineage::find(&config);
    let account = Account::new(&file, args, &around, store.as_ref(), &config, &lineage);
    match cached(&file, args, &around, &account, &log) {
        Ok(code) => code,
        Err(left) => {
            left.count_and_make_room(&account, &log);
            become_compiler(&file, args, &around)
        }
    }
}

/// Calls in which nvcc only answers, or preprocesses: they need no room.
const ASKS_NVCC_ONLY: [&str; 7] = [
    "no input file",
    "--help",
    "--version",
    "--list-gpu",
    "--dryrun",
    "-clean",
    "-E",
];

/// Why a call is nvcc's alone.
pub enum Left {
    /// Nothing in it to cache.
    Plain(&'static str),
    /// Something in it that is not understood, or could not be done.
    Unsupported(Unsupported),
}

impl Left {
    /// What is to be done before this process becomes nvcc: the call is counted, and waits until the machine has room for
    /// an nvcc that compiles.
    pub fn count_and_make_room(&self, account: &Account<'_>, log: &Log) {
        let compiles = match self {
            Self::Plain(reason) => {
                log.line(|| format!("nothing to cache: {reason}"));
                account.passed();
                (!ASKS_NVCC_ONLY.contains(reason)).then_some(*reason)
            }
            Self::Unsupported(why) if why.reason == build::REFUSED => {
                log.line(|| why.reason.to_owned());
                account.refused();
                None
            }
            Self::Unsupported(why) => {
                log.line(|| format!("running nvcc: {why}"));
                account.fallback(why.reason);
                Some(why.reason)
            }
        };
        if let Some(reason) = compiles {
            machine::make_room_for_nvcc(account.config, account.lineage, reason, log);
        }
    }
}

impl std::fmt::Display for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plain(reason) => f.write_str(reason),
            Self::Unsupported(why) => why.fmt(f),
        }
    }
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
    account: &Account<'_>,
    log: &Log,
) -> Result<i32, Left> {
    let (config, store) = (account.config, account.store);
    if around.directory.as_os_str().is_empty() {
        return Err(Unsupported::new("the working directory is gone", "").into());
    }
    let request = Request::new(
        nvcc.to_owned(),
        args,
        around.directory.clone(),
        around.environment.clone(),
        &config.base_dir.value,
    )?;
    if let Some(reason) = request.invocation.plain {
        return Err(Left::Plain(reason));
    }
    if let Some(store) = store {
        store.relocate(&request.roots);
    }
    let listing = request.listing();
    let key = listing.key(DOMAIN);
    let reads_cache = !config.recache.value;
    let serve = || {
        let store = store.filter(|_| reads_cache)?;
        Some(
            direct::serve(store, &request, &key).unwrap_or_else(|error| {
                log.line(|| format!("direct hit not usable: {error}"));
                Served::Miss(None)
            }),
        )
    };
    let hit = |micros: u64| {
        account.direct_hit(&request, micros);
        log.line(|| "direct hit".to_owned());
        Ok(0)
    };
    let difference = match serve() {
        Some(Served::Hit(micros)) => return hit(micros),
        Some(Served::Miss(difference)) => difference,
        Some(Served::NotOurs(why)) => return Err(why.into()),
        None => None,
    };
    let name = &key.hex()[..16];
    let interrupt = Interrupt::watch(config.stall_timeout.value);
    let wanted = Wanted {
        temporary: &request.temporary(),
        name,
        naming: Naming::with_debug(request.invocation.debug),
    };
    let opened = Scratch::open(&wanted, &interrupt.scratch, log);
    let told = match &opened {
        Ok((scratch, _)) => scratch.advice(),
        Err(error) => error.advice(),
    };
    if let Some(told) = told {
        account.warn_once(&told);
    }
    let (scratch, waited) =
        opened.map_err(|error| Unsupported::new(error.reason(), error.to_string()))?;
    // Another process has just built the same thing.
    if waited && let Some(Served::Hit(micros)) = serve() {
        drop(scratch);
        return hit(micros);
    }
    let layers = config.layers();
    let shared = store
        .filter(|_| reads_cache || !config.readonly.value)
        .and_then(|store| {
            (!layers.is_empty()).then(|| Shared::new(&layers, store.root(), crate::log::warn))
        });
    if let (Some(shared), Some(store)) = (shared.as_ref().filter(|_| reads_cache), store)
        && direct::fetch(shared, store, &request, &key)
        && let Some(Served::Hit(micros)) = serve()
    {
        drop(scratch);
        if shared.needs_uploader() {
            history::upload_in_background(&around.ourselves[0]);
        }
        return hit(micros);
    }
    let admission = machine::admission(config, account.lineage, &request, store, log);
    let elsewhere = Elsewhere::of(config, store);
    let manner = Manner {
        // The build tool owns the terminal.
        progress: None,
        store,
        reads_cache,
        writes_cache: store.is_some() && !config.readonly.value,
        upstream: shared.as_ref().map(|shared| shared as &dyn Upstream),
        key,
        jobs: config.job_limit().get(),
        admission: &admission,
        executor: elsewhere.as_ref().map(|cluster| cluster as &dyn Executor),
        sequential: false,
        faithful: false,
        save: None,
        onlooker: None,
        started: around.started,
        ourselves: &around.ourselves,
    };
    let built = build::build(&request, &manner, &scratch, &interrupt);
    drop(scratch);
    let built = built?;
    log_build(log, &built);
    account.built(&request, &listing, &built, difference.as_ref());
    if let Some(store) = store.filter(|_| manner.writes_cache) {
        scratch::sweep(&request.temporary());
        if store.needs_gc() {
            history::collect_in_background(&around.ourselves[0]);
        }
    }
    if shared.as_ref().is_some_and(Shared::needs_uploader) {
        history::upload_in_background(&around.ourselves[0]);
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
    match try_open(config) {
        Ok(store) => {
            if store.was_closed() {
                crate::log::warn(&format!(
                    "other users could write to the cache folder {}, and now cannot: `shared = true` lets them, \
                     `warpcc cache clear` removes what they may have put there",
                    store.root().display()
                ));
            }
            Some(store)
        }
        Err(error) => {
            crate::log::warn(&format!("no cache: {error}"));
            None
        }
    }
}

/// As [`open_store`], for those who have said already what is wrong.
pub fn open_quietly(config: &Config) -> Option<DiskStore> {
    try_open(config).ok()
}

/// The cache, or what is wrong with it.
///
/// # Errors
/// It is no folder, or others decide what is in it.
pub fn try_open(config: &Config) -> Result<DiskStore, OpenError> {
    let options = Options {
        max_size: config.max_size.value.bytes().unwrap_or(0),
        readonly: config.readonly.value,
    };
    let access = match config.shared.value {
        true => Access::ByUmask,
        false => Access::Private,
    };
    DiskStore::open_for(&config.dir.value, options, access)
}

fn hint(compiler: &OsStr) -> String {
    match compiler.to_str().and_then(crate::cli::nearest_subcommand) {
        Some(near) => format!("did you mean `warpcc {near}`?"),
        None => "name a compiler or see `warpcc --help`".to_owned(),
    }
}
