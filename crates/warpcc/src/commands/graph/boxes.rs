//! The box of one command: tool, architecture, time, outcome.

use std::time::Duration;

use super::font::{Fonts, Weight};
use super::layout::{Point, Spacing};
use super::scene::{
    Anchor, BACKGROUND, CACHED, CACHED_PAPER, Color, FAILED, FAILED_PAPER, FAINT, Group, INK, LINE,
    PAPER, RULE, SPACING, Shape, Stroke, centred, pale, rect, styled, text, tool_color,
};
use crate::commands::timeline::{TaskOutcome, TaskRow};
use crate::seconds::format_seconds;

/// A box for a command.
pub(super) fn command(row: &TaskRow, at: Point, longest: Duration, fonts: &Fonts) -> Group {
    let Spacing { width, height, .. } = SPACING;
    let color = tool_color(&row.tool);
    let (paper, border, dashed) = match row.outcome {
        TaskOutcome::Ran => (PAPER, RULE, false),
        TaskOutcome::Hit => (CACHED_PAPER, CACHED, false),
        TaskOutcome::Skipped => (BACKGROUND, LINE, true),
        TaskOutcome::Failed(_) => (FAILED_PAPER, FAILED, false),
    };
    let stroke = Stroke {
        color: border,
        width: 1.2,
        dashed,
    };
    let mut shapes = vec![
        rect(at, width, height, 8.0, Some(paper), Some(stroke)),
        rect(
            Point {
                x: at.x + 8.0,
                y: at.y + 9.0,
            },
            4.0,
            height - 18.0,
            2.0,
            Some(color),
            None,
        ),
    ];
    let (left, right) = (at.x + 20.0, at.x + width - 10.0);

    let mut room = right - left;
    if let Some(arch) = &row.arch {
        let arch = fonts.fit(arch, 84.0, 10.5, Weight::Bold);
        let chip = fonts.width(&arch, 10.5, Weight::Bold) + 12.0;
        let corner = Point {
            x: right - chip,
            y: at.y + 9.0,
        };
        shapes.push(rect(corner, chip, 17.0, 8.5, Some(pale(color)), None));
        shapes.push(centred(
            corner.x + chip / 2.0,
            at.y + 21.2,
            arch,
            10.5,
            Weight::Bold,
            color,
        ));
        room -= chip + 6.0;
    }
    let tool = fonts.fit(&row.tool, room, 14.0, Weight::Bold);
    shapes.push(text(left, at.y + 22.5, tool, 14.0, Weight::Bold, INK));
    let label = fonts.fit(&row.label, right - left, 10.5, Weight::Regular);
    shapes.push(text(left, at.y + 38.5, label, 10.5, Weight::Regular, FAINT));

    shapes.extend(foot(row, at, (left, right), longest, fonts));
    Group {
        tooltip: Some(tooltip(row)),
        shapes,
    }
}

/// The last line of a box: time, a bar for it, and the outcome of the command.
fn foot(
    row: &TaskRow,
    at: Point,
    (left, right): (f32, f32),
    longest: Duration,
    fonts: &Fonts,
) -> Vec<Shape> {
    let mut shapes = Vec::new();
    let color = tool_color(&row.tool);
    let (mark, mark_color) = match row.outcome {
        TaskOutcome::Ran => (String::new(), INK),
        TaskOutcome::Hit => ("✓ cached".to_owned(), CACHED),
        TaskOutcome::Skipped => ("not run".to_owned(), FAINT),
        TaskOutcome::Failed(code) => (format!("✗ exit {code}"), FAILED),
    };
    let y = at.y + 54.5;
    if row.exit_code().is_some() {
        let time = format_seconds(row.elapsed());
        let time_width = fonts.width(&time, 11.0, Weight::Bold);
        shapes.push(text(left, y, time, 11.0, Weight::Bold, INK));
        shapes.extend(time_bar(
            row,
            Point {
                x: left + time_width + 8.0,
                y: y - 6.0,
            },
            right,
            longest,
            color,
        ));
    }
    if !mark.is_empty() {
        let x = if row.exit_code().is_some() {
            right
        } else {
            left
        };
        let anchor = if row.exit_code().is_some() {
            Anchor::End
        } else {
            Anchor::Start
        };
        shapes.push(styled(
            Point { x, y },
            anchor,
            mark,
            11.0,
            Weight::Bold,
            mark_color,
        ));
    }
    shapes
}

/// A bar for the time of a command, compared with the longest.
fn time_bar(row: &TaskRow, at: Point, right: f32, longest: Duration, color: Color) -> Vec<Shape> {
    let room = right - at.x;
    if row.outcome != TaskOutcome::Ran || longest.is_zero() || room < 12.0 {
        return Vec::new();
    }
    let share = (row.elapsed().as_secs_f64() / longest.as_secs_f64()) as f32;
    let done = (room * share).clamp(4.0, room);
    vec![
        rect(at, room, 4.0, 2.0, Some(Color(0xe5, 0xe7, 0xeb)), None),
        rect(at, done, 4.0, 2.0, Some(color), None),
    ]
}

fn tooltip(row: &TaskRow) -> String {
    let how = row.outcome.describe(|| format_seconds(row.elapsed()));
    let memory = match row.peak_kib {
        0 => String::new(),
        kib => format!(
            ", {}",
            crate::config::format_bytes(kib.saturating_mul(1024))
        ),
    };
    format!(
        "{}: {}, {how}{memory}\n{}",
        row.number,
        row.title(),
        row.command
    )
}
