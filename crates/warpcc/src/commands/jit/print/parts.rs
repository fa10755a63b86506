//! Prints the parts that several outputs of `warpcc jit` share: remarks, times, JSON.

use std::io::{self, Write};

use serde::Serialize;
use warpcc_jit::{Remark, Weight};

use crate::commands::plain_text::plain;

/// Writes anything here as JSON.
pub fn write_json<T: Serialize>(value: &T, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

/// Writes the remarks, in the manner of `warpcc doctor`.
pub fn write_remarks(remarks: &[Remark], out: &mut dyn Write) -> io::Result<()> {
    for remark in remarks {
        let name = match remark.weight {
            Weight::Fix => "to fix",
            Weight::Note => "note",
        };
        writeln!(out, "{name:<7} {}", plain(&remark.what))?;
        writeln!(out, "{:<7} {}", "", plain(&remark.why))?;
        if !remark.fix.is_empty() {
            writeln!(out, "{:<7} fix: {}", "", plain(&remark.fix))?;
        }
    }
    Ok(())
}

/// A time in words, as exact as it can be trusted: `0.02 s`, `75 s`, `12 min`.
pub fn seconds(value: f64) -> String {
    match value {
        v if v < 0.0005 => "0 s".to_owned(),
        v if v < 10.0 => format!("{v:.2} s"),
        v if v < 600.0 => format!("{v:.0} s"),
        v => format!("{:.0} min", v / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_well() {
        for (value, text) in [
            (0.0, "0 s"),
            (0.02, "0.02 s"),
            (75.2, "75 s"),
            (720.0, "12 min"),
        ] {
            assert_eq!(seconds(value), text);
        }
    }
}
