//! warpcc's own commands: what each of them answers.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use warpcc_cache::{Difference, DiskStore, InputManifest, KeyParts, Level};

use crate::call_record::records;
use crate::cli::{self, CacheCommand, Command, WhyArgs};
use crate::config::{Config, variable};
use crate::direct::conditions_hold;
use crate::jit::JitCommand;
use crate::launch::{ProcessContext, open_store};
use crate::report::why::{FileChange, FileDifference, PartDifference, Why};
use crate::report::{self, stats::Stats};
use crate::request::Request;
use crate::{history, insight, jit, locate, remote};

/// Runs the command that `args` (the program's name first) ask for; gives the exit code.
///
/// # Errors
/// What went wrong, on which file, for the user.
pub fn run(args: &[OsString], around: ProcessContext) -> anyhow::Result<i32> {
    let command = match cli::parse(args) {
        Ok(command) => command,
        Err(error) => {
            // Help and the version also come this way. A closed pipe is the reader's business.
            _ = error.print();
            return Ok(error.exit_code());
        }
    };
    if let Command::Completions(args) = &command {
        report::print(|out| cli::completions(args.shell, out))?;
        return Ok(0);
    }
    if let Command::Fatbin(command) = &command {
        return crate::fatbin::run(command);
    }
    if let Command::Jit(JitCommand::Load(args)) = &command {
        // Started by `jit warm`, which has read the settings.
        return jit::load(args);
    }
    if let Command::Doctor(args) = &command {
        // A wrong setting is one of the things to find.
        return insight::doctor(args, Config::load(variable), &around);
    }
    if let Command::Jit(command) = &command {
        return jit::run(command, &jit::settings()?, &around);
    }
    if let Command::Rtc(command) = &command {
        return crate::rtc::run(command, &around);
    }
    let config = Config::load(variable)?;
    match command {
        Command::Run(args) => return crate::run::run(&args, &config, around),
        Command::Explain(args) => return crate::explain::run(&args, &config, around),
        Command::Stats(args) => {
            let store = need_store(&config)?;
            let (cache_bytes, cache_entries) = store.size()?;
            let counters = store.counters();
            let stats = Stats {
                saved: insight::saved(&counters),
                projects: insight::projects(&records(&store)),
                counters,
                cache_bytes,
                cache_entries,
            };
            report::print(|out| match args.json {
                true => report::stats::write_json(&stats, out),
                false => report::stats::write_text(&stats, out),
            })?;
            if args.zero {
                store.zero_counters()?;
            }
        }
        Command::Report(args) => {
            insight::report(&args, &records(&need_store(&config)?))?;
        }
        Command::Monitor(args) => {
            // Without a cache there is still something to watch.
            return insight::monitor(&args, &config, open_store(&config).as_ref());
        }
        Command::Cache(command) => return cache(&command, &config),
        Command::Remote(command) => return remote::run(&command, &config),
        Command::Config(args) => {
            let rows = config.rows();
            report::print(|out| match args.json {
                true => report::settings::write_json(&rows, out),
                false => report::settings::write_text(&rows, config.file.as_deref(), out),
            })?;
        }
        Command::Why(args) => {
            let why = why(&args, &config, around)?;
            report::print(|out| report::why::write(&why, out))?;
        }
        Command::Completions(_)
        | Command::Fatbin(_)
        | Command::Jit(_)
        | Command::Rtc(_)
        | Command::Doctor(_) => {}
    }
    Ok(0)
}

/// The cache, or why there is none.
///
/// # Errors
/// Its folder cannot be used.
pub fn need_store(config: &Config) -> anyhow::Result<DiskStore> {
    open_store(config).with_context(|| {
        format!(
            "the cache folder {} cannot be used",
            config.dir.value.display()
        )
    })
}

fn cache(command: &CacheCommand, config: &Config) -> anyhow::Result<i32> {
    if let CacheCommand::Dir = command {
        report::print(|out| writeln!(out, "{}", config.dir.value.display()))?;
        return Ok(0);
    }
    let store = need_store(config)?;
    let before = store.size()?;
    match command {
        CacheCommand::Dir => {}
        CacheCommand::Size => {
            report::print(|out| {
                report::cache::write_size(before.0, before.1, config.max_size.value, out)
            })?;
        }
        CacheCommand::Clear => {
            store.clear()?;
            report::print(|out| report::cache::write_removed(before.0, before.1, out))?;
        }
        CacheCommand::Gc => {
            let collected = store.gc(store.gc_target())?;
            report::print(|out| {
                report::cache::write_removed(collected.freed, collected.removed, out)
            })?;
        }
        CacheCommand::Verify => {
            let found = store.verify()?;
            let bad: Vec<String> = found.bad.iter().map(|p| p.display().to_string()).collect();
            report::print(|out| report::cache::write_verified(found.checked, &bad, out))?;
            return Ok(i32::from(!bad.is_empty()));
        }
    }
    Ok(0)
}

