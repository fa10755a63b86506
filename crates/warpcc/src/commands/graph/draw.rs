//! A run as a drawing: heading, boxes, lines and legend put together.

use std::time::Duration;

use super::boxes::command;
use super::font::{Fonts, Weight};
use super::layout::{Layout, Point, lay_out};
use super::lines::{line, names};
use super::scene::{
    BACKGROUND, CACHED, CACHED_PAPER, CRITICAL, FAILED, FAILED_PAPER, FAINT, Group, HEADER, INK,
    LEGEND, LINE, MARGIN, MIN_WIDTH, SPACING, Scene, Shape, Stroke, TOOL_COLORS, rect, text,
    tool_color,
};
use crate::commands::timeline::{Edge, Run, TaskOutcome, TaskRow};
use crate::seconds::format_seconds;

/// Draw the run.
pub(super) fn draw(run: &Run) -> Scene {
    let fonts = Fonts::load();
    let edges = run.edges();
    let pairs: Vec<_> = edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let mut layout = lay_out(run.rows.len(), &pairs, SPACING);
    let width = (layout.width + 2.0 * MARGIN).max(MIN_WIDTH);
    let height = HEADER + layout.height + LEGEND + 2.0 * MARGIN;
    let left = (width - layout.width) / 2.0;
    shift(&mut layout, left, HEADER + MARGIN);

    let critical = run.critical_path();
    let on_critical = |edge: &Edge| critical.windows(2).any(|w| w == [edge.to, edge.from]);
    let mut groups = vec![header(run, width, &fonts)];
    // The critical path is drawn last, above the lines that it crosses.
    for marked in [false, true] {
        for (edge, route) in edges.iter().zip(&layout.routes) {
            if on_critical(edge) == marked {
                groups.push(line(run, edge, route, marked));
            }
        }
    }
    let longest = run
        .rows
        .iter()
        .map(TaskRow::elapsed)
        .max()
        .unwrap_or(Duration::ZERO);
    for (row, at) in run.rows.iter().zip(&layout.boxes) {
        groups.push(command(row, *at, longest, &fonts));
    }
    groups.push(names(&edges, &layout, &fonts));
    groups.push(legend(run, critical.len() > 1, height, &fonts));
    Scene {
        width,
        height,
        groups,
    }
}

fn shift(layout: &mut Layout, dx: f32, dy: f32) {
    let points = layout.routes.iter_mut().flatten().flat_map(|(a, b)| [a, b]);
    for point in points.chain(&mut layout.boxes) {
        point.x += dx;
        point.y += dy;
    }
}

fn header(run: &Run, width: f32, fonts: &Fonts) -> Group {
    let cached = run.rows.iter().filter(|row| row.cached()).count();
    let commands = if run.rows.len() == 1 {
        "command"
    } else {
        "commands"
    };
    let mut facts = format!("{} {commands}", run.rows.len());
    if cached > 0 {
        facts = format!("{facts}  ·  {cached} from the cache");
    }
    facts = format!(
        "{facts}  ·  {} of work in {}",
        format_seconds(run.work()),
        format_seconds(run.wall)
    );
    let title = fonts.fit(&run.title, width - 2.0 * MARGIN, 19.0, Weight::Bold);
    let shapes = vec![
        text(MARGIN, MARGIN + 14.0, title, 19.0, Weight::Bold, INK),
        text(MARGIN, MARGIN + 38.0, facts, 13.0, Weight::Regular, FAINT),
    ];
    Group {
        tooltip: Some(run.title.clone()),
        shapes,
    }
}

/// A row of swatches with words, from the left.
struct Legend<'a> {
    fonts: &'a Fonts,
    /// The position of the next swatch, and the baseline of the words.
    at: Point,
    shapes: Vec<Shape>,
}

impl Legend<'_> {
    /// The upper left corner of a box for the next entry.
    fn corner(&self) -> Point {
        Point {
            x: self.at.x,
            y: self.at.y - 10.0,
        }
    }

    fn push(&mut self, swatch: Shape, swatch_width: f32, words: &str) {
        const SIZE: f32 = 11.5;
        let x = self.at.x + swatch_width + 7.0;
        let label = text(x, self.at.y, words.into(), SIZE, Weight::Regular, INK);
        self.shapes.extend([swatch, label]);
        self.at.x = x + self.fonts.width(words, SIZE, Weight::Regular) + 22.0;
    }
}

fn legend(run: &Run, critical: bool, height: f32, fonts: &Fonts) -> Group {
    let at = Point {
        x: MARGIN,
        y: height - MARGIN - 2.0,
    };
    let mut legend = Legend {
        fonts,
        at,
        shapes: Vec::new(),
    };
    let mut tools: Vec<&str> = run.rows.iter().map(|row| known_tool(&row.tool)).collect();
    tools.sort_by_key(|tool| TOOL_COLORS.iter().position(|(name, _)| name == tool));
    tools.dedup();
    for tool in tools {
        let color = Some(tool_color(tool));
        let swatch = rect(legend.corner(), 12.0, 12.0, 3.0, color, None);
        legend.push(swatch, 12.0, tool);
    }
    let has = |found: fn(&TaskRow) -> bool| run.rows.iter().any(found);
    let marks = [
        (
            has(TaskRow::cached),
            CACHED_PAPER,
            CACHED,
            false,
            "from the cache",
        ),
        (
            has(|row| matches!(row.outcome, TaskOutcome::Failed(_))),
            FAILED_PAPER,
            FAILED,
            false,
            "failed",
        ),
        (
            has(|row| row.outcome == TaskOutcome::Skipped),
            BACKGROUND,
            LINE,
            true,
            "not run",
        ),
    ];
    for (_, paper, border, dashed, words) in marks.into_iter().filter(|mark| mark.0) {
        let stroke = Stroke {
            color: border,
            width: 1.2,
            dashed,
        };
        let swatch = rect(legend.corner(), 18.0, 12.0, 3.0, Some(paper), Some(stroke));
        legend.push(swatch, 18.0, words);
    }
    if critical {
        let stroke = Stroke {
            color: CRITICAL,
            width: 2.0,
            dashed: false,
        };
        let (x, y) = (legend.at.x, legend.at.y - 4.0);
        let pairs = vec![(Point { x, y }, Point { x: x + 22.0, y })];
        legend.push(
            Shape::Route { pairs, stroke },
            22.0,
            "decided how long it took",
        );
    }
    Group {
        tooltip: None,
        shapes: legend.shapes,
    }
}

fn known_tool(tool: &str) -> &'static str {
    TOOL_COLORS
        .iter()
        .map(|(name, _)| *name)
        .find(|name| *name == tool)
        .unwrap_or("other")
}
