//! Sorts and writes findings: problems of a setup, and how to fix them.
//!
//! The caller looks for the problems.

use std::io::{self, Write};

use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing will be compiled, or nothing cached.
    Error,
    /// It works, but not as well as it could.
    Warning,
    /// Good to know.
    Note,
    /// Checked, and right.
    Fine,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The finding, in a sentence.
    pub what: String,
    /// Its consequence; may be empty.
    pub why: String,
    /// How to fix it, best a command; may be empty where there is nothing to do.
    pub fix: String,
}

/// The worst first; findings of the same severity stay in order.
pub fn sort(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| finding.severity);
}

/// The worst of all, which decides the exit code.
pub fn worst(findings: &[Finding]) -> Option<Severity> {
    findings.iter().map(|finding| finding.severity).min()
}

/// Writes the findings as text.
///
/// # Errors
/// Writing to `out` failed.
pub fn write_text(findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    let mut sorted = findings.to_vec();
    sort(&mut sorted);
    for finding in &sorted {
        let name = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
            Severity::Fine => "ok",
        };
        writeln!(out, "{name:<8} {}", one_line(&finding.what))?;
        for (mark, text) in [("", &finding.why), ("fix: ", &finding.fix)] {
            if !text.is_empty() && finding.severity != Severity::Fine {
                writeln!(out, "{:<8} {mark}{}", "", one_line(text))?;
            }
        }
    }
    let count = |severity| {
        findings
            .iter()
            .filter(|one| one.severity == severity)
            .count()
    };
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    match (errors, warnings) {
        (0, 0) => writeln!(out, "\nEverything looks right."),
        _ => writeln!(
            out,
            "\n{}, {}",
            counted(errors, "error"),
            counted(warnings, "warning")
        ),
    }
}

/// Writes the findings as JSON: `{"findings": […], "errors": n, "warnings": n}`.
///
/// # Errors
/// Writing to `out` failed.
pub fn write_json(findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    let mut sorted = findings.to_vec();
    sort(&mut sorted);
    let count = |severity| {
        findings
            .iter()
            .filter(|one| one.severity == severity)
            .count()
    };
    let document = serde_json::json!({
        "findings": sorted,
        "errors": count(Severity::Error),
        "warnings": count(Severity::Warning),
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A path with a line end in it must not look like another finding.
fn one_line(text: &str) -> String {
    crate::monitor::harmless(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Vec<Finding> {
        let finding = |severity, what: &str, why: &str, fix: &str| Finding {
            severity,
            what: what.into(),
            why: why.into(),
            fix: fix.into(),
        };
        vec![
            finding(Severity::Fine, "nvcc 13.5 in /usr/local/cuda", "", ""),
            finding(
                Severity::Warning,
                "ccache stands in front of the host compiler",
                "two caches store the same objects\nerror    faked",
                "unset CMAKE_CXX_COMPILER_LAUNCHER",
            ),
            finding(
                Severity::Error,
                "the cache's folder is full",
                "nothing is stored",
                "warpcc cache trim",
            ),
        ]
    }

    #[test]
    fn the_worst_comes_first() {
        let mut out = Vec::new();
        write_text(&findings(), &mut out).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap());
        assert_eq!(worst(&findings()), Some(Severity::Error));
    }

    #[test]
    fn programs_read_it_too() {
        let mut out = Vec::new();
        write_json(&findings(), &mut out).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap());
    }

    #[test]
    fn all_is_well() {
        let mut out = Vec::new();
        write_text(&findings()[..1], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.ends_with("Everything looks right.\n"), "{text}");
    }
}
