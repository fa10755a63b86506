//! Prints what `warpcc fatbin thin` did.

use std::io::{self, Write};

use warpcc_fatbin::{Thinned, ThinnedWheel};

use crate::commands::plain_text::{count, plain};
use crate::config::format_bytes;

/// Writes what was done to a file of `before` bytes, which has `after` bytes now.
pub fn write(thinned: &Thinned, before: u64, after: u64, out: &mut dyn Write) -> io::Result<()> {
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
    if thinned.recompressed > 0 {
        let images = count(thinned.recompressed, "image");
        writeln!(out, "{images} recompressed")?;
    }
    if thinned.zeroed > 0 {
        writeln!(
            out,
            "{} could not be removed and were zeroed",
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

/// Writes what was done to a wheel: its files, then the sums.
pub fn write_wheel(
    thinned: &ThinnedWheel,
    before: u64,
    after: u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    for member in &thinned.members {
        let (from, to) = member.bytes;
        writeln!(
            out,
            "{}: {} -> {}",
            plain(&member.name),
            format_bytes(from),
            format_bytes(to)
        )?;
    }
    write(&thinned.sums, before, after, out)
}
