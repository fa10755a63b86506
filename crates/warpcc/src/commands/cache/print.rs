//! Prints the results of `warpcc cache`, the summary first.

use std::io::{self, Write};

use crate::config::{MaxSize, format_bytes};

/// Write what the cache holds, and how much it may.
pub fn write_size(bytes: u64, entries: u64, limit: MaxSize, out: &mut dyn Write) -> io::Result<()> {
    let held = format_bytes(bytes);
    match limit.bytes() {
        Some(limit) => {
            let share = u128::from(bytes) * 100 / u128::from(limit.max(1));
            let limit = format_bytes(limit);
            writeln!(
                out,
                "{held} of {limit} ({share}%) in {}",
                of_entries(entries)
            )
        }
        None => writeln!(out, "{held}, without a limit, in {}", of_entries(entries)),
    }
}

/// Write what `clear` or `gc` removed.
pub fn write_removed(bytes: u64, entries: u64, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "removed {}, {}",
        of_entries(entries),
        format_bytes(bytes)
    )
}

/// Write what `verify` found: how many entries it read, and which were damaged.
pub fn write_verified(entries: u64, damaged: &[String], out: &mut dyn Write) -> io::Result<()> {
    if damaged.is_empty() {
        return writeln!(out, "{} checked, none damaged", of_entries(entries));
    }
    writeln!(
        out,
        "{} checked, {} damaged and removed:",
        of_entries(entries),
        damaged.len()
    )?;
    damaged
        .iter()
        .try_for_each(|entry| writeln!(out, "  {entry}"))
}

fn of_entries(number: u64) -> String {
    format!("{number} {}", if number == 1 { "entry" } else { "entries" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::output::text_of;

    #[test]
    fn cache_answers_read_well() {
        let size = |limit| text_of(|out| write_size(5 << 30, 1, MaxSize::from_bytes(limit), out));
        assert_eq!(size(20 << 30), "5 GiB of 20 GiB (25%) in 1 entry\n");
        assert_eq!(size(0), "5 GiB, without a limit, in 1 entry\n");
        assert_eq!(
            text_of(|out| write_removed(0, 0, out)),
            "removed 0 entries, 0 B\n"
        );
        let verified = text_of(|out| write_verified(7, &["steps/ab".into()], out));
        assert_eq!(
            verified,
            "7 entries checked, 1 damaged and removed:\n  steps/ab\n"
        );
    }
}
