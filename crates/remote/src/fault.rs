//! Why a server did not do what was asked. Never an error of the build: a miss, a count, and one warning.

use warpcc_cache::Digest;

/// What went wrong between us and a server.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// No connection, or it broke.
    #[error("cannot reach {server}: {why}")]
    Unreachable {
        /// The server, without credentials.
        server: String,
        /// In the words of whoever noticed.
        why: String,
    },
    /// It did not answer in time.
    #[error("{server} did not answer within {seconds} s")]
    TooSlow {
        /// The server, without credentials.
        server: String,
        /// The deadline.
        seconds: u64,
    },
    /// It does not know us, or we may not.
    #[error("{server} refuses: {why}")]
    Refused {
        /// The server, without credentials.
        server: String,
        /// Its words.
        why: String,
    },
    /// It answered with an error, or with what the protocol does not allow.
    #[error("{server} answered: {why}")]
    Answer {
        /// The server, without credentials.
        server: String,
        /// Its words, or what is wrong with them.
        why: String,
    },
    /// The bytes are not those of the digest.
    #[error("{server} sent other bytes than those of {digest}")]
    WrongBytes {
        /// The server, without credentials.
        server: String,
        /// What was asked for.
        digest: Digest,
    },
    /// A file on this side could not be read or written.
    #[error("{path}: {why}")]
    Local {
        /// The file.
        path: String,
        /// The system's words.
        why: String,
    },
}
