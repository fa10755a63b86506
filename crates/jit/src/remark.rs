//! A remark about a machine's settings or a program: the problem, the reason, and what to do.

use serde::Serialize;

/// Whether something should be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Something is wrong, and has a fix.
    Fix,
    /// Good to know.
    Note,
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// Whether to act.
    pub weight: Weight,
    /// The remark, in a sentence.
    pub what: String,
    /// Its consequence.
    pub why: String,
    /// How to fix it; empty where there is nothing to do.
    pub fix: String,
}

impl Remark {
    /// Something to act on.
    pub fn fix(what: impl Into<String>, why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            weight: Weight::Fix,
            what: what.into(),
            why: why.into(),
            fix: fix.into(),
        }
    }

    /// Something to know.
    pub fn note(what: impl Into<String>, why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            weight: Weight::Note,
            ..Self::fix(what, why, fix)
        }
    }
}
