//! The names of a shared cache's settings, and errors in these settings. It knows no values.

use std::borrow::Cow;

/// The settings of a shared cache, by name.
pub const SETTINGS: [&str; 16] = [
    "read_only",
    "timeout",
    "connect_timeout",
    "retry_after",
    "ca",
    "client_cert",
    "client_key",
    "token_file",
    "token_variable",
    "header_file:NAME",
    "credential_helper",
    "trusted_keys",
    "signing_key_file",
    "signing_key_variable",
    "signing_key_command",
    "untrusted",
];
/// The beginning of the setting that names a header.
pub(crate) const HEADER: &str = "header_file:";

/// Whether a shared cache has this setting. Names may have `-` for `_`.
pub(crate) fn is_known(name: &str) -> bool {
    let name = name.trim().replace('-', "_");
    name.starts_with(HEADER) || name == "readonly" || SETTINGS.contains(&name.as_str())
}

/// The end of a message about an unknown name: which of the `known` ones was meant, or all of them if none looks like it.
pub(crate) fn hint(name: &str, known: impl Iterator<Item = &'static str> + Clone) -> String {
    let name = name.trim().to_lowercase().replace('-', "_");
    let score = |known: &&'static str| strsim::jaro_winkler(&name, known);
    let best = known
        .clone()
        .max_by(|a, b| score(a).total_cmp(&score(b)))
        .filter(|best| score(best) > 0.8);
    match best {
        Some(best) => format!(", did you mean `{best}`?"),
        None => {
            let all: Vec<_> = known.map(|name| format!("`{name}`")).collect();
            format!("; known are {}", all.join(", "))
        }
    }
}

/// An error in a layer's text. It contains no credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at} {problem}")]
pub struct LayerError {
    /// The part it is about, without credentials.
    pub at: String,
    /// What is wrong, as the end of a sentence.
    pub problem: Cow<'static, str>,
    /// Its line in the settings file, counted from 1, if it is from there.
    pub line: Option<usize>,
}

impl LayerError {
    /// An error that is not in a settings file.
    pub fn new(at: impl Into<String>, problem: impl Into<Cow<'static, str>>) -> Self {
        Self {
            at: at.into(),
            problem: problem.into(),
            line: None,
        }
    }

    /// The same error, in a line of the settings file.
    pub fn in_line(self, line: usize) -> Self {
        Self {
            line: Some(line),
            ..self
        }
    }
}
