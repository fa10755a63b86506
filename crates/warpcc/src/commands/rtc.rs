//! `warpcc rtc`: compiles kernels from source ahead of time, into the cache that programs use at run time.

mod args;
mod embed;
mod images;
mod manifest;
mod why;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use warpcc_cache::{DiskStore, Level, Upstream};
use warpcc_remote_client::upload::{UploadMode, UploadReport};
use warpcc_remote_client::{RemoteProgram, SharedCaches};
use warpcc_rtc::{
    CacheSettings, CallLimits, CompileRequest, Compiler, Environment, Error, ErrorKind, Found,
    Image, KernelCache, serve_compilations, write_pack,
};

pub use args::RtcCommand;
use args::{CompileArgs, KernelArgs, RtcWarmArgs, RtcWhyArgs, WithArgs};
use manifest::Manifest;

use super::output::{self, write_file};
use crate::config::{Config, format_bytes, variable};
use crate::process_context::ProcessContext;
use crate::{history, log, remotes};

/// All kernels are compiled and kept.
const FINE: i32 = 0;
/// Something does not compile, or cannot be stored.
const NOT_FINE: i32 = 1;
/// How long `warm` waits for its uploads.
const UPLOADS: Duration = Duration::from_secs(300);

/// Runs one of the commands, and returns the exit code.
///
/// # Errors
/// The command could not be tried.
pub fn run(command: &RtcCommand, context: &ProcessContext) -> anyhow::Result<i32> {
    match command {
        RtcCommand::Compile(args) => compile(args, context),
        RtcCommand::Warm(args) => warm(args, context),
        RtcCommand::Embed(args) => {
            embed::write_bundle(args, context)?;
            Ok(FINE)
        }
        RtcCommand::Why(args) => why(args, context),
        RtcCommand::Worker => {
            serve_compilations().map_err(anyhow::Error::msg)?;
            Ok(FINE)
        }
    }
}

/// The cache of a program with this environment, and the shared caches behind it.
struct Caches {
    kernels: KernelCache,
    shared: Option<Shared>,
}

/// The shared caches behind the first folder that may be written to.
struct Shared {
    program: Arc<RemoteProgram>,
    caches: Arc<SharedCaches>,
    store: DiskStore,
}

impl Shared {
    /// The shared caches that the settings name; `None` where they name none.
    ///
    /// # Errors
    /// The settings are invalid, or there is no folder for results from the shared caches.
    fn open(settings: &CacheSettings, context: &ProcessContext) -> Result<Option<Self>, String> {
        let config = Config::load(variable).map_err(|error| error.to_string())?;
        let layers = config.layers();
        if layers.is_empty() {
            return Ok(None);
        }
        let store = settings.open_first_written();
        let store = store.map_err(|why| format!("the shared cache is not used: {why}"))?;
        let program = remotes::for_kernels(&context.ourselves[0], &layers, &store);
        let program = Arc::new(program);
        let caches = SharedCaches::new(Arc::clone(&program), layers, store.root());
        Ok(Some(Self {
            program,
            caches: Arc::new(caches),
            store,
        }))
    }

    /// Waits until everything is uploaded, and warns of each failure. Returns true if no upload waits any more.
    fn upload_all(&self) -> bool {
        let uploaded = match self.caches.waits() {
            true => self.program.upload(&self.store, UPLOADS, UploadMode::Asked),
            false => Ok(Vec::new()),
        };
        match uploaded {
            Ok(reports) => reports
                .iter()
                .filter_map(UploadReport::unfinished)
                .for_each(|unfinished| log::warn(&unfinished)),
            Err(why) => log::warn(&format!("nothing was uploaded: {why}")),
        }
        !self.caches.waits()
    }
}

