//! The program `warpcc-remote`, which has the network: started when a server is first needed, asked by any thread, and
//! waited for by none without an end.
//!
//! It is in the same folder as warpcc. It has the user's environment and directory, and one end of a pair of sockets as
//! its standard input. It ends when the other end is closed, which the kernel does when this process ends for any
//! reason. `listener` reads its messages.

mod listener;
mod mutex;
mod program_error;
mod running;
mod silence;
mod warning_sink;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use warpcc_cache::command::{Command, Done};
use warpcc_cache::{DiskStore, FetchRequest};

use crate::error::RemoteError;
use crate::ping::Answer;
use crate::protocol::{FetchRequestSent, NewKeys, Opening, Question, ReplyBody};
use crate::sent::{CommandSent, StoreSent};
use crate::transfer_stats::TransferStats;
use crate::upload::{UploadMode, UploadReport};
pub use program_error::ProgramError;
use running::Running;
pub use warning_sink::WarningSink;

/// The name of the program.
pub const NAME: &str = "warpcc-remote";

/// Its own patience with servers is 600 seconds for all questions of a call.
const FETCH: Duration = Duration::from_secs(660);

/// In addition to the time that it was given itself.
const MORE: Duration = Duration::from_secs(10);

/// So long that it never ends: the length of a command on a cluster is not limited, and a waiting thread can be
/// stopped.
const FOREVER: Duration = Duration::from_secs(365 * 86_400);

/// The program, running or not.
pub struct RemoteProgram {
    file: PathBuf,
    opening: Opening,
    warnings: Arc<WarningSink>,
    running: OnceLock<Result<Running, ProgramError>>,
}

impl RemoteProgram {
    /// The one next to the program in `ourselves`, for the servers of `opening`. Nothing is started yet.
    pub fn next_to(ourselves: &Path, opening: Opening, warnings: WarningSink) -> Self {
        Self {
            file: ourselves.with_file_name(NAME),
            opening,
            warnings: Arc::new(warnings),
            running: OnceLock::new(),
        }
    }

