//! Against buildbox-casd, and BuildGrid where it differs: blobs of every size, results, what is missing, and its death in mid-transfer.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use warpcc_cache::{Digest, Key};
use warpcc_remote::backend::UploadSource;
use warpcc_remote::grpc::Deadlines;
use warpcc_remote::{Auth, Backend, Grpc, RemoteError};

use crate::{block_on, bytes_of, client};
use warpcc_testkit::buildgrid::BuildGrid;
use warpcc_testkit::casd::Casd;

const MIB: usize = 1 << 20;

fn source_of(bytes: &[u8]) -> (Digest, UploadSource) {
    (Digest::of_bytes(bytes), UploadSource::Bytes(bytes.to_vec()))
}

#[test]
fn blobs_of_every_size_come_back() {
    if let Some(casd) = Casd::start() {
        blobs_of_every_size(&casd.address());
    }
}

#[test]
fn blobs_of_every_size_come_back_from_buildgrid() {
    if let Some(grid) = BuildGrid::start_cache() {
        blobs_of_every_size(&grid.address());
        results_go_round(&grid.address());
    }
}

fn blobs_of_every_size(address: &str) {
    let folder = tempfile::tempdir().expect("folder");
    block_on(async {
        let server = client(address);
        let limit = server
            .capabilities()
            .await
            .expect("capabilities")
            .batch_bytes;
        let limit = usize::try_from(limit).expect("small");
        assert!(!server.capabilities().await.expect("known").zstd);
        let sizes = [
            0,
            1,
            2,
            limit - 257,
            limit - 256,
            limit - 255,
            limit - 1,
            limit,
            limit + 1,
            5 * MIB,
        ];
        let blobs: Vec<Vec<u8>> = sizes
            .iter()
            .map(|&size| bytes_of(size, size as u64))
            .collect();
        let digests: Vec<Digest> = blobs.iter().map(|bytes| Digest::of_bytes(bytes)).collect();
        let missing = server.missing(&digests).await.expect("asked");
        // Everybody holds the empty one, or says that it does not; it is never sent.
        assert!(
            digests
                .iter()
                .skip(1)
                .all(|digest| missing.contains(digest))
        );
        let before = server.read_small(&digests[1..]).await.expect("read");
        assert!(before.iter().all(Option::is_none));
        let target = folder.path().join("none");
        assert!(
            !server
                .read_large(&digests[9], &target)
                .await
                .expect("asked")
        );
        assert!(!target.exists());

        let sources: Vec<_> = blobs.iter().map(|bytes| source_of(bytes)).collect();
        server.write(&sources).await.expect("written");
        // Once more: what is there is no fault.
        server.write(&sources).await.expect("written again");
        assert!(
            server
                .missing(&digests[1..])
                .await
                .expect("asked")
                .is_empty()
        );
        let read = server.read_small(&digests).await.expect("read");
        for (bytes, found) in blobs.iter().zip(read) {
            assert!(found.as_ref() == Some(bytes), "{} bytes", bytes.len());
        }
        for (at, (bytes, digest)) in blobs.iter().zip(&digests).enumerate() {
            let to = folder.path().join(at.to_string());
            assert!(server.read_large(digest, &to).await.expect("read"));
            assert!(fs::read(&to).expect("there") == *bytes);
        }
        // Not over what is there.
        let there = folder.path().join("1");
        let again = server.read_large(&digests[1], &there).await;
        assert!(matches!(again, Err(RemoteError::Local { .. })), "{again:?}");
    });
}

#[test]
fn ten_thousand_small_ones() {
    let Some(casd) = Casd::start() else { return };
    block_on(async {
        let server = client(&casd.address());
        let blobs: Vec<Vec<u8>> = (0..10_000_u64)
            .map(|n| format!("blob {n}").into_bytes())
            .collect();
        let sources: Vec<_> = blobs.iter().map(|bytes| source_of(bytes)).collect();
        let digests: Vec<Digest> = sources.iter().map(|(digest, _)| *digest).collect();
        assert_eq!(
            server.missing(&digests).await.expect("asked").len(),
            digests.len()
        );
        server.write(&sources).await.expect("written");
        assert_eq!(server.missing(&digests).await.expect("asked"), []);
        // In the order asked for, one of them twice.
        let mut wanted: Vec<Digest> = digests.iter().rev().copied().collect();
        wanted.push(digests[7]);
        let read = server.read_small(&wanted).await.expect("read");
        let expected = blobs.iter().rev().chain([&blobs[7]]);
        assert!(read.iter().map(Option::as_ref).eq(expected.map(Some)));
    });
}

/// Peak resident memory of this process, KiB.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("proc");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("a peak");
    line.trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number")
}

fn write_large(path: &Path, pieces: u64) -> Digest {
    let mut file = File::create(path).expect("file");
    let mut bytes = bytes_of(MIB, 1);
    for piece in 0..pieces {
        bytes[..8].copy_from_slice(&piece.to_le_bytes());
        file.write_all(&bytes).expect("write");
    }
    Digest::of_file(path).expect("digest")
}

