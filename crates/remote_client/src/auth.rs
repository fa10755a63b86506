//! Credentials for a server: where bearer tokens, headers and certificates are.
//!
//! A [`Secret`] has no text form: neither `Debug` nor an error shows it.

use std::fmt;
use std::path::PathBuf;

/// A text that nobody may see.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides `text`. White space around it, such as a line end, is removed.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// The text, for a server. No message may contain it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Where a secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Here, from a variable.
    Given(Secret),
    /// It is in this file, which is read again when the server refuses the token.
    File(PathBuf),
}

/// The credentials for a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Auth {
    /// Sent as `authorization: Bearer …`.
    pub token: Option<Origin>,
    /// Further headers by name.
    pub headers: Vec<(String, Origin)>,
    /// A program that is asked for headers (Bazel's credential helper protocol).
    pub helper: Option<PathBuf>,
    /// PEM of the certificate authorities to trust, in place of the system's.
    pub roots: Option<PathBuf>,
    /// PEM of our certificate and of its key.
    pub client: Option<(PathBuf, PathBuf)>,
}

impl Auth {
    /// Whether a new attempt could bring other credentials.
    pub fn can_change(&self) -> bool {
        let is_file = |origin: &Origin| matches!(origin, Origin::File(_));
        self.helper.is_some()
            || self.token.as_ref().is_some_and(is_file)
            || self.headers.iter().any(|(_, origin)| is_file(origin))
    }
}
