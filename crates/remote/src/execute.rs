//! Commands on a Remote Execution cluster: an input tree, an action, its result.
//!
//! A caller gives a command with the files it needs and gets what it wrote, verified; or a [`RemoteError`], and runs the
//! command itself. What a cluster says of a command that failed is not the last word: the exit code is given without
//! outputs.

mod action;
mod operation;
mod tree;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use bazel_remote_apis::google::protobuf::Timestamp;
use operation::Running;
use tokio::runtime::Runtime;
use tonic::Code;
use warpcc_cache::command::{Command, Done};
use warpcc_cache::{Digest, foreign};

use crate::backend::{Backend, UploadSource};
use crate::error::RemoteError;
use crate::grpc::{Failure, Grpc, from_wire};
use action::prepare;
pub use warpcc_remote_client::transfer_stats::TransferStats;

/// Outputs up to this size are fetched many at a time.
const SMALL: u64 = 1 << 20;

/// Larger blobs, such as the toolchain's files, are uploaded by one caller while the others wait.
const LARGE: u64 = 1 << 20;

/// How often it is checked whether the result is still wanted.
const POLL: Duration = Duration::from_millis(20);

/// Transfers of one command so far, also of one that fails.
type Traffic = Mutex<TransferStats>;

fn locked(traffic: &Traffic) -> MutexGuard<'_, TransferStats> {
    traffic.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cluster.
#[derive(Debug)]
pub struct Cluster {
    server: Grpc,
    runtime: OnceLock<Option<Runtime>>,
    gate: tokio::sync::Mutex<()>,
    moved: Traffic,
}

impl Cluster {
    /// The one behind `server`; nothing is sent yet.
    pub fn new(server: Grpc) -> Self {
        Self {
            server,
            runtime: OnceLock::new(),
            gate: tokio::sync::Mutex::new(()),
            moved: Traffic::default(),
        }
    }

    /// The server's name in messages.
    pub fn name(&self) -> &str {
        self.server.name()
    }

    /// All transfers so far, also of commands that failed.
    pub fn moved(&self) -> TransferStats {
        *locked(&self.moved)
    }

    /// Executes `command` on a worker with `properties`, which are those that the cluster was configured for, and puts
    /// what it writes into `folder`, which is there and empty. Nothing when `cancelled` said meanwhile that nobody wants it. Several threads may call.
    ///
    /// # Errors Any problem for which the command should run on this machine instead.
    pub fn run(
        &self,
        command: &Command,
        properties: &[(String, String)],
        folder: &Path,
        cancelled: &dyn Fn() -> bool,
        moved: &mut TransferStats,
    ) -> Result<Option<Done>, RemoteError> {
        let runtime = self.runtime.get_or_init(|| {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(1).enable_all().build().ok()
        });
        let Some(runtime) = runtime else {
            return Err(RemoteError::Local {
                path: "threads".to_owned(),
                why: "no thread can be started to talk to the cluster".to_owned(),
            });
        };
        let running = Running::default();
        let traffic = Traffic::default();
        let ran = runtime.block_on(async {
            tokio::select! {
                done = self.execute(command, properties, folder, &running, &traffic) => done.map(Some),
                () = until(cancelled) => {
                    operation::cancel(&self.server, &running).await;
                    Ok(None)
                }
            }
        });
        *moved = *locked(&traffic);
        locked(&self.moved).add(moved);
        ran
    }

