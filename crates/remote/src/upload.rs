//! The uploader: a process of its own that gives servers what waits in the spool, and ends.

use std::time::{Duration, Instant};

use warpcc_cache::{DiskStore, Key, Level};

use crate::backend::Backend;
use crate::backend_kind::AnyBackend;
use crate::backoff::{Health, Way};
use crate::error::Fault;
use crate::settings::{Access, Layer};
use crate::transfer::{self, Pushed};
use crate::upload_queue::{Spool, Waiting};

pub use warpcc_remote_client::upload::{Account, UploadMode, waiting};

/// Results on their way to one server at a time.
const AT_ONCE: usize = 8;

/// How long after an upload we look whether it is still there, and as much again by chance: longer than another uploader
/// takes between reading what is there and putting its own, which is a round trip.
const SETTLE: Duration = Duration::from_millis(80);

/// How often a result that another uploader has replaced is put again.
const AGAIN: u32 = 3;

/// Uploads what waits for `layers`, for at most `limit`. Server by server, so that a slow one comes last only if it is.
///
/// # Errors
/// No runtime.
pub fn drain(
    layers: &[Layer],
    store: &DiskStore,
    limit: Duration,
    manner: UploadMode,
) -> std::io::Result<Vec<Account>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let until = Instant::now() + limit;
    let writable = layers
        .iter()
        .filter(|layer| layer.access == Access::ReadWrite);
    let accounts = runtime.block_on(async {
        let all = writable.map(|layer| of_one(layer, store, until, manner));
        futures_util::future::join_all(all).await
    });
    runtime.shutdown_background();
    Ok(accounts)
}

async fn of_one(layer: &Layer, store: &DiskStore, until: Instant, manner: UploadMode) -> Account {
    let (spool, health) = (Spool::of(store.root()), Health::of(store.root()));
    let mut account = Account {
        server: layer.shown(),
        ..Account::default()
    };
    while spool.has_any(layer) && Instant::now() < until {
        let resting = [Way::Writing, Way::Reading]
            .into_iter()
            .find_map(|way| health.resting(layer, way));
        if let Some(resting) = resting.filter(|_| manner == UploadMode::Background) {
            account.why = Some(resting.why);
            break;
        }
        let Some(lock) = spool.lock(layer) else {
            if manner == UploadMode::Background {
                // That one looks once more when it is done.
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let left = until.saturating_duration_since(Instant::now());
        let work = all_that_waits(layer, store, &spool, &mut account);
        let done = tokio::time::timeout(left, work).await;
        drop(lock);
        match done {
            // More may have come before the lock was free.
            Ok(Ok(())) => health.well(layer, Way::Writing),
            Ok(Err(fault)) => {
                store.count(&[("remote.errors", 1)]);
                if !matches!(fault, Fault::Local { .. }) {
                    health.rest(layer, Way::Writing, &fault.to_string(), false);
                }
                account.why = Some(fault.to_string());
                break;
            }
            Err(_) => {
                account.why = Some("the time for uploads is over".to_owned());
                break;
            }
        }
    }
    account.waiting = spool.waiting(layer).len();
    account
}

async fn all_that_waits(
    layer: &Layer,
    store: &DiskStore,
    spool: &Spool,
    account: &mut Account,
) -> Result<(), Fault> {
    use futures_util::{StreamExt, stream};
    let backend = AnyBackend::new(layer)?;
    let server = layer.shown();
    let push = |entry: Waiting| {
        let (backend, server) = (&backend, &server);
        async move {
            let pushed = transfer::push(backend, server, store, entry.level, &entry.key).await;
            (entry, pushed)
        }
    };
    let mut put = Vec::new();
    let mut all =
        stream::iter(spool.waiting(layer).into_iter().map(push)).buffer_unordered(AT_ONCE);
    while let Some((entry, pushed)) = all.next().await {
        match pushed {
            Ok(Pushed::Put(bytes)) => {
                account.uploaded += 1;
                account.bytes += bytes;
                put.push((entry.level, entry.key));
                let id = layer.id();
                store.count(&[
                    ("remote.uploads", 1),
                    ("remote.bytes_up", bytes),
                    (&format!("remote_server.{id}.uploads"), 1),
                    (&format!("remote_server.{id}.bytes_up"), bytes),
                ]);
            }
            Ok(Pushed::Nothing) => {}
            // What the store has lost nobody can upload.
            Err(Fault::Local { .. }) => store.count(&[("remote.errors", 1)]),
            Err(fault) => return Err(fault),
        }
        spool.done(layer, &entry);
    }
    drop(all);
    settle(&backend, &server, store, put).await
}

/// Looks whether results that were put a moment ago are still there, and puts again what others replaced meanwhile: no
/// protocol of these has a write that fails when somebody else wrote first.
///
/// # Errors
/// The server's faults.
pub async fn settle(
    backend: &impl Backend,
    server: &str,
    store: &DiskStore,
    mut put: Vec<(Level, Key)>,
) -> Result<(), Fault> {
    use futures_util::{StreamExt, TryStreamExt, stream};
    for _ in 0..AGAIN {
        if put.is_empty() {
            break;
        }
        tokio::time::sleep(SETTLE.mul_f64(1.0 + fastrand::f64())).await;
        let look = |(level, key): (Level, Key)| async move {
            if transfer::holds(backend, server, store, level, &key).await? {
                return Ok::<_, Fault>(None);
            }
            transfer::push(backend, server, store, level, &key).await?;
            Ok(Some((level, key)))
        };
        let looks = stream::iter(put).map(look).buffer_unordered(AT_ONCE);
        let again: Vec<_> = looks.try_collect().await?;
        put = again.into_iter().flatten().collect();
    }
    Ok(())
}
