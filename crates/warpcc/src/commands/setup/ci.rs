//! The lines of a CI job, as files of their own: a test runs their shell parts.

use clap::ValueEnum;

/// A CI system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ci {
    /// GitHub Actions
    Github,
    /// GitLab
    Gitlab,
    /// Jenkins
    Jenkins,
}

impl Ci {
    /// The lines to copy, for the version that prints them.
    pub fn lines(self) -> String {
        let text = match self {
            Self::Github => include_str!("ci/github.yml"),
            Self::Gitlab => include_str!("ci/gitlab.yml"),
            Self::Jenkins => include_str!("ci/Jenkinsfile"),
        };
        text.replace("@VERSION@", env!("CARGO_PKG_VERSION"))
    }
}
