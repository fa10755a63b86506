//! The drawing of a run as shapes, before it is SVG or pixels.
//!
//! Both forms are made from this list, so they always agree.

use super::font::Weight;
use super::layout::{Point, Spacing};

/// Red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Color(pub(super) u8, pub(super) u8, pub(super) u8);

pub(super) const PAPER: Color = Color(0xff, 0xff, 0xff);
pub(super) const INK: Color = Color(0x1f, 0x29, 0x37);
pub(super) const FAINT: Color = Color(0x6b, 0x72, 0x80);
pub(super) const RULE: Color = Color(0xd1, 0xd5, 0xdb);
pub(super) const LINE: Color = Color(0xa3, 0xad, 0xba);
pub(super) const CRITICAL: Color = Color(0xd9, 0x46, 0x1f);
pub(super) const CACHED: Color = Color(0x15, 0x80, 0x3d);
pub(super) const CACHED_PAPER: Color = Color(0xf0, 0xfd, 0xf4);
pub(super) const FAILED: Color = Color(0xb9, 0x1c, 0x1c);
pub(super) const FAILED_PAPER: Color = Color(0xfe, 0xf2, 0xf2);

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
    /// Curves from the first to the second point of each pair, and straight lines between pairs.
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
        /// Whether it is drawn with an edge in the paper's colour, so that it is readable over lines.
        halo: bool,
        text: String,
    },
}

/// Shapes that belong together, with a text for when the pointer is over them.
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
/// The size of an arrow's head: back from its tip, and to each side.
pub(super) const ARROW: (f32, f32) = (7.0, 3.6);

pub(super) const MARGIN: f32 = 28.0;
pub(super) const HEADER: f32 = 62.0;
pub(super) const LEGEND: f32 = 46.0;
pub(super) const SPACING: Spacing = Spacing {
    width: 176.0,
    height: 66.0,
    column_gap: 156.0,
    row_gap: 16.0,
};
/// A drawing is at least this wide, so that its title and legend fit.
pub(super) const MIN_WIDTH: f32 = 760.0;

/// Tools have colours of their own; any other tool has the last.
pub(super) const TOOL_COLORS: [(&str, Color); 7] = [
    ("cudafe++", Color(0x7c, 0x3a, 0xed)),
    ("cicc", Color(0x25, 0x63, 0xeb)),
    ("ptxas", Color(0x0d, 0x94, 0x88)),
    ("fatbinary", Color(0xb4, 0x53, 0x09)),
    ("nvlink", Color(0xbe, 0x18, 0x5d)),
    ("host", Color(0x47, 0x55, 0x69)),
    ("other", Color(0x65, 0x7b, 0x22)),
];

/// The colour of a tool.
pub(super) fn tool_color(tool: &str) -> Color {
    let known = TOOL_COLORS.iter().find(|(name, _)| *name == tool);
    known.unwrap_or(&TOOL_COLORS[TOOL_COLORS.len() - 1]).1
}

/// The colour as a tint, for the paper under text of that colour.
pub(super) fn pale(Color(r, g, b): Color) -> Color {
    let tint = |part: u8| 255 - (255 - part) / 8;
    Color(tint(r), tint(g), tint(b))
}

pub(super) fn rect(
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

pub(super) fn text(x: f32, y: f32, text: String, size: f32, weight: Weight, color: Color) -> Shape {
    styled(Point { x, y }, Anchor::Start, text, size, weight, color)
}

pub(super) fn centred(
    x: f32,
    y: f32,
    text: String,
    size: f32,
    weight: Weight,
    color: Color,
) -> Shape {
    styled(Point { x, y }, Anchor::Middle, text, size, weight, color)
}

pub(super) fn styled(
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
