//! `warpcc remote`: tests the shared caches, shows their traffic, and uploads waiting results.

mod keygen;
mod print;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::{Args, Subcommand};
use warpcc_cache::{DiskStore, Options};
use warpcc_remote_client::circuit_breaker::{CircuitBreakers, Direction};
use warpcc_remote_client::ping::WriteTest;
use warpcc_remote_client::settings::Access;
use warpcc_remote_client::upload::{self, UploadMode, UploadReport};
use warpcc_remote_client::{Layer, RemoteProgram};
use warpcc_rtc::{CacheSettings, Environment};

use super::output;
use crate::config::{Config, environment};
use crate::remotes;
use crate::store::need_store;
use keygen::KeygenArgs;
use print::{Pinged, Rested, ServerRow};

/// The time limit for one server. Each request also has a deadline of its own.
const PING_LIMIT: Duration = Duration::from_secs(60);

/// `warpcc remote`.
#[derive(Debug, Subcommand)]
pub enum RemoteCommand {
    /// Test each shared cache: what it is, how fast it answers, whether it can be written
    Ping(RemoteArgs),
    /// Show downloads, uploads and waiting uploads of each shared cache
    Stat(RemoteArgs),
    /// Upload all waiting results, as the last step of a CI job
    Upload(UploadArgs),
    /// Make a pair of keys: one signs uploads, the other checks downloads
    Keygen(KeygenArgs),
}

