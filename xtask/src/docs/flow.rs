//! The picture of ARCHITECTURE.md: the files that a call goes through, drawn from the page's own table.
//!
//! The call is on the left, a step of it on the right, and where a call ends leads out to the left.

use std::fmt::Write;

use anyhow::{Context, Result};

use crate::drawing;

/// The path of the picture.
pub const PICTURE: &str = "docs/img/flow.svg";

const WIDTH: f64 = 830.0;
const BOX: (f64, f64) = (480.0, 44.0);
const ROW: f64 = 56.0;
const TOP: f64 = 44.0;
/// The left edges of a call's files, and of a step's, so near that an arrow straight down leads from one to the other.
const LANES: [f64; 2] = [110.0, 330.0];

/// The rules of this picture, for a light page and for a dark one.
const RULES: [&str; 2] = [
    ".file{font-family:ui-monospace,monospace;font-weight:600}\
     rect{fill:#f6f8fa;stroke:#8b949e}.end{fill:#1a7f37}path{fill:none;stroke:#8b949e}.head{fill:#8b949e;stroke:none}",
    "rect{fill:#161b22;stroke:#6e7681}.end{fill:#3fb950}path{stroke:#6e7681}.head{fill:#6e7681;stroke:none}",
];

/// A row of the table.
#[derive(Debug, PartialEq)]
struct Stop<'a> {
    number: &'a str,
    /// The first file, without its crate.
    file: &'a str,
    in_a_step: bool,
    what: String,
    /// How a call may end here; empty where it goes on.
    end: &'a str,
}

/// The picture of `page`, the text of ARCHITECTURE.md.
///
/// # Errors
/// The page has no such table.
pub fn draw(page: &str) -> Result<String> {
    let stops = stops(page)?;
    let height = TOP + ROW * stops.len() as f64;
    let mut svg = drawing::open(WIDTH, height, "One call, by file", RULES);
    for (lane, title) in LANES
        .iter()
        .zip(["warpcc: the call", "engine: each step of it"])
    {
        text(&mut svg, "quiet", *lane, 24.0, title);
    }
    for (index, stop) in stops.iter().enumerate() {
        let (x, y) = place(index, stop);
        let (width, tall) = BOX;
        // Writing to a string cannot fail.
        _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{tall}\" rx=\"5\"/>"
        );
        let file = format!("{} {}", stop.number, stop.file);
        text(&mut svg, "file", x + 10.0, y + 19.0, &file);
        text(&mut svg, "quiet", x + 10.0, y + 37.0, &stop.what);
        if !stop.end.is_empty() {
            arrow(&mut svg, (x, y + 23.0), (LANES[0] - 24.0, y + 23.0));
            text(&mut svg, "end", 10.0, y + 27.0, stop.end);
        }
        if let Some(next) = stops.get(index + 1) {
            let (next_x, next_y) = place(index + 1, next);
            let down = x.max(next_x) + 30.0;
            arrow(&mut svg, (down, y + tall), (down, next_y));
        }
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn place(index: usize, stop: &Stop<'_>) -> (f64, f64) {
    (LANES[usize::from(stop.in_a_step)], TOP + ROW * index as f64)
}

fn text(svg: &mut String, class: &str, x: f64, y: f64, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    _ = writeln!(
        svg,
        "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>"
    );
}

/// A straight line with a head, down or to the left.
fn arrow(svg: &mut String, (x, y): (f64, f64), (to_x, to_y): (f64, f64)) {
    let head = match x == to_x {
        true => format!("M{} {} l8 0 l-4 7 z", to_x - 4.0, to_y - 7.0),
        false => format!("M{} {} l0 8 l-7 -4 z", to_x + 7.0, to_y - 4.0),
    };
    _ = writeln!(
        svg,
        "<path d=\"M{x} {y} L{to_x} {to_y}\"/><path class=\"head\" d=\"{head}\"/>"
    );
}

fn stops(page: &str) -> Result<Vec<Stop<'_>>> {
    let (_, behind) = page
        .split_once("## One call, by file")
        .context("ARCHITECTURE.md has no section \"One call, by file\"")?;
    let rows = behind
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .skip(2);
    let read = |row| stop(row).with_context(|| format!("ARCHITECTURE.md: not a row: {row}"));
    rows.map(read).collect()
}

/// `| 4 | `crates/warpcc/src/direct.rs` | what it does | how a call may end |`.
fn stop(row: &str) -> Option<Stop<'_>> {
    let mut cells = row.trim_matches('|').split('|').map(str::trim);
    let (number, files, what, end) = (cells.next()?, cells.next()?, cells.next()?, cells.next()?);
    let first = files.split('`').nth(1)?;
    let (krate, file) = first.strip_prefix("crates/")?.split_once("/src/")?;
    Some(Stop {
        number,
        file,
        in_a_step: krate == "engine",
        what: what.split(" (").next()?.replace('`', ""),
        end,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo;

    #[test]
    fn a_row_is_read() {
        let row = "| 4 | `crates/warpcc/src/a/b.rs`, `c.rs` | does `it` (or not) | a hit |";
        let stop = stop(row).expect("a row");
        assert_eq!((stop.number, stop.file), ("4", "a/b.rs"));
        assert_eq!((stop.what.as_str(), stop.end), ("does it", "a hit"));
        assert!(!stop.in_a_step);
    }

    /// The committed picture is what `cargo xtask docs` would write.
    #[test]
    fn the_picture_is_the_pages() -> Result<()> {
        let page = std::fs::read_to_string(repo::root().join("ARCHITECTURE.md"))?;
        let picture = std::fs::read_to_string(repo::root().join(PICTURE))?;
        assert_eq!(picture, draw(&page)?, "run cargo xtask docs");
        Ok(())
    }
}
