//! The drawing of a run as shapes, before it is SVG or pixels.
//!
//! Both forms are made from this one list, so they cannot disagree.

use std::time::Duration;

use super::font::{Fonts, Weight};
use super::graph_layout::{Layout, Point, Spacing, lay_out};
use super::timeline::{Edge, Run, TaskOutcome, TaskRow, format_seconds};

/// Red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Color(pub(super) u8, pub(super) u8, pub(super) u8);

const PAPER: Color = Color(0xff, 0xff, 0xff);
const INK: Color = Color(0x1f, 0x29, 0x37);
const FAINT: Color = Color(0x6b, 0x72, 0x80);
const RULE: Color = Color(0xd1, 0xd5, 0xdb);
const LINE: Color = Color(0xa3, 0xad, 0xba);
const CRITICAL: Color = Color(0xd9, 0x46, 0x1f);
const CACHED: Color = Color(0x15, 0x80, 0x3d);
const CACHED_PAPER: Color = Color(0xf0, 0xfd, 0xf4);
const FAILED: Color = Color(0xb9, 0x1c, 0x1c);
const FAILED_PAPER: Color = Color(0xfe, 0xf2, 0xf2);

/// A drawn line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stroke {
    pub(super) color: Color,
    pub(super) width: f32,
    pub(super) dashed: bool,
}

/// Which end of a text its position is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// One thing to draw.
#[derive(Debug, Clone)]
pub(super) enum Shape {
    Rect {
        at: Point,
        width: f32,
        height: f32,
        radius: f32,
        fill: Option<Color>,
        stroke: Option<Stroke>,
    },
    /// Curves from the first to the second point of each pair, straight between pairs.
    Route {
        pairs: Vec<(Point, Point)>,
        stroke: Stroke,
    },
    /// An arrow's head, pointing right at this point.
    Arrow { tip: Point, color: Color },
    Text {
        at: Point,
        anchor: Anchor,
        size: f32,
        weight: Weight,
        color: Color,
        /// Drawn with a paper-coloured edge, to be readable over lines.
        halo: bool,
        text: String,
    },
}

/// Shapes that belong together, with what to show when pointed at.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) tooltip: Option<String>,
    pub(super) shapes: Vec<Shape>,
}

/// The whole drawing.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    pub(super) width: f32,
    pub(super) height: f32,
    pub(super) groups: Vec<Group>,
}

pub(super) const BACKGROUND: Color = Color(0xf8, 0xfa, 0xfc);
/// How far an arrow's head reaches back from its tip, and to each side.
pub(super) const ARROW: (f32, f32) = (7.0, 3.6);

const MARGIN: f32 = 28.0;
const HEADER: f32 = 62.0;
const LEGEND: f32 = 46.0;
const SPACING: Spacing = Spacing {
    width: 176.0,
    height: 66.0,
    column_gap: 132.0,
    row_gap: 16.0,
};
/// A drawing is at least this wide, so that its title and legend fit.
const MIN_WIDTH: f32 = 760.0;

/// Tools have colours of their own; any other tool has the last.
const TOOL_COLORS: [(&str, Color); 7] = [
    ("cudafe++", Color(0x7c, 0x3a, 0xed)),
    ("cicc", Color(0x25, 0x63, 0xeb)),
    ("ptxas", Color(0x0d, 0x94, 0x88)),
    ("fatbinary", Color(0xb4, 0x53, 0x09)),
    ("nvlink", Color(0xbe, 0x18, 0x5d)),
    ("host", Color(0x47, 0x55, 0x69)),
    ("other", Color(0x65, 0x7b, 0x22)),
];

/// The colour that stands for a tool.
pub(super) fn tool_color(tool: &str) -> Color {
    let known = TOOL_COLORS.iter().find(|(name, _)| *name == tool);
    known.unwrap_or(&TOOL_COLORS[TOOL_COLORS.len() - 1]).1
}

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
    // The marked path is drawn last, above the lines it crosses.
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
        seconds(run.work()),
        seconds(run.wall)
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

/// A box for a command.
fn command(row: &TaskRow, at: Point, longest: Duration, fonts: &Fonts) -> Group {
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
    Group {
        tooltip: Some(tooltip(row)),
        shapes,
    }
}

