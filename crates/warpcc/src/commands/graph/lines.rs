//! The lines between commands, and the names of the files that pass along them.

use super::font::{Fonts, Weight};
use super::layout::{Layout, Point};
use super::scene::{ARROW, Anchor, CRITICAL, FAINT, Group, LINE, SPACING, Shape, Stroke};
use crate::commands::timeline::{Edge, Run};

/// A line for a dependency.
pub(super) fn line(run: &Run, edge: &Edge, route: &[(Point, Point)], critical: bool) -> Group {
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
    let name = |row: usize| run.rows[row].title();
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

/// The size of a file's name.
const SIZE: f32 = 9.5;

/// The names of the files, each once per writer, in places where they cover nothing.
pub(super) fn names(edges: &[Edge], layout: &Layout, fonts: &Fonts) -> Group {
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
        let text = fonts.fit(&text, SPACING.column_gap - 22.0, SIZE, Weight::Regular);
        let width = fonts.width(&text, SIZE, Weight::Regular);
        let Some(&(start, end)) = route.first() else {
            continue;
        };
        // A line that turns back has no gap of its own for a name.
        if end.x <= start.x {
            continue;
        }
        let fans_out = edges
            .iter()
            .filter(|other| other.from == edge.from)
            .nth(1)
            .is_some();
        let mut places = places_of_name((start, end), width, fans_out).into_iter();
        let free = places.find(|place| !taken.iter().any(|other| overlaps(other, place)));
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

/// Where the middle of a name of this width may be on a line, the best place first.
fn places_of_name((start, end): (Point, Point), width: f32, fans_out: bool) -> Vec<(Point, f32)> {
    let middle = |share| {
        let at = Point {
            x: (start.x + end.x) / 2.0,
            y: along(start, end, share).y - 4.5,
        };
        (at, width)
    };
    // A line alone begins level: its name fits there, on the side it turns from.
    let side = if end.y < start.y - 1.0 {
        SIZE + 3.0
    } else {
        -4.5
    };
    let beginning = Point {
        x: start.x + 6.0 + width / 2.0,
        y: start.y + side,
    };
    let beginning = (!fans_out).then_some((beginning, width));
    beginning
        .into_iter()
        .chain([0.5, 0.36, 0.64].map(middle))
        .collect()
}

/// The control points of a curve that leaves and arrives horizontally.
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

/// The point at a share of that curve's length.
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
