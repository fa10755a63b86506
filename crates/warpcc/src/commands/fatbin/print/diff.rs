//! Prints the results of `warpcc fatbin diff` and `thin`.

use std::io::{self, Write};

use warpcc_fatbin::{FatbinDifference, KernelId, NumberChange, Thinned};

use crate::commands::plain_text::{count, plain};
use crate::config::format_bytes;

/// Writes the difference for programs.
pub fn write_json(difference: &FatbinDifference, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, difference)?;
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

/// Writes what `thin` did to a file of `before` bytes.
pub fn write_thinned(thinned: &Thinned, before: u64, out: &mut dyn Write) -> io::Result<()> {
    let after = thinned.bytes.len() as u64;
    writeln!(
        out,
        "{} of {} kept; file {} -> {}, fat binaries {} -> {}",
        thinned.images.1,
        count(thinned.images.0, "image"),
        format_bytes(before),
        format_bytes(after),
        format_bytes(thinned.image_bytes.0),
        format_bytes(thinned.image_bytes.1)
    )?;
    if thinned.zeroed > 0 {
        writeln!(
            out,
            "{} could not be removed and are zeros now",
            format_bytes(thinned.zeroed)
        )?;
    }
    if thinned.left_whole > 0 {
        writeln!(
            out,
            "{} had nothing that is kept: the smallest image of each stays, so that a driver \
             answers as before",
            count(thinned.left_whole, "container")
        )?;
    }
    thinned
        .notes
        .iter()
        .try_for_each(|note| writeln!(out, "note: {}", plain(note)))
}
