//! The uploader: a process that uploads what is in the queue, and ends.

use std::time::{Duration, Instant};

use warpcc_cache::{DiskStore, Key, Level};

use crate::backend::Backend;
use crate::backend_kind::AnyBackend;
use crate::cache_layers::count_ignored;
use crate::circuit_breaker::{CircuitBreakers, Direction};
use crate::error::RemoteError;
use crate::remote_record::Peer;
use crate::settings::{Access, Layer};
use crate::signature::Trust;
use crate::transfer::{self, Pushed};
use crate::upload_queue::{QueuedUpload, UploadQueue};

pub use warpcc_remote_client::upload::{UploadMode, UploadReport, waiting};

/// The number of results that are uploaded to one server at a time.
const AT_ONCE: usize = 8;

/// How long after an upload we look whether it is still there, and as much again by chance: longer than another uploader
/// takes between reading what is there and putting its own, which is a round trip.
const SETTLE: Duration = Duration::from_millis(80);

/// How often a replaced result is uploaded again.
const AGAIN: u32 = 3;

/// Uploads what waits for `layers`, for at most `limit`, one server after the other.
///
/// # Errors
/// No runtime.
pub fn drain(
    layers: &[Layer],
    store: &DiskStore,
    limit: Duration,
    mode: UploadMode,
) -> std::io::Result<Vec<UploadReport>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let until = Instant::now() + limit;
    let writable = layers
        .iter()
        .filter(|layer| layer.access == Access::ReadWrite);
    let reports = runtime.block_on(async {
        let all = writable.map(|layer| upload_to_layer(layer, store, until, mode));
        futures_util::future::join_all(all).await
    });
    runtime.shutdown_background();
    Ok(reports)
}

