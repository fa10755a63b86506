//! Two uploaders at one key at the same moment, on a real server: what the later one replaces is put again.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use bazel_remote_apis::build::bazel::remote::execution::v2::ActionResult;
use tokio::sync::Barrier;
use warpcc_cache::{
    Digest, DiskStore, InputManifestBuilder, Key, Level, Options, Outcome, Packing, ProducedFile,
};
use warpcc_remote::backend::UploadSource;
use warpcc_remote::remote_record::Peer;
use warpcc_remote::signature::Trust;
use warpcc_remote::transfer::{self, Pushed};
use warpcc_remote::{Backend, Grpc, RemoteError, upload};
use warpcc_remote_client::signatures::Signatures;

use crate::{block_on, client};
use warpcc_testkit::casd::Casd;

const KEY: Key = Key([7; 32]);

/// A server whose first result is put when the other uploader, too, has read what was there.
struct Together<'a> {
    server: Grpc,
    barrier: &'a Barrier,
    is_first: AtomicBool,
}

impl Backend for Together<'_> {
    async fn result(&self, key: &Key) -> Result<Option<ActionResult>, RemoteError> {
        self.server.result(key).await
    }

    async fn put_result(&self, key: &Key, result: &ActionResult) -> Result<(), RemoteError> {
        if self.is_first.swap(false, Ordering::Relaxed) {
            self.barrier.wait().await;
        }
        self.server.put_result(key, result).await
    }

    async fn missing(&self, digests: &[Digest]) -> Result<Vec<Digest>, RemoteError> {
        self.server.missing(digests).await
    }

    async fn read_small(&self, digests: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, RemoteError> {
        self.server.read_small(digests).await
    }

    async fn read_large(&self, digest: &Digest, to: &Path) -> Result<bool, RemoteError> {
        self.server.read_large(digest, to).await
    }

    async fn write(&self, blobs: &[(Digest, UploadSource)]) -> Result<(), RemoteError> {
        self.server.write(blobs).await
    }
}

/// A machine whose header says `text`, and what it made with it.
fn machine(folder: &Path, text: &str) -> DiskStore {
    let options = Options {
        max_size: 0,
        readonly: false,
    };
    let store = DiskStore::open(&folder.join(text), options).expect("a store");
    let header = folder.join(format!("{text}.h"));
    fs::write(&header, text).expect("a header");
    // It must be older than the run that reads it.
    std::thread::sleep(Duration::from_millis(40));
    let mut manifest = InputManifestBuilder::new(SystemTime::now());
    manifest.read(&header);
    let digest = store.put_bytes(text.as_bytes(), Packing::Zstd);
    let outcome = Outcome {
        outputs: vec![ProducedFile {
            role: "object".to_owned(),
            digest: digest.expect("a blob"),
            executable: false,
        }],
        ..Outcome::default()
    };
    let manifest = manifest.finish().expect("settled");
    let stored = store.store(Level::Direct, &KEY, &manifest, &outcome);
    stored.expect("stored");
    store
}

#[test]
fn two_uploads_at_the_same_moment_lose_nothing() {
    let Some(casd) = Casd::start() else { return };
    let folder = tempfile::tempdir().expect("folder");
    let stores = ["one", "other"].map(|text| machine(folder.path(), text));
    let barrier = Barrier::new(2);
    let servers = [(); 2].map(|()| Together {
        server: client(&casd.address()),
        barrier: &barrier,
        is_first: AtomicBool::new(true),
    });
    block_on(async {
        let trust = Trust::new(&Signatures::default()).expect("no keys");
        let peer = |n: usize| Peer {
            backend: &servers[n],
            name: "casd",
            trust: &trust,
            untrusted: false,
        };
        let push = |n: usize| transfer::push(peer(n), &stores[n], Level::Direct, &KEY);
        let (one, other) = tokio::join!(push(0), push(1));
        let pushed = [one.expect("put"), other.expect("put")];
        assert!(pushed.iter().all(|p| matches!(p, Pushed::Put(_))));
        let still_there = async |n: usize| {
            let answer = transfer::holds(peer(n), &stores[n], Level::Direct, &KEY);
            answer.await.expect("asked")
        };
        // Each had read nothing, and the later one has replaced the other.
        assert_ne!(still_there(0).await, still_there(1).await);
        let put = vec![(Level::Direct, KEY)];
        let restore = |n: usize| upload::restore_replaced(peer(n), &stores[n], put.clone());
        let (one, other) = tokio::join!(restore(0), restore(1));
        one.and(other).expect("asked");
        assert!(still_there(0).await && still_there(1).await);
    });
}