    async fn execute(
        &self,
        command: &Command,
        properties: &[(String, String)],
        folder: &Path,
        running: &Running,
        traffic: &Traffic,
    ) -> Result<Done, RemoteError> {
        if !self.server.capabilities().await?.executes {
            return Err(self
                .server
                .answered("it does not execute actions (with SHA-256)"));
        }
        let prepared = prepare(command, properties).ok_or_else(|| {
            self.server
                .answered("the input tree of the command is invalid")
        })?;
        let mut done = Done::default();
        self.upload(&prepared.blobs, traffic).await?;
        let mut repaired = false;
        let mut cached = true;
        loop {
            let answer = operation::execute(&self.server, &prepared.action, cached, running).await;
            let failure = match answer {
                Ok(response) => match refusal(&response) {
                    Some(failure) => failure,
                    None => {
                        let result = response.result.unwrap_or_default();
                        if self
                            .fetch(command, &result, folder, &mut done, traffic)
                            .await?
                        {
                            return Ok(done);
                        }
                        // A result whose blobs are gone.
                        if !cached {
                            return Err(self.server.answered("a result without its blobs"));
                        }
                        cached = false;
                        continue;
                    }
                },
                Err(failure) => failure,
            };
            if repaired || !failure.code().is_some_and(operation::may_mean_missing) {
                return Err(self.server.fault(failure).await);
            }
            repaired = true;
            self.upload(&prepared.blobs, traffic).await?;
        }
    }

    /// Uploads what the server lacks.
    async fn upload(
        &self,
        blobs: &[(Digest, UploadSource)],
        traffic: &Traffic,
    ) -> Result<(), RemoteError> {
        let mut missing = self.lacks(blobs).await?;
        let mut _alone = None;
        if missing.iter().any(|(digest, _)| digest.size > LARGE) {
            // Another thread may be uploading it.
            _alone = Some(self.gate.lock().await);
            missing = self.lacks(blobs).await?;
        }
        if !missing.is_empty() {
            let since = Instant::now();
            self.server.write(&missing).await?;
            let bytes = missing.iter().map(|(digest, _)| digest.size).sum();
            let mut moved = locked(traffic);
            moved.sent += bytes;
            moved.time(bytes, since);
        }
        Ok(())
    }

    async fn lacks(
        &self,
        blobs: &[(Digest, UploadSource)],
    ) -> Result<Vec<(Digest, UploadSource)>, RemoteError> {
        let digests: Vec<Digest> = blobs.iter().map(|(digest, _)| *digest).collect();
        let missing = self.server.missing(&digests).await?;
        let lacking = blobs.iter().filter(|(digest, _)| missing.contains(digest));
        Ok(lacking.cloned().collect())
    }

    /// Fetches the command's outputs. Returns false if the server has lost one of them.
    async fn fetch(
        &self,
        command: &Command,
        result: &re::ActionResult,
        folder: &Path,
        done: &mut Done,
        traffic: &Traffic,
    ) -> Result<bool, RemoteError> {
        done.code = result.exit_code;
        done.outputs.clear();
        if result.exit_code != 0 {
            return Ok(true);
        }
        let ResultBlobs {
            streams,
            files,
            wanted,
        } = blobs_of(command, result)
            .map_err(|what| self.server.answered(format!("a result with {what}")))?;
        let blobs = self.server.read_small(&wanted).await?;
        let found = |digest: &Digest| {
            let at = wanted.iter().position(|wanted| wanted == digest)?;
            blobs[at].as_deref()
        };
        let mut texts = [Vec::new(), Vec::new()];
        for (text, (raw, digest)) in texts.iter_mut().zip(&streams) {
            *text = match digest {
                Some(digest) if raw.is_empty() => match found(digest) {
                    Some(bytes) => bytes.to_vec(),
                    None => return Ok(false),
                },
                _ => raw.to_vec(),
            };
            locked(traffic).received += text.len() as u64;
        }
        [done.stdout, done.stderr] = texts.map(|text| foreign::shown(&text));
        for (at, digest) in files.iter().enumerate() {
            let Some(digest) = digest else {
                done.outputs.push(None);
                continue;
            };
            let to = folder.join(at.to_string());
            if !self.write_file(digest, found(digest), &to).await? {
                return Ok(false);
            }
            locked(traffic).received += digest.size;
            done.outputs.push(Some(to));
        }
        done.busy = busy(result);
        Ok(true)
    }