/// The nvcc that `run` and `why` mean: named by option or argument, else the setting, else PATH, else the toolkit that a
/// variable names.
pub fn find_nvcc(
    named: Option<&Path>,
    config: &Config,
    around: &ProcessContext,
) -> anyhow::Result<std::path::PathBuf> {
    let path = around
        .environment
        .iter()
        .find(|(n, _)| n == "PATH")
        .map(|(_, v)| v.as_os_str());
    // As the launcher: the setting holds for the bare word.
    let is_bare = |name: &&Path| {
        locate::is_nvcc(name.as_os_str())
            && (name.components().count() == 1 || locate::is_ourselves(name, &around.ourselves))
    };
    let chosen = config.nvcc.value.as_deref();
    let name = named
        .filter(|name| chosen.is_none() || !is_bare(name))
        .or(chosen)
        .map_or(OsStr::new("nvcc"), Path::as_os_str);
    let found = locate::compiler(name, path, &around.ourselves).or_else(|| {
        let in_toolkit = locate::in_toolkit(name, &around.environment, &around.ourselves);
        in_toolkit
            .filter(|_| locate::is_nvcc(name))
            .map(|(file, _)| file)
    });
    found.with_context(|| {
        format!(
            "{} is not in PATH, and no CUDA_HOME or CUDA_PATH has it; name it with WARPCC_NVCC or --nvcc",
            name.display()
        )
    })
}

fn why(args: &WhyArgs, config: &Config, around: ProcessContext) -> anyhow::Result<Why> {
    let (named, rest) = cli::split_compiler(&args.args);
    let nvcc = find_nvcc(named, config, &around)?;
    let request = match Request::new(
        nvcc,
        rest,
        around.directory.clone(),
        around.environment.clone(),
        &config.base_dir.value,
    ) {
        Ok(request) => request,
        Err(reason) => return Ok(Why::Fallback(reason.to_string())),
    };
    if let Some(reason) = request.invocation.plain {
        return Ok(Why::Fallback(reason.to_owned()));
    }
    let store = need_store(config)?;
    let listing = request.listing();
    let variants = differences(&store, &request, &listing)?;
    if variants
        .iter()
        .any(|(_, differences)| differences.is_empty())
    {
        return Ok(Why::Hit);
    }
    // The same command saw other files, or another command made this output last time.
    if let Some(files) = nearest(variants, &request) {
        return Ok(Why::Differs {
            parts: Vec::new(),
            files,
        });
    }
    let Some(earlier) = history::recall(&store, &request) else {
        return Ok(Why::NeverSeen);
    };
    let parts = part_differences(&earlier, &listing);
    let before = differences(&store, &request, &earlier)?;
    Ok(Why::Differs {
        parts,
        files: nearest(before, &request).unwrap_or_default(),
    })
}

/// What every remembered run under the keys of `listing` saw, and what is different now: none of it, for one that a call
/// would be answered with.
fn differences(
    store: &DiskStore,
    request: &Request,
    listing: &KeyParts,
) -> anyhow::Result<Vec<(InputManifest, Vec<Difference>)>> {
    let mut all = Vec::new();
    for variant in request.keys(listing).iter() {
        let holds = |outcome: &warpcc_cache::Outcome| conditions_hold(variant, outcome, request);
        let at = request.work_dir();
        all.extend(store.differences(Level::Direct, &variant.key, at, &holds)?);
    }
    Ok(all)
}

/// What differs from the remembered run that saw most of what is there now.
fn nearest(
    variants: Vec<(InputManifest, Vec<Difference>)>,
    request: &Request,
) -> Option<Vec<FileDifference>> {
    let (manifest, differences) = variants.into_iter().min_by_key(|(_, d)| d.len())?;
    let found = differences
        .into_iter()
        .map(|d| file_difference(d, request, &manifest))
        .collect();
    Some(found)
}

fn part_differences(old: &KeyParts, new: &KeyParts) -> Vec<PartDifference> {
    let text = |value: Option<Vec<u8>>| value.map(|v| String::from_utf8_lossy(&v).into_owned());
    KeyParts::changes(old, new)
        .into_iter()
        .map(|change| PartDifference {
            name: change.name,
            old: text(change.old),
            new: text(change.new),
        })
        .collect()
}

fn file_difference(
    difference: Difference,
    request: &Request,
    manifest: &InputManifest,
) -> FileDifference {
    let path = difference.path().to_owned();
    let is_source = request
        .invocation
        .inputs
        .iter()
        .any(|i| Path::new(i) == path);
    let kind = match difference {
        Difference::FileChanged { .. } if is_source => FileChange::SourceChanged,
        Difference::FileChanged { .. } => FileChange::HeaderChanged,
        Difference::FileMissing { .. } => FileChange::Missing,
        Difference::VariableChanged { .. } => FileChange::Variable,
        // Looked for here and found elsewhere: the new one now comes first.
        Difference::FileAppeared { .. } => manifest
            .files()
            .map(|file| file.path)
            .find(|old| old.file_name() == path.file_name())
            .map_or(FileChange::Appeared, FileChange::Shadows),
    };
    FileDifference { kind, path }
}

/// Writes a report to a file, naming the file when that fails.
///
/// # Errors
/// The file cannot be written.
pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut out = BufWriter::new(file);
    write(&mut out)
        .and_then(|()| out.flush())
        .with_context(|| format!("cannot write {}", path.display()))
}