#[test]
fn memory_stays_flat_under_a_large_blob() {
    let Some(casd) = Casd::start() else { return };
    let folder = tempfile::tempdir().expect("folder");
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let digest = write_large(&from, 300);
    block_on(async {
        let server = client(&casd.address());
        server.capabilities().await.expect("capabilities");
        let before = peak_kib();
        server
            .write(&[(digest, UploadSource::File(from.clone()))])
            .await
            .expect("written");
        assert!(server.read_large(&digest, &to).await.expect("read"));
        let grown = peak_kib() - before;
        assert!(grown < 60 << 10, "{grown} KiB more for 300 MiB");
    });
    assert_eq!(Digest::of_file(&to).expect("digest"), digest);
}

fn result_with(bytes: &[u8], exit_code: i32) -> re::ActionResult {
    let digest = Digest::of_bytes(bytes);
    re::ActionResult {
        output_files: vec![re::OutputFile {
            path: "0".to_owned(),
            digest: Some(re::Digest {
                hash: digest.hex(),
                size_bytes: i64::try_from(digest.size).expect("small"),
            }),
            ..re::OutputFile::default()
        }],
        exit_code,
        stderr_raw: b"a warning".to_vec(),
        ..re::ActionResult::default()
    }
}

#[test]
fn results_go_round_and_failures_are_none() {
    if let Some(casd) = Casd::start() {
        results_go_round(&casd.address());
    }
}

fn results_go_round(address: &str) {
    block_on(async {
        let server = client(address);
        let (key, other) = (Key([1; 32]), Key([2; 32]));
        assert!(server.result(&key).await.expect("asked").is_none());
        let bytes = bytes_of(1000, 1);
        server.write(&[source_of(&bytes)]).await.expect("written");
        let result = result_with(&bytes, 0);
        server.put_result(&key, &result).await.expect("put");
        let found = server.result(&key).await.expect("asked").expect("there");
        assert_eq!(found.output_files[0].path, "0");
        assert_eq!(found.output_files[0].digest, result.output_files[0].digest);
        let stderr = match found.stderr_digest {
            // casd keeps a stream as a blob, and may or may not send it along.
            Some(_) if found.stderr_raw.is_empty() => {
                let wanted = [Digest::of_bytes(b"a warning")];
                server.read_small(&wanted).await.expect("read")[0]
                    .clone()
                    .expect("there")
            }
            _ => found.stderr_raw,
        };
        assert_eq!(stderr, b"a warning");
        server
            .put_result(&other, &result_with(&bytes, 1))
            .await
            .expect("put");
        assert!(server.result(&other).await.expect("asked").is_none());
    });
}

#[test]
fn a_server_killed_in_mid_transfer_is_a_fault() {
    let Some(mut casd) = Casd::start() else {
        return;
    };
    let folder = tempfile::tempdir().expect("folder");
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let digest = write_large(&from, 200);
    block_on(async {
        let server = client(&casd.address());
        server
            .write(&[(digest, UploadSource::File(from.clone()))])
            .await
            .expect("written");
        let reading = {
            let (server, to) = (server.clone(), to.clone());
            tokio::spawn(async move { server.read_large(&digest, &to).await })
        };
        // In the middle, whatever the machine's speed: some of it is there and not all.
        while fs::metadata(&to).map_or(0, |found| found.len()) < MIB as u64 {
            assert!(!reading.is_finished());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        casd.kill();
        let read = reading.await.expect("no panic");
        assert!(
            matches!(read, Err(RemoteError::Unreachable { .. })),
            "{read:?}"
        );
        assert!(!to.exists());
        let written = server
            .write(&[(digest, UploadSource::File(from.clone()))])
            .await;
        assert!(
            matches!(written, Err(RemoteError::Unreachable { .. })),
            "{written:?}"
        );
    });
}

#[test]
fn nobody_there_is_a_fault_that_names_the_server() {
    let address = format!("grpc://127.0.0.1:{}", warpcc_testkit::casd::free_port());
    let fault = block_on(async { client(&address).result(&Key([0; 32])).await });
    let fault = fault.expect_err("nobody listens");
    assert!(
        matches!(fault, RemoteError::Unreachable { .. }),
        "{fault:?}"
    );
    assert!(fault.to_string().contains(&address), "{fault}");
}

#[test]
fn a_black_hole_costs_a_deadline() {
    // Takes connections and never answers.
    let hole = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("grpc://{}", hole.local_addr().expect("an address"));
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in hole.incoming().flatten() {
            let mut reading = stream.try_clone().expect("a stream");
            kept.push(stream);
            std::thread::spawn(move || drop(reading.read_to_end(&mut Vec::new())));
        }
    });
    let deadlines = Deadlines {
        call: Duration::from_millis(300),
        ..Deadlines::default()
    };
    let address = address.parse().expect("an address");
    block_on(async {
        let server = Grpc::new(address, Auth::default(), deadlines).expect("no certificates");
        let result = server.result(&Key([0; 32])).await;
        assert!(
            matches!(result, Err(RemoteError::TooSlow { .. })),
            "{result:?}"
        );
        let missing = server.missing(&[Digest::of_bytes(b"x")]).await;
        assert!(
            matches!(missing, Err(RemoteError::TooSlow { .. })),
            "{missing:?}"
        );
    });
}