impl Caches {
    fn open(
        with: &WithArgs,
        context: &ProcessContext,
        common: CompileRequest,
    ) -> anyhow::Result<Self> {
        let environment = Environment::from_variables(context.environment.iter().cloned());
        let compiler = Compiler::find_with(with.nvrtc.as_deref(), &environment)?;
        let settings = CacheSettings::from_environment(&environment);
        let shared = Shared::open(&settings, context).unwrap_or_else(|why| {
            log::warn(&format!("no shared cache: {why}"));
            None
        });
        let upstream = shared.as_ref().map(|shared| {
            let caches: Arc<dyn Upstream> = shared.caches.clone();
            caches
        });
        let kernels = KernelCache::with(compiler, settings, upstream).compiled_with(common);
        Ok(Self { kernels, shared })
    }
}

/// An image, for people and programs.
#[derive(Debug, Serialize)]
struct KernelRow {
    name: String,
    target: String,
    /// `made`, `failed`, or the place where it was found.
    result: &'static str,
    bytes: usize,
    key: Option<String>,
    /// Each kernel and its name in the image.
    lowered: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl KernelRow {
    fn new(name: &str, target: String, result: &Result<Image, Error>) -> Self {
        let (word, image, error) = match result {
            Ok(image) => (Found::word(image.found), Some(image), None),
            Err(error) => ("failed", None, Some(error.to_string())),
        };
        Self {
            name: name.to_owned(),
            target,
            result: word,
            bytes: image.map_or(0, |image| image.compiled.image.len()),
            key: image.and_then(|image| image.key.map(|key| key.hex())),
            lowered: image.map_or_else(BTreeMap::new, |image| {
                image.compiled.lowered.iter().cloned().collect()
            }),
            error,
        }
    }
}

/// The part of a request that [`KernelCache::compiled_with`] takes.
fn common_of(kernel: &KernelArgs) -> CompileRequest {
    let mut common = CompileRequest::new("", "", kernel.arch);
    let defines = kernel.defines.iter().map(|define| format!("-D{define}"));
    common.options = defines
        .chain(kernel.options.iter().cloned())
        .map(Into::into)
        .collect();
    common.include_folders.clone_from(&kernel.includes);
    common
}

/// The same request as a program's for its first kernel.
fn request_of(kernel: &KernelArgs, cache: &KernelCache) -> anyhow::Result<CompileRequest> {
    let source = std::fs::read_to_string(&kernel.file)
        .map_err(|error| anyhow::anyhow!("cannot read {}: {error}", kernel.file.display()))?;
    let [first, others @ ..] = kernel.names.as_slice() else {
        anyhow::bail!("name a kernel with --name");
    };
    let mut request = cache.request(&kernel.parameters, first, &source, kernel.arch);
    request
        .name_expressions
        .extend(others.iter().map(|name| name.as_str().into()));
    request.file = Some(kernel.file.to_string_lossy().into());
    Ok(request)
}

fn compile(args: &CompileArgs, context: &ProcessContext) -> anyhow::Result<i32> {
    let kernel = &args.kernel;
    let caches = Caches::open(&args.with, context, common_of(kernel))?;
    let cache = &caches.kernels;
    let request = request_of(kernel, cache)?;
    let result = cache.get(&request, &CallLimits::default());
    if let Err(error) = &result
        && error.kind() != ErrorKind::Compile
    {
        return Err(error.clone().into());
    }
    let row = KernelRow::new(&request.name, kernel.arch.to_string(), &result);
    let image = match result {
        Ok(image) => image,
        Err(error) => {
            log::fail(&error.to_string());
            return Ok(NOT_FINE);
        }
    };
    let output = args.output.clone().unwrap_or_else(|| {
        let name = kernel
            .file
            .file_name()
            .map(Path::new)
            .unwrap_or(Path::new("kernel"));
        PathBuf::from(name).with_extension(kernel.arch.extension())
    });
    write_file(&output, |out| out.write_all(&image.compiled.image))?;
    if !args.with.json {
        let size = format_bytes(image.compiled.image.len() as u64);
        log::inform(&format!("wrote {}, {size}", output.display()));
    }
    if !image.compiled.log.trim().is_empty() {
        log::warn(image.compiled.log.trim_end());
    }
    remarks(cache);
    if caches
        .shared
        .as_ref()
        .is_some_and(|shared| shared.caches.waits())
    {
        history::upload_in_background(&context.ourselves[0]);
    }
    output::print(|out| match args.with.json {
        true => writeln_json(out, &row),
        false => {
            for (name, lowered) in &image.compiled.lowered {
                writeln!(out, "{name}  {lowered}")?;
            }
            Ok(())
        }
    })?;
    Ok(FINE)
}

fn why(args: &RtcWhyArgs, context: &ProcessContext) -> anyhow::Result<i32> {
    let caches = Caches::open(&args.with, context, common_of(&args.kernel))?;
    let cache = &caches.kernels;
    let request = request_of(&args.kernel, cache)?;
    let form = match args.with.json {
        true => why::Form::Json,
        false => why::Form::Text,
    };
    let is_kept = why::write(cache, &request, form)?;
    remarks(cache);
    Ok(match is_kept {
        true => FINE,
        false => NOT_FINE,
    })
}

fn warm(args: &RtcWarmArgs, context: &ProcessContext) -> anyhow::Result<i32> {
    let manifest = Manifest::read(&args.manifest, &args.arch)?;
    let caches = Caches::open(&args.with, context, manifest.common)?;
    let cache = &caches.kernels;
    anyhow::ensure!(
        cache.settings().tiers.iter().any(|tier| !tier.readonly),
        "there is no folder to store kernels in{}",
        cache
            .remarks()
            .iter()
            .map(|remark| format!("; {remark}"))
            .collect::<String>()
    );
    let images = images::compile_all(cache, &manifest.jobs, context);
    if let Some(pack) = &args.pack {
        let kept = images
            .iter()
            .filter_map(|(_, _, image)| image.as_ref().ok());
        let kept: Vec<_> = kept
            .filter_map(|image| Some((image.key?, &*image.compiled)))
            .collect();
        write_pack(pack, &kept)?;
    }
    // A shared cache may lack kernels that were found on this machine.
    let there = images
        .iter()
        .filter_map(|(_, _, image)| image.as_ref().ok());
    let there = there.filter(|image| matches!(image.found, Found::Disk | Found::Memory));
    let uploaded = caches.shared.as_ref().is_none_or(|shared| {
        there
            .filter_map(|image| image.key)
            .for_each(|key| shared.caches.offer(&shared.store, Level::Kernels, &key));
        shared.upload_all()
    });
    let rows: Vec<KernelRow> = images
        .into_iter()
        .map(|(name, target, image)| KernelRow::new(name, target, &image))
        .collect();
    let failed = rows.iter().filter(|row| row.error.is_some()).count();
    let kept = cache.keeps_all() && uploaded;
    remarks(cache);
    output::print(|out| match args.with.json {
        true => writeln_json(out, &rows),
        false => write_rows(out, &rows, args.pack.as_deref()),
    })?;
    Ok(match failed == 0 && kept {
        true => FINE,
        false => NOT_FINE,
    })
}

fn write_rows(out: &mut dyn io::Write, rows: &[KernelRow], pack: Option<&Path>) -> io::Result<()> {
    for row in rows.iter().filter(|row| row.error.is_some()) {
        writeln!(out, "FAILED  {} for {}", row.name, row.target)?;
        for line in row.error.iter().flat_map(|error| error.lines()) {
            writeln!(out, "    {line}")?;
        }
    }
    let count = |word: &str| rows.iter().filter(|row| row.result == word).count();
    let (made, failed) = (count("made"), count("failed"));
    let bytes: usize = rows.iter().map(|row| row.bytes).sum();
    writeln!(
        out,
        "{} images, {bytes} bytes: {made} compiled now, {} there already, {failed} failed",
        rows.len(),
        rows.len() - made - failed
    )?;
    match pack {
        Some(pack) => writeln!(out, "pack: {}", pack.display()),
        None => Ok(()),
    }
}

fn writeln_json(out: &mut dyn io::Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

/// Warns of the cache's problems, which are no errors of the kernels.
fn remarks(cache: &KernelCache) {
    for remark in cache.remarks() {
        log::warn(&remark);
    }
}
