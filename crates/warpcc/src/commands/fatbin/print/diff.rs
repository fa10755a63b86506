//! Prints the result of `warpcc fatbin diff`.

use std::io::{self, Write};

use warpcc_fatbin::{FatbinDifference, KernelId, NumberChange};

use super::tables::versioned;
use crate::commands::plain_text::plain;
use crate::config::format_bytes;

/// Writes the difference for programs.
pub fn write_json(difference: &FatbinDifference, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &versioned(difference))?;
    writeln!(out)
}

/// Writes the difference for people.
pub fn write(difference: &FatbinDifference, out: &mut dyn Write) -> io::Result<()> {
    for (sign, kernels) in [('-', &difference.removed), ('+', &difference.added)] {
        for id in kernels {
            write_id(sign, id, out)?;
        }
    }
    for changed in &difference.changed {
        write_id('~', &changed.id, out)?;
        let words: Vec<String> = changed.changes.iter().map(change).collect();
        writeln!(out, "    {}", words.join(", "))?;
    }
    for (target, (before, after)) in &difference.targets {
        writeln!(
            out,
            "{target}: images {} -> {}, kernels {} -> {}, in file {} -> {}",
            before.images,
            after.images,
            before.kernels,
            after.kernels,
            format_bytes(before.stored),
            format_bytes(after.stored)
        )?;
    }
    writeln!(
        out,
        "{} removed, {} added, {} changed, {} equal",
        difference.removed.len(),
        difference.added.len(),
        difference.changed.len(),
        difference.equal
    )
}

fn write_id(sign: char, id: &KernelId, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{sign} {} {}", id.target, plain(&id.kernel))
}

fn change(change: &NumberChange) -> String {
    let or_dash = |value: Option<u64>| value.map_or("-".to_owned(), |v| v.to_string());
    let sum = change.before.zip(change.after).map(|(before, after)| {
        let sign = if after >= before { '+' } else { '-' };
        format!(" ({sign}{})", after.abs_diff(before))
    });
    format!(
        "{} {} -> {}{}",
        change.what,
        or_dash(change.before),
        or_dash(change.after),
        sum.unwrap_or_default()
    )
}
