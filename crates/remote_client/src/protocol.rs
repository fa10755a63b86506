//! The protocol between warpcc and `warpcc-remote`: the messages, and the check that both programs belong together.
//!
//! ```text
//! each side:     identity                       a text of at most 256 bytes; of one build, or neither goes on
//! warpcc:        Opening, then Question*        answers may come in any order, told apart by a number
//! warpcc-remote: Reply*                         one of [`Reply::Alive`] each second, whatever else it does
//! ```
//!
//! Each is a [frame](crate::read_frame): a length and that many bytes, a message in postcard's format. Both programs
//! belong to one build, so the messages have no versions; [`identity`] identifies the build.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use warpcc_cache::{Key, Level, Outcome};

use crate::error::RemoteError;
use crate::ping::Answer;
use crate::sent::{AuthSent, CommandSent, LayerSent, PlaceSent, StoreSent};
use crate::transfer_stats::TransferStats;
use crate::upload::{UploadMode, UploadReport};

/// How often `warpcc-remote` sends a message that it is alive.
pub const BEAT: Duration = Duration::from_secs(1);

/// Longest identity, in bytes.
pub const LONGEST_IDENTITY: usize = 256;

/// Which build a program is of: the version, the commit where one was named, and this file's own text.
pub fn identity() -> String {
    let commit = option_env!("WARPCC_COMMIT").unwrap_or("no commit");
    format!(
        "warpcc-remote {} ({commit}, messages {FINGERPRINT:016x})",
        env!("CARGO_PKG_VERSION")
    )
}

const FINGERPRINT: u64 = fingerprint(include_bytes!("protocol.rs"));

/// FNV-1a: it need not be secure, because nobody gains by making two equal ones.
const fn fingerprint(text: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut at = 0;
    while at < text.len() {
        hash = (hash ^ text[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

/// The first message: what the settings say.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Opening {
    /// The shared caches, near to far.
    pub layers: Vec<LayerSent>,
    /// The disk store before them.
    pub store: Option<StoreSent>,
    /// The time that may be spent waiting for them.
    pub time_budget: TimeBudgetSent,
    /// The cluster's address, and the credentials for it.
    pub cluster: Option<(String, AuthSent)>,
    /// The guards that a test has switched off; without debug assertions none.
    pub switched_off: String,
}

/// The time that may be spent waiting for shared caches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeBudgetSent {
    /// For all requests together, as for one call of nvcc.
    #[default]
    PerCall,
    /// For each request, as for a program that keeps asking.
    PerQuestion,
}

/// Which result is asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FetchRequestSent {
    /// Of a call, a step or a kernel.
    pub level: Level,
    /// Under which key.
    pub key: Key,
    /// Where it is to hold.
    pub at: PlaceSent,
}

/// A message from warpcc. `id` is chosen by warpcc, and is in every reply to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Question {
    /// Bring what others know into the store.
    Fetch {
        /// The asker's.
        id: u64,
        /// All at once.
        wanted: Vec<FetchRequestSent>,
    },
    /// The answer to [`ReplyBody::Vet`]: the outcome as it may be stored; nothing where it is refused.
    Vetted {
        /// That of the [`Question::Fetch`].
        id: u64,
        /// As it may be stored.
        outcome: Option<Outcome>,
    },
    /// Try a server.
    Ping {
        /// The asker's.
        id: u64,
        /// Which of the [`Opening`]'s.
        layer: usize,
        /// For no longer.
        limit: Duration,
    },
    /// Upload what waits.
    Upload {
        /// The asker's.
        id: u64,
        /// In this store.
        store: StoreSent,
        /// For no longer.
        limit: Duration,
        /// The mode.
        mode: UploadMode,
    },
    /// Run a command on the cluster.
    Execute {
        /// The asker's.
        id: u64,
        /// With its files.
        command: CommandSent,
        /// Properties that the worker must have.
        properties: Vec<(String, String)>,
    },
    /// Make a pair of keys for signatures.
    Keygen {
        /// The asker's.
        id: u64,
        /// What the keys are called.
        name: String,
    },
    /// The answer to the request with this number is not wanted any more.
    Cancel {
        /// That of the [`Question::Execute`].
        id: u64,
    },
}

/// From `warpcc-remote`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Reply {
    /// It is there.
    Alive,
    /// For the user, in one line.
    Warning(String),
    /// To a number.
    To(u64, ReplyBody),
}

/// The content of a reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ReplyBody {
    /// May this be a result of the `index`th that is wanted? Nothing of its outputs was fetched yet. [`Question::Vetted`]
    /// answers.
    Vet {
        /// Which of what is wanted.
        index: usize,
        /// The outcome, as the server states it.
        outcome: Outcome,
    },
    /// To [`Question::Fetch`].
    Fetched {
        /// Something is in the store now.
        brought: bool,
        /// Something is to be uploaded now, to nearer servers.
        noted: bool,
    },
    /// To [`Question::Ping`].
    Pinged(Result<Answer, RemoteError>),
    /// To [`Question::Upload`]: of each server that takes results, or why nothing could be done.
    Uploaded(Result<Vec<UploadReport>, String>),
    /// To [`Question::Keygen`]: the keys, or why there are none.
    Keys(Result<NewKeys, String>),
    /// To [`Question::Execute`]: nothing where it was cancelled.
    Executed {
        /// The outcome.
        done: Result<Option<DoneSent>, RemoteError>,
        /// Transfers, also of a command that failed.
        moved: TransferStats,
    },
}

/// A new pair of keys, each in its text form.
#[derive(Clone, Serialize, Deserialize)]
pub struct NewKeys {
    /// The key that signs.
    pub secret: String,
    /// The key that checks.
    pub public: String,
}

impl std::fmt::Debug for NewKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewKeys").finish_non_exhaustive()
    }
}

/// The outcome of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoneSent {
    /// Its exit code.
    pub code: i32,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// Which of its outputs were written. Where they are, the asker has said.
    pub written: Vec<bool>,
    /// Its run time on the worker.
    pub busy: Duration,
}
