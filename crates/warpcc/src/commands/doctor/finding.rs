//! How findings are printed: what was found, why it matters, what to do.

use warpcc_report::doctor::{Finding, Severity};

fn finding(severity: Severity, what: impl Into<String>, why: &str, fix: &str) -> Finding {
    Finding {
        severity,
        what: what.into(),
        why: why.to_owned(),
        fix: fix.to_owned(),
    }
}

/// There is no problem with `what`.
pub fn fine(what: impl Into<String>) -> Finding {
    finding(Severity::Fine, what, "", "")
}

/// Information.
pub fn note(what: impl Into<String>, why: &str, fix: &str) -> Finding {
    finding(Severity::Note, what, why, fix)
}

/// A problem that costs time or hits.
pub fn warning(what: impl Into<String>, why: &str, fix: &str) -> Finding {
    finding(Severity::Warning, what, why, fix)
}

/// A problem without whose solution warpcc does not work.
pub fn error_of(what: impl Into<String>, why: &str, fix: &str) -> Finding {
    finding(Severity::Error, what, why, fix)
}