/// `warpcc remote ping` and `stat`.
#[derive(Debug, Args)]
pub struct RemoteArgs {
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// `warpcc remote upload`.
#[derive(Debug, Args)]
pub struct UploadArgs {
    /// Stop after this many seconds; the rest waits for the next upload
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub limit: u64,
    /// As builds start it: leave out paused servers, and say nothing
    #[arg(long, hide = true)]
    pub background: bool,
}

/// Runs the command. The exit code is 1 if a server did not answer or did not take everything.
///
/// # Errors
/// No shared cache is set, or no cache of our own.
pub fn run(command: &RemoteCommand, config: &Config, ourselves: &Path) -> anyhow::Result<i32> {
    if let RemoteCommand::Keygen(args) = command {
        return keygen::run(args, ourselves);
    }
    let layers = config.layers();
    if layers.is_empty() {
        if matches!(command, RemoteCommand::Upload(args) if args.background) {
            return Ok(0);
        }
        bail!("no shared cache is configured: set WARPCC_REMOTE, or [remote] in the settings file");
    }
    if let RemoteCommand::Stat(_)
    | RemoteCommand::Upload(UploadArgs {
        background: false, ..
    }) = command
    {
        warn_of_marks(&config.dir.value);
    }
    match command {
        RemoteCommand::Ping(args) => {
            let stores: Vec<_> = need_store(config).into_iter().chain(kernels()).collect();
            let remote = remotes::for_command(ourselves, &layers);
            let one = |(index, layer)| ping_one(&remote, index, layer, &stores);
            let rows: Vec<Pinged> = layers.iter().enumerate().map(one).collect();
            output::print(|out| match args.json {
                true => print::write_ping_json(&rows, out),
                false => print::write_ping(&rows, out),
            })?;
            Ok(i32::from(!rows.iter().all(Pinged::is_well)))
        }
        RemoteCommand::Stat(args) => {
            let stores: Vec<_> = std::iter::once(need_store(config)?)
                .chain(kernels())
                .collect();
            let rows: Vec<ServerRow> = layers.iter().map(|layer| row(layer, &stores)).collect();
            output::print(|out| match args.json {
                true => print::write_stat_json(&rows, out),
                false => print::write_stat(&rows, out),
            })?;
            Ok(0)
        }
        RemoteCommand::Upload(args) => upload(args, &layers, config, ourselves),
        // Done above, because it needs no server.
        RemoteCommand::Keygen(_) => Ok(0),
    }
}

/// Says why a cache folder uploads nothing, or not everything, whatever the settings are.
fn warn_of_marks(folder: &Path) {
    let shown = folder.display();
    if warpcc_cache::is_never_uploaded(folder) {
        crate::log::warn(&format!(
            "nothing is uploaded from {shown}: it contains the file never-upload"
        ));
    } else if warpcc_cache::is_untrusted(folder) {
        crate::log::warn(&format!(
            "{shown} has results of an untrusted shared cache (the file untrusted): it uploads to untrusted caches only"
        ));
    }
}

fn ping_one(remote: &RemoteProgram, index: usize, layer: &Layer, stores: &[DiskStore]) -> Pinged {
    let answer = remote.ping(index, PING_LIMIT);
    // A server that answers is not paused any longer.
    if let Ok(answer) = &answer {
        for store in stores {
            let breakers = CircuitBreakers::in_cache(store.root());
            breakers.reset(layer, Direction::Reading);
            if let WriteTest::Taken = answer.write {
                breakers.reset(layer, Direction::Writing);
            }
        }
    }
    Pinged {
        server: layer.shown(),
        read_only: layer.access == Access::ReadOnly,
        answer,
    }
}

/// The folder of kernels compiled at run time, which has its own uploads and counters, where there is one.
pub(super) fn kernels() -> Option<DiskStore> {
    let settings = CacheSettings::from_environment(&Environment::from_variables(environment()));
    let tier = settings.tiers.iter().find(|tier| !tier.readonly)?;
    let options = Options {
        max_size: tier.max_size,
        readonly: false,
    };
    let there = tier.path.is_dir();
    there.then(|| DiskStore::open(&tier.path, options).ok())?
}

fn row(layer: &Layer, stores: &[DiskStore]) -> ServerRow {
    let counters: Vec<_> = stores.iter().map(DiskStore::counters).collect();
    let id = layer.id();
    let count = |name: &str| {
        let counter = format!("remote_server.{id}.{name}");
        let of_one = counters.iter().filter_map(|all| all.get(&counter));
        of_one.sum()
    };
    let rested = |way| {
        let of_one = |store: &DiskStore| CircuitBreakers::in_cache(store.root()).pause(layer, way);
        stores.iter().find_map(of_one).map(|pause| Rested {
            until: pause.until,
            why: pause.why,
        })
    };
    let waiting = |store: &DiskStore| upload::waiting(layer, store.root());
    ServerRow {
        server: layer.shown(),
        read_only: layer.access == Access::ReadOnly,
        hits: count("hits"),
        misses: count("misses"),
        uploads: count("uploads"),
        bytes_up: count("bytes_up"),
        bytes_down: count("bytes_down"),
        unsigned: count("unsigned"),
        foreign: count("foreign"),
        bad_signature: count("bad_signature"),
        waiting: stores.iter().map(waiting).sum(),
        reading: rested(Direction::Reading),
        writing: rested(Direction::Writing),
    }
}

fn upload(
    args: &UploadArgs,
    layers: &[Layer],
    config: &Config,
    ourselves: &Path,
) -> anyhow::Result<i32> {
    let remote = remotes::for_command(ourselves, layers);
    let until = Instant::now() + Duration::from_secs(args.limit);
    let mode = match args.background {
        true => UploadMode::Background,
        false => UploadMode::Asked,
    };
    let mut reports: Vec<UploadReport> = Vec::new();
    let kernels = kernels();
    let ours = match need_store(config) {
        Err(error) if kernels.is_none() => return Err(error),
        ours => ours,
    };
    for store in ours.into_iter().chain(kernels) {
        let left = until.saturating_duration_since(Instant::now());
        for report in remote
            .upload(&store, left, mode)
            .map_err(anyhow::Error::msg)?
        {
            match reports.iter_mut().find(|sum| sum.server == report.server) {
                Some(sum) => sum.add(report),
                None => reports.push(report),
            }
        }
    }
    if args.background {
        return Ok(0);
    }
    for report in &reports {
        if let Some(warning) = &report.warning {
            crate::log::warn(warning);
        }
    }
    output::print(|out| print::write_uploaded(&reports, out))?;
    Ok(i32::from(reports.iter().any(|report| report.waiting > 0)))
}