/// How long it took, against the longest of all.
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
    let arch = row
        .arch
        .as_deref()
        .map(|arch| format!(" {arch}"))
        .unwrap_or_default();
    let how = match row.outcome {
        TaskOutcome::Ran => format_seconds(row.elapsed()),
        TaskOutcome::Hit => "from the cache".to_owned(),
        TaskOutcome::Skipped => "not run".to_owned(),
        TaskOutcome::Failed(code) => format!("failed with exit code {code}"),
    };
    let memory = match row.peak_kib {
        0 => String::new(),
        kib => format!(
            ", {}",
            crate::config::format_bytes(kib.saturating_mul(1024))
        ),
    };
    format!(
        "{}: {}{arch}, {how}{memory}\n{}",
        row.number, row.tool, row.command
    )
}

/// A line for a dependency.
fn line(run: &Run, edge: &Edge, route: &[(Point, Point)], critical: bool) -> Group {
    let stroke = if critical {
        Stroke {
            color: CRITICAL,
            width: 2.0,
            dashed: false,
        }
    } else {
        Stroke {
            color: LINE,
            width: 1.2,
            dashed: false,
        }
    };
    let mut pairs = route.to_vec();
    let mut shapes = Vec::new();
    if let Some((_, end)) = pairs.last_mut() {
        let tip = *end;
        // The line ends inside the arrow's head, so its square end does not show.
        end.x -= ARROW.0 - 1.0;
        shapes.push(Shape::Route { pairs, stroke });
        shapes.push(Shape::Arrow {
            tip,
            color: stroke.color,
        });
    }
    let name = |row: usize| {
        let row = &run.rows[row];
        let arch = row
            .arch
            .as_deref()
            .map(|arch| format!(" {arch}"))
            .unwrap_or_default();
        format!("{}{arch}", row.tool)
    };
    let files = if edge.files.is_empty() {
        "order only".into()
    } else {
        edge.files.join("\n")
    };
    Group {
        tooltip: Some(format!("{} → {}\n{files}", name(edge.from), name(edge.to))),
        shapes,
    }
}

/// The files' names, each once per writer, where they cover nothing.
fn names(edges: &[Edge], layout: &Layout, fonts: &Fonts) -> Group {
    const SIZE: f32 = 9.5;
    let overlaps = |a: &(Point, f32), b: &(Point, f32)| {
        (a.0.y - b.0.y).abs() < SIZE + 3.0 && (a.0.x - b.0.x).abs() < (a.1 + b.1) / 2.0 + 6.0
    };
    let mut taken: Vec<(Point, f32)> = Vec::new();
    let mut said: Vec<(usize, &str)> = Vec::new();
    let mut shapes = Vec::new();
    for (edge, route) in edges.iter().zip(&layout.routes) {
        let Some(file) = edge.files.first() else {
            continue;
        };
        if said.contains(&(edge.from, file)) {
            continue;
        }
        let more = edge.files.len() - 1;
        let text = if more == 0 {
            file.clone()
        } else {
            format!("{file} +{more}")
        };
        let text = fonts.fit(&text, SPACING.column_gap - 26.0, SIZE, Weight::Regular);
        let width = fonts.width(&text, SIZE, Weight::Regular);
        let Some(&(start, end)) = route.first() else {
            continue;
        };
        // A line that turns back has no gap of its own to write in.
        if end.x <= start.x {
            continue;
        }
        let free = [0.5, 0.36, 0.64].into_iter().find_map(|share| {
            let at = along(start, end, share);
            let place = (
                Point {
                    x: (start.x + end.x) / 2.0,
                    y: at.y - 3.0,
                },
                width,
            );
            (!taken.iter().any(|other| overlaps(other, &place))).then_some(place)
        });
        let Some(place) = free else { continue };
        taken.push(place);
        said.push((edge.from, file));
        shapes.push(Shape::Text {
            at: place.0,
            anchor: Anchor::Middle,
            size: SIZE,
            weight: Weight::Regular,
            color: FAINT,
            halo: true,
            text,
        });
    }
    Group {
        tooltip: None,
        shapes,
    }
}

