//! The answer of a server to a ping.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The answer of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Its name and capabilities, as it reports them.
    pub says: String,
    /// Time until the answer: connection, handshake and look-up.
    pub first: Duration,
    /// Time of a look-up on an open connection.
    pub look_up: Duration,
    /// Whether it takes a result.
    pub write: WriteTest,
    /// Something about the signing key that its holder should know.
    pub warning: Option<String>,
}

/// The outcome of a test write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteTest {
    /// It is read-only by its setting, and was not tried.
    NotTried,
    /// It took a result.
    Taken,
    /// It did not, in the words of the fault.
    Refused(String),
}
