//! What a server says when it is tried.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a server said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What it is and can do, in its own words.
    pub says: String,
    /// How long it took until it said so: connection, handshake and answer.
    pub first: Duration,
    /// How long a look-up takes on a connection that is there.
    pub look_up: Duration,
    /// Whether it takes a result.
    pub write: WriteTest,
}

/// What came of trying to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteTest {
    /// It is read-only by its setting, and was not tried.
    NotTried,
    /// It took a result.
    Taken,
    /// It did not, in the words of the fault.
    Refused(String),
}
