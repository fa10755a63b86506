//! Shows where the bytes of a binary are, as a drawing and as a self-contained page.

use std::collections::BTreeMap;
use std::io::{self, Write};

use warpcc_fatbin::ImageRow;
use warpcc_markup::escape;

use super::sums::{by_kernel, by_target};
use crate::config::format_bytes;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 130.0;
const ROW: f64 = 34.0;
/// Kernels with a colour of their own; the rest of a bar is grey.
const COLORED: usize = 10;
/// Light and dark colours alternate, so that they can be distinguished without seeing colours.
const COLORS: [&str; COLORED] = [
    "#1f77b4", "#aec7e8", "#d95f02", "#fdc086", "#2ca02c", "#98df8a", "#7b3294", "#c2a5cf",
    "#8c510a", "#dfc27d",
];
/// Kernels in the page's table.
const LISTED: usize = 200;

/// One bar: a target, its bytes in the file, and the code of its largest kernels.
struct Bar<'r> {
    target: String,
    images: u64,
    stored: u64,
    /// The parts: the index of a colour, the kernel's name and the size of its code in bytes.
    parts: Vec<(usize, &'r str, u64)>,
    /// Code of all kernels, in bytes.
    code: u64,
}

fn bars<'r>(rows: impl Iterator<Item = &'r ImageRow> + Clone) -> Vec<Bar<'r>> {
    let largest = by_kernel(rows.clone());
    let mut code: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let mut all: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows.clone() {
        for kernel in row.kernels() {
            let bytes = kernel.function.usage.as_ref().map_or(0, |usage| usage.code);
            let key = (row.target.as_str(), kernel.demangled.as_str());
            for sum in [
                code.entry(key).or_default(),
                all.entry(&row.target).or_default(),
            ] {
                *sum = sum.saturating_add(bytes);
            }
        }
    }
    by_target(rows)
        .into_iter()
        .map(|(target, sum)| {
            let shown = largest.iter().take(COLORED).enumerate();
            let parts = shown.filter_map(|(index, (name, _))| {
                let bytes = *code.get(&(target.as_str(), *name))?;
                Some((index, *name, bytes))
            });
            Bar {
                parts: parts.collect(),
                code: all.get(target.as_str()).copied().unwrap_or(0),
                images: sum.images,
                stored: sum.stored,
                target,
            }
        })
        .collect()
}

/// Writes the drawing: a bar for each target, as long as its images in the file, and divided by the code of its kernels.
pub fn write_svg<'r>(
    rows: impl Iterator<Item = &'r ImageRow> + Clone,
    out: &mut dyn Write,
) -> io::Result<()> {
    let bars = bars(rows);
    let height = 24.0 + ROW * bars.len() as f64;
    writeln!(
        out,
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="'DejaVu Sans', Verdana, sans-serif" font-size="13">
<rect width="100%" height="100%" fill="#ffffff"/>"##
    )?;
    let most = bars.iter().map(|bar| bar.stored).max().unwrap_or(0).max(1);
    for (index, bar) in bars.iter().enumerate() {
        write_bar(bar, 12.0 + ROW * index as f64, most, out)?;
    }
    writeln!(out, "</svg>")
}

fn write_bar(bar: &Bar<'_>, y: f64, most: u64, out: &mut dyn Write) -> io::Result<()> {
    let room = WIDTH - LEFT - 150.0;
    let length = room * bar.stored as f64 / most as f64;
    let text = y + 16.0;
    writeln!(
        out,
        r##"<text x="{:.0}" y="{text:.0}" text-anchor="end">{}</text>
<rect x="{LEFT}" y="{y:.0}" width="{length:.1}" height="22" fill="#c7c7c7"><title>{}: {} in {} images</title></rect>"##,
        LEFT - 8.0,
        escape(&bar.target),
        escape(&bar.target),
        format_bytes(bar.stored),
        bar.images
    )?;
    let mut x = LEFT;
    for (color, name, code) in &bar.parts {
        let width = length * *code as f64 / bar.code.max(1) as f64;
        writeln!(
            out,
            r#"<rect x="{x:.1}" y="{y:.0}" width="{width:.1}" height="22" fill="{}"><title>{}: {} of code</title></rect>"#,
            COLORS[*color % COLORED],
            escape(name),
            format_bytes(*code)
        )?;
        x += width;
    }
    writeln!(
        out,
        r#"<text x="{:.0}" y="{text:.0}">{}</text>"#,
        LEFT + length + 8.0,
        format_bytes(bar.stored)
    )
}

/// Writes the drawing with tables of the same data.
pub fn write_html<'r>(
    title: &str,
    rows: impl Iterator<Item = &'r ImageRow> + Clone,
    out: &mut dyn Write,
) -> io::Result<()> {
    let title = escape(title);
    writeln!(
        out,
        r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 15px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }}
svg {{ max-width: 100%; height: auto; }}
table {{ border-collapse: collapse; width: 100%; margin: 1rem 0; }}
td, th {{ text-align: left; padding: .2rem .6rem; border-bottom: 1px solid #ddd; overflow-wrap: anywhere; }}
td.n, th.n {{ text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }}
i {{ display: inline-block; width: .8em; height: .8em; margin-right: .5em; }}
</style></head><body>
<h1>{title}</h1>
<p>Each bar is as long as the images of an architecture are in the file, and divided as the code of
their kernels is. Grey is the rest.</p>"#
    )?;
    write_svg(rows.clone(), out)?;
    writeln!(
        out,
        "<table><tr><th>Target<th class=n>Images<th class=n>In the file<th class=n>Unpacked</tr>"
    )?;
    for (target, sum) in by_target(rows.clone()) {
        writeln!(
            out,
            "<tr><td>{}<td class=n>{}<td class=n>{}<td class=n>{}</tr>",
            escape(&target),
            sum.images,
            format_bytes(sum.stored),
            format_bytes(sum.size)
        )?;
    }
    let kernels = by_kernel(rows);
    writeln!(
        out,
        "</table>\n<table><tr><th>Kernel<th class=n>Code, all architectures</tr>"
    )?;
    for (index, (name, code)) in kernels.iter().take(LISTED).enumerate() {
        let color = COLORS.get(index).copied().unwrap_or("#c7c7c7");
        writeln!(
            out,
            r#"<tr><td><i style="background:{color}"></i>{}<td class=n>{}</tr>"#,
            escape(name),
            format_bytes(*code)
        )?;
    }
    writeln!(out, "</table>")?;
    if let Some(more @ 1..) = kernels.len().checked_sub(LISTED) {
        writeln!(out, "<p>and {more} more</p>")?;
    }
    writeln!(out, "</body></html>")
}