    /// Writes an output to `to`: the bytes of a small one, a large one from the server. False where it was lost.
    async fn write_file(
        &self,
        digest: &Digest,
        bytes: Option<&[u8]>,
        to: &Path,
    ) -> Result<bool, RemoteError> {
        // From an attempt before this one.
        let _ = std::fs::remove_file(to);
        if digest.size > SMALL {
            return self.server.read_large(digest, to).await;
        }
        let Some(bytes) = bytes else {
            return Ok(false);
        };
        std::fs::write(to, bytes).map_err(|e| RemoteError::Local {
            path: to.display().to_string(),
            why: e.to_string(),
        })?;
        Ok(true)
    }
}

/// The blobs that a result names.
struct ResultBlobs<'r> {
    /// Standard output and standard error: what is in the result itself, or the digest of a blob.
    streams: [(&'r [u8], Option<Digest>); 2],
    /// The command's outputs, in their order; `None` for one that was not written.
    files: Vec<Option<Digest>>,
    /// The streams and the small files, which are fetched in one call.
    wanted: Vec<Digest>,
}

/// Reads a result, and checks how much there is to fetch. The error says what is odd about the result.
fn blobs_of<'r>(
    command: &Command,
    result: &'r re::ActionResult,
) -> Result<ResultBlobs<'r>, &'static str> {
    if !result.output_symlinks.is_empty() || !result.output_directories.is_empty() {
        return Err("links or folders");
    }
    let read = |digest: &Option<re::Digest>| match digest {
        Some(digest) => from_wire(digest).map(Some).ok_or("an invalid digest"),
        None => Ok(None),
    };
    // Streams and small files in one call.
    let mut wanted = Vec::new();
    let streams = [
        (&result.stdout_raw[..], read(&result.stdout_digest)?),
        (&result.stderr_raw[..], read(&result.stderr_digest)?),
    ];
    for (raw, digest) in &streams {
        wanted.extend(digest.filter(|_| raw.is_empty()));
    }
    let mut files = Vec::with_capacity(command.outputs.len());
    for path in &command.outputs {
        let file = result.output_files.iter().find(|file| file.path == *path);
        let digest = match file {
            Some(file) => Some(read(&file.digest)?.ok_or("no digest")?),
            None => None,
        };
        wanted.extend(digest.filter(|digest| digest.size <= SMALL));
        files.push(digest);
    }
    // It is checked before anything is fetched, because it says how much that is.
    let all = wanted.iter().chain(files.iter().flatten());
    let fits = |digest: &Digest| digest.size <= foreign::LARGEST_PART;
    let said = streams.iter().filter_map(|(_, digest)| *digest);
    if !all.into_iter().all(fits) || said.into_iter().any(|d| d.size > foreign::LARGEST_TEXT) {
        return Err("more bytes than are taken");
    }
    Ok(ResultBlobs {
        streams,
        files,
        wanted,
    })
}

/// Comes back when `cancelled`.
async fn until(cancelled: &dyn Fn() -> bool) {
    while !cancelled() {
        tokio::time::sleep(POLL).await;
    }
}

/// A status inside the answer to an action: not the command's exit code.
fn refusal(response: &re::ExecuteResponse) -> Option<Failure> {
    let status = response.status.as_ref().filter(|status| status.code != 0);
    let why = |code, text: &str| Failure::from(tonic::Status::new(code, text));
    match status {
        Some(status) => Some(why(Code::from_i32(status.code), &status.message)),
        None if response.result.is_none() => Some(why(Code::DataLoss, "neither result nor error")),
        None => None,
    }
}

/// The run time that the worker reports.
fn busy(result: &re::ActionResult) -> Duration {
    let Some(metadata) = &result.execution_metadata else {
        return Duration::ZERO;
    };
    let nanos = |time: &Option<Timestamp>| {
        let time = time.as_ref()?;
        Some(i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos))
    };
    let took = nanos(&metadata.execution_completed_timestamp)
        .zip(nanos(&metadata.execution_start_timestamp))
        .map_or(0, |(end, start)| end - start);
    Duration::from_nanos(u64::try_from(took).unwrap_or(0))
}