/// The control points that make a curve leave and arrive level.
pub(super) fn controls(start: Point, end: Point) -> (Point, Point) {
    let reach = ((end.x - start.x) * 0.5).abs().max(20.0);
    (
        Point {
            x: start.x + reach,
            y: start.y,
        },
        Point {
            x: end.x - reach,
            y: end.y,
        },
    )
}

/// The height of that curve at a share of its way.
fn along(start: Point, end: Point, share: f32) -> Point {
    let (a, b) = controls(start, end);
    let mix = |p0: f32, p1: f32, p2: f32, p3: f32| {
        let rest = 1.0 - share;
        rest.powi(3) * p0
            + 3.0 * rest * rest * share * p1
            + 3.0 * rest * share * share * p2
            + share.powi(3) * p3
    };
    Point {
        x: mix(start.x, a.x, b.x, end.x),
        y: mix(start.y, a.y, b.y, end.y),
    }
}

fn legend(run: &Run, critical: bool, height: f32, fonts: &Fonts) -> Group {
    let y = height - MARGIN - 2.0;
    let mut x = MARGIN;
    let mut shapes = Vec::new();
    let mut entry = |swatch: Shape, swatch_width: f32, words: &str| {
        shapes.push(swatch);
        shapes.push(text(
            x + swatch_width + 7.0,
            y,
            words.into(),
            11.5,
            Weight::Regular,
            INK,
        ));
        x += swatch_width + 7.0 + fonts.width(words, 11.5, Weight::Regular) + 22.0;
        x
    };
    let mut next = MARGIN;
    let mut tools: Vec<&str> = run.rows.iter().map(|row| known_tool(&row.tool)).collect();
    tools.sort_by_key(|tool| TOOL_COLORS.iter().position(|(name, _)| name == tool));
    tools.dedup();
    for tool in tools {
        let at = Point {
            x: next,
            y: y - 10.0,
        };
        next = entry(
            rect(at, 12.0, 12.0, 3.0, Some(tool_color(tool)), None),
            12.0,
            tool,
        );
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
        let at = Point {
            x: next,
            y: y - 10.0,
        };
        next = entry(
            rect(at, 18.0, 12.0, 3.0, Some(paper), Some(stroke)),
            18.0,
            words,
        );
    }
    if critical {
        let stroke = Stroke {
            color: CRITICAL,
            width: 2.0,
            dashed: false,
        };
        let (start, end) = (
            Point {
                x: next,
                y: y - 4.0,
            },
            Point {
                x: next + 22.0,
                y: y - 4.0,
            },
        );
        entry(
            Shape::Route {
                pairs: vec![(start, end)],
                stroke,
            },
            22.0,
            "decided how long it took",
        );
    }
    Group {
        tooltip: None,
        shapes,
    }
}

fn known_tool(tool: &str) -> &'static str {
    TOOL_COLORS
        .iter()
        .map(|(name, _)| *name)
        .find(|name| *name == tool)
        .unwrap_or("other")
}

/// The colour as a tint, for the paper under text of that colour.
fn pale(Color(r, g, b): Color) -> Color {
    let tint = |part: u8| 255 - (255 - part) / 8;
    Color(tint(r), tint(g), tint(b))
}

fn seconds(time: Duration) -> String {
    format_seconds(time)
}

fn rect(
    at: Point,
    width: f32,
    height: f32,
    radius: f32,
    fill: Option<Color>,
    stroke: Option<Stroke>,
) -> Shape {
    Shape::Rect {
        at,
        width,
        height,
        radius,
        fill,
        stroke,
    }
}

fn text(x: f32, y: f32, text: String, size: f32, weight: Weight, color: Color) -> Shape {
    styled(Point { x, y }, Anchor::Start, text, size, weight, color)
}

fn centred(x: f32, y: f32, text: String, size: f32, weight: Weight, color: Color) -> Shape {
    styled(Point { x, y }, Anchor::Middle, text, size, weight, color)
}

fn styled(
    at: Point,
    anchor: Anchor,
    text: String,
    size: f32,
    weight: Weight,
    color: Color,
) -> Shape {
    Shape::Text {
        at,
        anchor,
        size,
        weight,
        color,
        halo: false,
        text,
    }
}