async fn upload_to_layer(
    layer: &Layer,
    store: &DiskStore,
    until: Instant,
    mode: UploadMode,
) -> UploadReport {
    let (queue, breakers) = (
        UploadQueue::in_cache(store.root()),
        CircuitBreakers::in_cache(store.root()),
    );
    let mut report = UploadReport {
        server: layer.shown(),
        ..UploadReport::default()
    };
    if mode == UploadMode::Background && layer.uploads_at_end() {
        report.waiting = queue.entries(layer).len();
        return report;
    }
    if let Some(why) = forbidden(layer, store) {
        report.waiting = queue.entries(layer).len();
        report.why = Some(why);
        return report;
    }
    while queue.has_entries(layer) && Instant::now() < until {
        let pause = [Direction::Writing, Direction::Reading]
            .into_iter()
            .find_map(|way| breakers.pause(layer, way));
        if let Some(pause) = pause.filter(|_| mode == UploadMode::Background) {
            report.why = Some(pause.why);
            break;
        }
        let Some(lock) = queue.lock(layer) else {
            if mode == UploadMode::Background {
                // The other uploader looks once more when it is done.
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let left = until.saturating_duration_since(Instant::now());
        let work = upload_queued(layer, store, &queue, &mut report);
        let done = tokio::time::timeout(left, work).await;
        drop(lock);
        match done {
            // More results may have been added before the lock was free.
            Ok(Ok(())) => breakers.reset(layer, Direction::Writing),
            Ok(Err(fault)) => {
                store.count(&[("remote.errors", 1)]);
                if let RemoteError::Busy { .. } = fault {
                    let waiting = queue.entries(layer).len();
                    store.count(&[("remote.rate_limited", waiting as u64)]);
                }
                if !matches!(fault, RemoteError::Local { .. }) {
                    breakers.trip(layer, Direction::Writing, &fault.to_string(), false);
                }
                report.why = Some(fault.to_string());
                break;
            }
            Err(_) => {
                report.why = Some("the time limit for uploads was reached".to_owned());
                break;
            }
        }
    }
    report.waiting = queue.entries(layer).len();
    report
}

/// Why nothing of `store` may go to `layer`, whatever the settings say.
fn forbidden(layer: &Layer, store: &DiskStore) -> Option<String> {
    let root = store.root();
    let folder = root.display();
    if warpcc_cache::is_never_uploaded(root) {
        return Some(format!("{folder} contains the file never-upload"));
    }
    (warpcc_cache::is_untrusted(root) && !layer.untrusted).then(|| {
        format!(
            "{folder} has results of an untrusted shared cache; upload from another cache folder (WARPCC_DIR)"
        )
    })
}

async fn upload_queued(
    layer: &Layer,
    store: &DiskStore,
    queue: &UploadQueue,
    report: &mut UploadReport,
) -> Result<(), RemoteError> {
    use futures_util::{StreamExt, stream};
    let backend = AnyBackend::new(layer, Some(store.root()))?.for_uploads();
    let server = layer.shown();
    let trust = Trust::new(&layer.signatures)?;
    // Without the key nothing is uploaded.
    if let Some(signer) = trust.signer().await? {
        report.warning.clone_from(&signer.warning);
    }
    let peer = Peer {
        backend: &backend,
        name: &server,
        trust: &trust,
        untrusted: layer.untrusted,
    };
    let push = |entry: QueuedUpload| async move {
        let pushed = transfer::push(peer, store, entry.level, &entry.key).await;
        (entry, pushed)
    };
    let mut published = Published::default();
    let mut done = Vec::new();
    let mut all =
        stream::iter(queue.entries(layer).into_iter().map(push)).buffer_unordered(AT_ONCE);
    while let Some((entry, pushed)) = all.next().await {
        match pushed {
            Ok(pushed) => done.push((entry, pushed)),
            // A result that the store has lost cannot be uploaded.
            Err(RemoteError::Local { .. }) => {
                store.count(&[("remote.errors", 1)]);
                queue.remove(layer, &entry);
            }
            Err(fault) => return Err(fault),
        }
        if backend.should_publish().await {
            backend.publish().await?;
            published.add(done.drain(..), (layer, store, queue), report);
        }
    }
    drop(all);
    let last = backend.publish().await;
    count_ignored(store, &backend);
    last?;
    published.add(done.drain(..), (layer, store, queue), report);
    if !backend.can_be_replaced() {
        return Ok(());
    }
    restore_replaced(peer, store, published.0).await
}

/// Results that others see from here on.
#[derive(Default)]
struct Published(Vec<(Level, Key)>);

impl Published {
    fn add(
        &mut self,
        done: impl Iterator<Item = (QueuedUpload, Pushed)>,
        (layer, store, queue): (&Layer, &DiskStore, &UploadQueue),
        report: &mut UploadReport,
    ) {
        for (entry, pushed) in done {
            if let Pushed::Put(bytes) = pushed {
                report.uploaded += 1;
                report.bytes += bytes;
                self.0.push((entry.level, entry.key));
                let id = layer.id();
                store.count(&[
                    ("remote.uploads", 1),
                    ("remote.bytes_up", bytes),
                    (&format!("remote_server.{id}.uploads"), 1),
                    (&format!("remote_server.{id}.bytes_up"), bytes),
                ]);
            }
            queue.remove(layer, &entry);
        }
    }
}

/// Looks whether results that were put a moment ago are still there, and puts again what others replaced meanwhile: no
/// protocol of these has a write that fails when somebody else wrote first.
///
/// # Errors
/// The server's faults.
pub async fn restore_replaced(
    peer: Peer<'_, impl Backend>,
    store: &DiskStore,
    mut put: Vec<(Level, Key)>,
) -> Result<(), RemoteError> {
    use futures_util::{StreamExt, TryStreamExt, stream};
    for _ in 0..AGAIN {
        if put.is_empty() {
            break;
        }
        tokio::time::sleep(SETTLE.mul_f64(1.0 + fastrand::f64())).await;
        let look = |(level, key): (Level, Key)| async move {
            if transfer::holds(peer, store, level, &key).await? {
                return Ok::<_, RemoteError>(None);
            }
            transfer::push(peer, store, level, &key).await?;
            Ok(Some((level, key)))
        };
        let looks = stream::iter(put).map(look).buffer_unordered(AT_ONCE);
        let again: Vec<_> = looks.try_collect().await?;
        put = again.into_iter().flatten().collect();
    }
    Ok(())
}
