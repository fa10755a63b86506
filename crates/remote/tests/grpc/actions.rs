//! Actions on a server that misbehaves on purpose: what it says must not become a result, and what can be mended is.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use tonic::Code;
use warpcc_cache::Digest;
use warpcc_cache::command::{Command, CommandInput, Done};
use warpcc_remote::execute::TransferStats;
use warpcc_remote::{Cluster, RemoteError};

use crate::client;
use crate::fake::{Fake, Play, UploadMode};

/// What came of an action, what the server saw, and the bytes of the output.
type Played = (
    Result<Option<Done>, RemoteError>,
    Vec<String>,
    Option<Vec<u8>>,
);

/// One action against the plays; what came of it, and what the server saw.
fn run(
    mode: UploadMode,
    plays: impl FnOnce(&Fake) -> Vec<Play>,
    cancelled: &dyn Fn() -> bool,
) -> Played {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let queue: Arc<Mutex<VecDeque<Play>>> = Arc::clone(&mode.plays);
    let (fake, port) = runtime.block_on(Fake::start(mode, None));
    queue.lock().expect("lock").extend(plays(&fake));
    let folder = tempfile::tempdir().expect("folder");
    let tool = folder.path().join("tool");
    std::fs::write(&tool, "a tool").expect("write");
    let command = Command {
        arguments: vec!["tc/tool".to_owned()],
        inputs: vec![CommandInput {
            path: "tc/tool".to_owned(),
            digest: Digest::of_bytes(b"a tool"),
            file: tool,
            executable: true,
        }],
        outputs: vec!["out/a".to_owned()],
        ..Command::default()
    };
    let cluster = Cluster::new(client(&format!("grpc://127.0.0.1:{port}")));
    let done = cluster.run(
        &command,
        &[],
        folder.path(),
        cancelled,
        &mut TransferStats::default(),
    );
    let output = match &done {
        Ok(Some(done)) => done.outputs.first().cloned().flatten(),
        _ => None,
    };
    let output = output.map(|path| std::fs::read(path).expect("an output"));
    let left = queue.lock().expect("lock").len();
    assert_eq!(left, 0, "not asked often enough");
    let seen = fake.seen.lock().expect("lock").clone();
    (done, seen, output)
}

fn never() -> bool {
    false
}

fn result(digest: re::Digest, exit_code: i32) -> Play {
    Play::Result(Box::new(re::ActionResult {
        output_files: vec![re::OutputFile {
            path: "out/a".to_owned(),
            digest: Some(digest),
            ..re::OutputFile::default()
        }],
        exit_code,
        ..re::ActionResult::default()
    }))
}

#[test]
fn what_is_missing_is_sent_again_once() {
    for code in [Code::NotFound, Code::FailedPrecondition, Code::Internal] {
        let plays = |fake: &Fake| vec![Play::Says(code), result(fake.hold(b"made"), 0)];
        let (done, _, output) = run(UploadMode::default(), plays, &never);
        assert!(done.is_ok(), "{code:?}: {done:?}");
        assert_eq!(output.as_deref(), Some(&b"made"[..]));
        let plays = |_: &Fake| vec![Play::Refuses(code), Play::Refuses(code)];
        let (done, _, _) = run(UploadMode::default(), plays, &never);
        assert!(
            matches!(done, Err(RemoteError::Answer { .. })),
            "{code:?}: {done:?}"
        );
    }
    // A server that was restarted empty.
    let plays = |_: &Fake| {
        vec![
            Play::Forgets(Code::FailedPrecondition),
            Play::Says(Code::Aborted),
        ]
    };
    let (_, seen, _) = run(UploadMode::default(), plays, &never);
    let batches = seen.iter().filter(|s| s.starts_with("batch")).count();
    assert_eq!(batches, 2, "{seen:?}");
}

#[test]
fn other_refusals_are_not_asked_twice() {
    for code in [
        Code::DeadlineExceeded,
        Code::ResourceExhausted,
        Code::InvalidArgument,
    ] {
        let (done, _, _) = run(UploadMode::default(), |_| vec![Play::Says(code)], &never);
        assert!(done.is_err(), "{code:?}");
    }
}

#[test]
fn a_failure_comes_without_outputs() {
    let plays = |fake: &Fake| vec![result(fake.hold(b"half"), 2)];
    let (done, _, output) = run(UploadMode::default(), plays, &never);
    assert_eq!(done.expect("ran").expect("wanted").code, 2);
    assert_eq!(output, None);
}

#[test]
fn wrong_bytes_are_a_fault() {
    let mode = UploadMode {
        spoils: true,
        ..UploadMode::default()
    };
    let plays = |fake: &Fake| vec![result(fake.hold(b"made"), 0)];
    let (done, _, _) = run(mode, plays, &never);
    assert!(
        matches!(done, Err(RemoteError::WrongBytes { .. })),
        "{done:?}"
    );
}

#[test]
fn a_result_whose_blobs_are_gone_is_made_anew() {
    let gone = re::Digest {
        hash: Digest::of_bytes(b"gone").hex(),
        size_bytes: 4,
    };
    let plays = |fake: &Fake| vec![result(gone.clone(), 0), result(fake.hold(b"made"), 0)];
    let (done, seen, output) = run(UploadMode::default(), plays, &never);
    assert!(done.is_ok(), "{done:?}");
    assert_eq!(output.as_deref(), Some(&b"made"[..]));
    let asked: Vec<_> = seen.iter().filter(|s| s.starts_with("execute")).collect();
    assert_eq!(asked, ["execute or known", "execute"]);
}

#[test]
fn a_broken_stream_is_taken_up_again() {
    let plays = |fake: &Fake| vec![Play::BreaksOff, result(fake.hold(b"made"), 0)];
    let (done, seen, output) = run(UploadMode::default(), plays, &never);
    assert!(done.is_ok(), "{done:?}");
    assert_eq!(output.as_deref(), Some(&b"made"[..]));
    assert!(
        seen.contains(&"wait for operations/1".to_owned()),
        "{seen:?}"
    );
}

#[test]
fn an_action_that_nobody_wants_is_cancelled() {
    let looks = std::sync::atomic::AtomicU32::new(0);
    let asked = AtomicBool::new(false);
    let cancelled = || {
        asked.store(true, Ordering::SeqCst);
        // Time enough for the action to have a name.
        looks.fetch_add(1, Ordering::SeqCst) > 50
    };
    let (done, seen, _) = run(UploadMode::default(), |_| vec![Play::Runs], &cancelled);
    assert!(matches!(done, Ok(None)), "{done:?}");
    assert!(seen.contains(&"cancel operations/1".to_owned()), "{seen:?}");
}
