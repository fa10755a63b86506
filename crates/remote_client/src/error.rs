//! Errors of servers. They never fail a build: each is a miss, a count, and one warning.

use serde::{Deserialize, Serialize};
use warpcc_cache::Digest;

/// An error between us and a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum RemoteError {
    /// No connection, or it broke.
    #[error("cannot reach {server}: {}", single_line(why))]
    Unreachable {
        /// The server, without credentials.
        server: String,
        /// In the words of the part that noticed.
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
    #[error("{server} refused the request: {}", single_line(why))]
    Refused {
        /// The server, without credentials.
        server: String,
        /// Its words.
        why: String,
    },
    /// It answered with an error, or with something that the protocol does not allow.
    #[error("{server} answered: {}", single_line(why))]
    Answer {
        /// The server, without credentials.
        server: String,
        /// Its words, or what is wrong with them.
        why: String,
    },
    /// It takes nothing more for a while.
    #[error("{server} accepts no uploads for {seconds} s: its rate limit is reached (429)")]
    Busy {
        /// The server, without credentials.
        server: String,
        /// How long.
        seconds: u64,
    },
    /// The bytes are not those of the digest.
    #[error("{server} sent bytes that do not match the digest {digest}")]
    WrongBytes {
        /// The server, without credentials.
        server: String,
        /// The digest that was asked for.
        digest: Digest,
    },
    /// A key of signatures that cannot be used.
    #[error("{place} {why}")]
    Key {
        /// The file, variable or command.
        place: String,
        /// Why, as the end of a sentence or the system's words.
        why: String,
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

/// The most characters of a server's own words.
const LONGEST_WORDS: usize = 400;

/// A server's words on one line, without anything that a terminal would act on.
fn single_line(why: &str) -> String {
    let line = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = line.chars().take(LONGEST_WORDS).flat_map(|c| {
        let is_text = c.is_ascii_graphic() || c == ' ' || c.escape_debug().len() == 1;
        let escaped = (!is_text).then(|| c.escape_debug());
        let itself = is_text.then_some(c);
        itself.into_iter().chain(escaped.into_iter().flatten())
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_cannot_speak_to_the_terminal() {
        let fault = RemoteError::Answer {
            server: "s".to_owned(),
            why: "a \"b\"\x1b[2J\r\nwarpcc: all is well\u{202e}".to_owned(),
        };
        assert_eq!(
            fault.to_string(),
            "s answered: a \"b\"\\u{1b}[2J warpcc: all is well\\u{202e}"
        );
    }
}
