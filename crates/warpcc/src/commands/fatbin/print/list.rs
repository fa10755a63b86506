//! `warpcc fatbin list` for people: containers, images, kernels, and bars that show where the bytes are.

use std::io::{self, Write};
use std::path::Path;

use warpcc_fatbin::{FunctionRow, ImageRow, Listing, Method};

use super::sums::{bar, by_kernel, by_target};
use crate::commands::plain_text::{count, plain, shortened};
use crate::config::format_bytes;

/// The number of kernels with a bar; a page can have more (`--html`).
const KERNEL_BARS: usize = 15;

/// Writes one file; only the sums when `summary` is set.
pub fn write(file: &str, listing: &Listing, summary: bool, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}: {}", plain(file), contents(listing))?;
    if !summary {
        let mut last = None;
        for row in &listing.rows {
            if last != Some(row.container) {
                last = Some(row.container);
                write_container(row, out)?;
            }
            write_image(row, out)?;
        }
    }
    write_sums(listing.rows.iter(), listing.concatenated_bytes, out)
}

/// Writes the totals of several files.
pub fn write_total<'l>(
    files: usize,
    listings: impl Iterator<Item = &'l Listing> + Clone,
    out: &mut dyn Write,
) -> io::Result<()> {
    let containers: usize = listings.clone().map(|l| l.containers).sum();
    let images: usize = listings.clone().map(|l| l.rows.len()).sum();
    let concatenated = listings.clone().map(|l| l.concatenated_bytes).sum();
    writeln!(
        out,
        "all {}: {} in {}",
        count(files, "file"),
        count(images, "image"),
        count(containers, "container")
    )?;
    write_sums(listings.flat_map(|l| &l.rows), concatenated, out)
}

/// Writes how many files `extract` wrote.
pub fn write_extracted(files: usize, folder: &Path, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{} in {}", count(files, "file"), folder.display())
}

fn contents(listing: &Listing) -> String {
    match listing.containers {
        0 => "no fat binaries".to_owned(),
        containers => format!(
            "{} in {}",
            count(listing.rows.len(), "image"),
            count(containers, "container")
        ),
    }
}

fn write_container(row: &ImageRow, out: &mut dyn Write) -> io::Result<()> {
    let member = row.member.as_deref().map(|m| format!("({}) ", plain(m)));
    writeln!(
        out,
        "  container {} {}{}",
        row.container,
        member.unwrap_or_default(),
        row.section
    )
}

fn write_image(row: &ImageRow, out: &mut dyn Write) -> io::Result<()> {
    let compression = match (row.compression, row.compressed_size) {
        (Method::None, _) => String::new(),
        (method, Some(size)) => format!("{} {size}", name(method)),
        (method, None) => name(method).to_owned(),
    };
    let version = row.code_version.map(|(major, minor)| match row.kind {
        warpcc_fatbin::ImageKind::Ptx => format!("PTX {major}.{minor}"),
        _ => String::new(),
    });
    let mut facts = vec![version.unwrap_or_default()];
    facts.extend(row.toolkit.iter().map(|t| format!("CUDA {t}")));
    facts.extend(row.flags.iter().filter(|f| !is_usual(f)).cloned());
    facts.extend(
        row.options
            .iter()
            .map(|o| format!("options {:?}", o.trim())),
    );
    facts.extend(
        row.identifier
            .iter()
            .map(|i| format!("from {:?}", i.trim())),
    );
    facts.retain(|fact| !fact.is_empty());
    let line = format!(
        "    {:>2} {:<5} {:<13} {:>11}  {compression:<16} {}",
        row.image,
        row.kind.to_string(),
        row.target,
        row.size,
        plain(&facts.join(", "))
    );
    writeln!(out, "{}", line.trim_end())?;
    let Some(functions) = &row.functions else {
        return Ok(());
    };
    if functions.iter().any(|f| f.function.usage.is_some()) {
        writeln!(
            out,
            "         {:>4} {:>6} {:>7} {:>7} {:>8} {:>11}",
            "regs", "stack", "shared", "const", "code", "local ld/st"
        )?;
    }
    functions.iter().try_for_each(|f| write_function(f, out))
}

fn write_function(row: &FunctionRow, out: &mut dyn Write) -> io::Result<()> {
    let name = plain(&row.demangled);
    let what = if row.function.is_kernel {
        ""
    } else {
        "device function "
    };
    let Some(usage) = &row.function.usage else {
        return writeln!(out, "         {what}{name}");
    };
    let or_dash = |value: Option<u32>| value.map_or("-".to_owned(), |v| v.to_string());
    let local = match (usage.local_loads, usage.local_stores) {
        (Some(0), Some(0)) => String::new(),
        (Some(loads), Some(stores)) => format!("{loads}/{stores}"),
        _ => "-".to_owned(),
    };
    writeln!(
        out,
        "         {:>4} {:>6} {:>7} {:>7} {:>8} {local:>11}  {what}{name}",
        or_dash(usage.registers),
        or_dash(usage.stack),
        usage.shared,
        usage.constant_bytes(),
        usage.code,
    )
}

fn is_usual(flag: &str) -> bool {
    matches!(flag, "64-bit" | "linux" | "compat" | "scrambled")
}

fn name(method: Method) -> &'static str {
    match method {
        Method::None => "",
        Method::Lz4 => "lz4",
        Method::Zstd => "zstd",
        Method::Old => "old scheme",
        Method::Scrambled => "scrambled",
    }
}

fn write_sums<'r>(
    rows: impl Iterator<Item = &'r ImageRow> + Clone,
    concatenated: u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut sums: Vec<(String, u64, u64, String)> = by_target(rows.clone())
        .into_iter()
        .map(|(target, sum)| (target, sum.images, sum.stored, format_bytes(sum.size)))
        .collect();
    if concatenated > 0 {
        sums.push(("concatenated".to_owned(), 0, concatenated, String::new()));
    }
    let Some(most) = sums.iter().map(|(_, _, stored, _)| *stored).max() else {
        return Ok(());
    };
    writeln!(
        out,
        "  {:<13} {:>7} {:>10} {:>10}",
        "", "images", "in file", "unpacked"
    )?;
    for (target, images, stored, size) in sums {
        let line = format!(
            "  {target:<13} {images:>7} {:>10} {size:>10}  {}",
            format_bytes(stored),
            bar(stored, most)
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    let kernels = by_kernel(rows);
    let Some((_, most)) = kernels.first() else {
        return Ok(());
    };
    writeln!(out, "  code of kernels, all architectures together:")?;
    for (name, code) in kernels.iter().take(KERNEL_BARS) {
        writeln!(
            out,
            "  {:>10}  {:<40} {}",
            format_bytes(*code),
            bar(*code, *most),
            shortened(&plain(name), 100)
        )?;
    }
    match kernels.len().checked_sub(KERNEL_BARS) {
        Some(more @ 1..) => writeln!(out, "  and {} more", count(more, "kernel")),
        _ => Ok(()),
    }
}
