//! `warpcc remote`: asks the shared caches, tells what came and went, and uploads what waits.

use std::time::Duration;

use anyhow::bail;
use warpcc_cache::DiskStore;
use warpcc_remote::health::{Health, Way};
use warpcc_remote::settings::Access;
use warpcc_remote::upload::{self, Manner};
use warpcc_remote::{Layer, ping};

use crate::cli::{RemoteCommand, UploadArgs};
use crate::commands::need_store;
use crate::config::Config;
use crate::report;
use crate::report::remote::{Pinged, Rested, Row};

/// Runs the command; the exit code is 1 where a server did not do its part.
///
/// # Errors
/// No shared cache is set, or no cache of our own.
pub fn run(command: &RemoteCommand, config: &Config) -> anyhow::Result<i32> {
    let layers = config.layers();
    if layers.is_empty() {
        if matches!(command, RemoteCommand::Upload(args) if args.background) {
            return Ok(0);
        }
        bail!(
            "no shared cache is set: name one in WARPCC_REMOTE or in the settings file's [remote]"
        );
    }
    match command {
        RemoteCommand::Ping(args) => {
            let store = need_store(config).ok();
            let rows: Vec<Pinged> = layers.iter().map(|l| ping_one(l, store.as_ref())).collect();
            report::print(|out| match args.json {
                true => report::remote::write_ping_json(&rows, out),
                false => report::remote::write_ping(&rows, out),
            })?;
            Ok(i32::from(rows.iter().any(|row| row.answer.is_err())))
        }
        RemoteCommand::Stat(args) => {
            let store = need_store(config)?;
            let rows: Vec<Row> = layers.iter().map(|layer| row(layer, &store)).collect();
            report::print(|out| match args.json {
                true => report::remote::write_stat_json(&rows, out),
                false => report::remote::write_stat(&rows, out),
            })?;
            Ok(0)
        }
        RemoteCommand::Upload(args) => upload(args, &layers, config),
    }
}

fn ping_one(layer: &Layer, store: Option<&DiskStore>) -> Pinged {
    let answer = ping::ping(layer).map_err(|fault| fault.to_string());
    // Who answers need not be left alone any longer.
    if let (Ok(_), Some(store)) = (&answer, store) {
        Health::of(store.root()).well(layer, Way::Reading);
    }
    Pinged {
        server: layer.shown(),
        read_only: layer.access == Access::ReadOnly,
        answer,
    }
}

fn row(layer: &Layer, store: &DiskStore) -> Row {
    let counters = store.counters();
    let id = layer.id();
    let count = |name: &str| {
        let counter = format!("remote_server.{id}.{name}");
        counters.get(&counter).copied().unwrap_or(0)
    };
    let health = Health::of(store.root());
    let rested = |way| {
        health.resting(layer, way).map(|resting| Rested {
            until: resting.until,
            why: resting.why,
        })
    };
    Row {
        server: layer.shown(),
        read_only: layer.access == Access::ReadOnly,
        hits: count("hits"),
        misses: count("misses"),
        uploads: count("uploads"),
        bytes_up: count("bytes_up"),
        bytes_down: count("bytes_down"),
        waiting: upload::waiting(layer, store.root()),
        reading: rested(Way::Reading),
        writing: rested(Way::Writing),
    }
}

fn upload(args: &UploadArgs, layers: &[Layer], config: &Config) -> anyhow::Result<i32> {
    let store = need_store(config)?;
    let limit = Duration::from_secs(args.limit);
    let manner = match args.background {
        true => Manner::Background,
        false => Manner::Asked,
    };
    let accounts = upload::drain(layers, &store, limit, manner)?;
    if args.background {
        return Ok(0);
    }
    report::print(|out| report::remote::write_uploaded(&accounts, out))?;
    Ok(i32::from(
        accounts.iter().any(|account| account.waiting > 0),
    ))
}