    /// Whether it can be started and is from the same build.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), ProgramError> {
        self.running()?.wait_for_identity()
    }

    /// Tells the user, or who asks.
    pub fn warn(&self, text: &str) {
        self.warnings.emit(text);
    }

    /// Warnings since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        self.warnings.take()
    }

    fn running(&self) -> Result<&Running, ProgramError> {
        let started = self.running.get_or_init(|| {
            Running::start(&self.file, &self.opening, &self.warnings)
                .map_err(|error| ProgramError::new(&self.file, &why_not_started(&error)))
        });
        started.as_ref().map_err(Clone::clone)
    }

    /// Has it bring what others know of `wanted` into the store of the opening. Whether it brought something, and whether
    /// something waits to be uploaded now.
    ///
    /// # Errors
    /// It is gone.
    pub fn fetch(&self, wanted: &[FetchRequest<'_>]) -> Result<(bool, bool), ProgramError> {
        let sent = wanted.iter().map(|one| FetchRequestSent {
            level: one.level,
            key: *one.key,
            at: one.at.into(),
        });
        let asked = self.running()?.ask(|id| Question::Fetch {
            id,
            wanted: sent.collect(),
        })?;
        loop {
            match asked.reply(FETCH, || {})? {
                ReplyBody::Vet { index, mut outcome } => {
                    let accepted = wanted.get(index).is_some_and(|one| (one.vet)(&mut outcome));
                    let outcome = accepted.then_some(outcome);
                    let id = asked.id;
                    asked.say(&Question::Vetted { id, outcome })?;
                }
                ReplyBody::Fetched { brought, noted } => return Ok((brought, noted)),
                _ => return Err(asked.unexpected()),
            }
        }
    }

    /// Tries the `layer`th server of the opening, for no longer than `limit`.
    ///
    /// # Errors
    /// The server's fault, or why nobody could be asked, for people.
    pub fn ping(&self, layer: usize, limit: Duration) -> Result<Answer, String> {
        let running = self.running();
        let asked = running.and_then(|it| it.ask(|id| Question::Ping { id, layer, limit }));
        let reply = asked.and_then(|asked| match asked.reply(limit + MORE, || {})? {
            ReplyBody::Pinged(answer) => Ok(answer),
            _ => Err(asked.unexpected()),
        });
        match reply {
            Ok(answer) => answer.map_err(|fault| fault.to_string()),
            Err(gone) => Err(gone.to_string()),
        }
    }

    /// Has it upload what waits in `store`, for no longer than `limit`.
    ///
    /// # Errors
    /// Why nothing could be done, for people.
    pub fn upload(
        &self,
        store: &DiskStore,
        limit: Duration,
        mode: UploadMode,
    ) -> Result<Vec<UploadReport>, String> {
        let store = StoreSent::from(store);
        let question = |id| Question::Upload {
            id,
            store,
            limit,
            mode,
        };
        let asked = self.running().and_then(|it| it.ask(question));
        let reply = asked.and_then(|asked| {
            match asked.reply(limit.saturating_add(MORE).min(FOREVER), || {})? {
                ReplyBody::Uploaded(reports) => Ok(reports),
                _ => Err(asked.unexpected()),
            }
        });
        reply.unwrap_or_else(|gone| Err(gone.to_string()))
    }

    /// Has it make a pair of keys for signatures.
    ///
    /// # Errors
    /// Why there are none, for people.
    pub fn keygen(&self, name: &str) -> Result<NewKeys, String> {
        let name = name.to_owned();
        let running = self.running();
        let asked = running.and_then(|it| it.ask(|id| Question::Keygen { id, name }));
        let reply = asked.and_then(|asked| match asked.reply(MORE, || {})? {
            ReplyBody::Keys(keys) => Ok(keys),
            _ => Err(asked.unexpected()),
        });
        reply.unwrap_or_else(|gone| Err(gone.to_string()))
    }

    /// Has `command` run on the cluster of the opening, which is `server`, by a worker with `properties`, and what it writes
    /// put into `folder`, which is there and empty. Nothing when `unwanted` said meanwhile that nobody wants it.
    ///
    /// # Errors Any problem for which the command should run on this machine instead.
    pub fn execute(
        &self,
        server: &str,
        command: &Command,
        properties: Vec<(String, String)>,
        folder: &Path,
        unwanted: &dyn Fn() -> bool,
        moved: &mut TransferStats,
    ) -> Result<Option<Done>, RemoteError> {
        let gone = |gone: ProgramError| RemoteError::Unreachable {
            server: server.to_owned(),
            why: gone.to_string(),
        };
        let sent = CommandSent::new(command, folder.to_owned());
        let question = |id| Question::Execute {
            id,
            command: sent,
            properties,
        };
        let asked = self
            .running()
            .and_then(|it| it.ask(question))
            .map_err(gone)?;
        let mut cancelled = false;
        let look = || {
            if !cancelled && unwanted() {
                cancelled = true;
                let id = asked.id;
                // If the program does not read it, it has ended, which the next look notices.
                drop(asked.say(&Question::Cancel { id }));
            }
        };
        let ReplyBody::Executed { done, moved: of_it } =
            asked.reply(FOREVER, look).map_err(gone)?
        else {
            return Err(gone(asked.unexpected()));
        };
        *moved = of_it;
        let Some(done) = done? else {
            return Ok(None);
        };
        // Its reply says which outputs exist. It does not decide their places or their number.
        let is_written = |at: &usize| done.written.get(*at).is_some_and(|written| *written);
        let place = |at: usize| {
            Some(at)
                .filter(is_written)
                .map(|at| folder.join(at.to_string()))
        };
        Ok(Some(Done {
            code: done.code,
            stdout: done.stdout,
            stderr: done.stderr,
            outputs: (0..command.outputs.len()).map(place).collect(),
            busy: done.busy,
        }))
    }
}

fn why_not_started(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "is missing; install it next to warpcc, from the same release".to_owned()
        }
        _ => format!("cannot be started: {error}"),
    }
}
