//! Machines that begin to upload to an empty WebDAV server at the same moment: each makes the folders, and none fails.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use warpcc_cache::Digest;
use warpcc_remote::backend::UploadSource;
use warpcc_remote::{AnyBackend, Backend, Layer};

use crate::{TestSpace, servers};

/// Each is a process of its own in real life: a client of its own here.
const MACHINES: usize = 8;
/// Uploads of each at a time.
const BLOBS: usize = 8;
/// Empty folders that are tried.
const ROUNDS: usize = 6;

#[test]
fn machines_that_begin_at_once_all_upload() {
    let space = TestSpace::new("remote-webdav-folders");
    let server = servers::webdav(&space.beside("webdav"));
    for round in 0..ROUNDS {
        let at = format!("127.0.0.1:{}/team/{round}/cuda", server.port);
        let url = format!("webdav://cache:open-sesame@{at}");
        let begin = Barrier::new(MACHINES);
        thread::scope(|scope| {
            let machines = (0..MACHINES).map(|machine| {
                let (url, begin) = (&url, &begin);
                scope.spawn(move || upload(url, machine, begin))
            });
            for machine in machines.collect::<Vec<_>>() {
                machine.join().expect("no panic");
            }
        });
    }
}

/// Uploads blobs that no other machine has, and one that all have.
fn upload(url: &str, machine: usize, begin: &Barrier) {
    let mut layer = Layer::at(url).expect("a layer");
    // The machine may have other things to do.
    layer.answer = Duration::from_secs(100);
    // WsgiDAV lets five connections wait; others try again after a second or three.
    layer.connect = Duration::from_secs(100);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let own = (0..BLOBS - 1).map(|blob| format!("blob {blob} of {machine}"));
    let texts = own.chain(["the same".to_owned()]);
    let blobs: Vec<_> = texts
        .map(|text| {
            let bytes = text.into_bytes();
            (Digest::of_bytes(&bytes), UploadSource::Bytes(bytes))
        })
        .collect();
    let digests: Vec<Digest> = blobs.iter().map(|(digest, _)| *digest).collect();
    runtime.block_on(async {
        let backend = AnyBackend::new(&layer, None).expect("a client");
        begin.wait();
        backend.write(&blobs).await.expect("uploaded");
        let missing = backend.missing(&digests).await.expect("an answer");
        assert!(missing.is_empty(), "{missing:?}");
    });
}
