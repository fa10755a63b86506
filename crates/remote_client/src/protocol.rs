//! What warpcc and `warpcc-remote` say to each other: the messages, and who is allowed to speak.
//!
//! ```text
//! each side:     identity                       a text of at most 256 bytes; of one build, or neither goes on
//! warpcc:        Opening, then Question*        answers may come in any order, told apart by a number
//! warpcc-remote: Reply*                         one of [`Reply::Alive`] each second, whatever else it does
//! ```
//!
//! Each is a [frame](crate::read_frame): a length and so many bytes, a message in postcard's form. Both programs belong to one build,
//! so no message has a version of its own; [`identity`] has that of all.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use warpcc_cache::{Key, Level, Outcome};

use crate::error::Fault;
use crate::moved::Moved;
use crate::ping::Answer;
use crate::sent::{AuthSent, CommandSent, LayerSent, PlaceSent, StoreSent};
use crate::upload::{Account, UploadMode};

/// How often `warpcc-remote` says that it is alive.
pub const BEAT: Duration = Duration::from_secs(1);

/// What [`crate::read_frame`] takes of an identity.
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

/// FNV-1a: no secret, and nobody is to be kept from making two that are equal.
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
    /// How long is waited for them.
    pub patience: PatienceSent,
    /// The cluster's address, and who we are to it.
    pub cluster: Option<(String, AuthSent)>,
    /// The guards that a test has switched off; without debug assertions none.
    pub switched_off: String,
}

/// How long is waited for shared caches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PatienceSent {
    /// For all questions together: a call of nvcc ends.
    #[default]
    OfACall,
    /// For each question: the program asks as long as it lives.
    OfEachQuestion,
}

/// Which result is asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WantedSent {
    /// Of a call, a step or a kernel.
    pub level: Level,
    /// Under which key.
    pub key: Key,
    /// Where it is to hold.
    pub at: PlaceSent,
}

/// From warpcc. `id` is the asker's, and stands in every reply to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Question {
    /// Bring what others know into the store.
    Fetch {
        /// The asker's.
        id: u64,
        /// All at once.
        wanted: Vec<WantedSent>,
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
        /// How.
        mode: UploadMode,
    },
    /// Run a command on the cluster.
    Execute {
        /// The asker's.
        id: u64,
        /// With its files.
        command: CommandSent,
        /// What a worker must have.
        properties: Vec<(String, String)>,
    },
    /// Nobody wants what was asked for under this number.
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

/// What is replied.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ReplyBody {
    /// May this be a result of the `index`th that is wanted? Nothing of its outputs was fetched yet. [`Question::Vetted`]
    /// answers.
    Vet {
        /// Which of what is wanted.
        index: usize,
        /// What a server says that it is.
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
    Pinged(Result<Answer, Fault>),
    /// To [`Question::Upload`]: of each server that takes results, or why nothing could be done.
    Uploaded(Result<Vec<Account>, String>),
    /// To [`Question::Execute`]: nothing where it was cancelled.
    Executed {
        /// What came of it.
        done: Result<Option<DoneSent>, Fault>,
        /// What moved, whatever came of it.
        moved: Moved,
    },
}

/// What came of a command.
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
    /// How long it ran where it ran.
    pub busy: Duration,
}
