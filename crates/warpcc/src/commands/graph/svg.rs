//! The drawing of a run as SVG: scales, and shows commands and files when pointed at.

use std::fmt::Write as _;
use std::io::{self, Write};

use warpcc_markup::escape;

use super::draw::draw;
use super::font::Weight;
use super::layout::Point;
use super::lines::controls;
use super::scene::{ARROW, Anchor, BACKGROUND, Color, Group, Scene, Shape, Stroke};
use crate::commands::timeline::Run;

/// Write the drawing.
pub fn write_svg(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let scene = draw(run);
    let Scene {
        width,
        height,
        ref groups,
    } = scene;
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" font-family="'DejaVu Sans', Verdana, 'Segoe UI', sans-serif">"#
    )?;
    writeln!(
        out,
        r#"<rect width="100%" height="100%" fill="{}"/>"#,
        hex(BACKGROUND)
    )?;
    for group in groups {
        write_group(group, out)?;
    }
    writeln!(out, "</svg>")
}

fn write_group(group: &Group, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<g>")?;
    if let Some(tooltip) = &group.tooltip {
        writeln!(out, "<title>{}</title>", escape(tooltip))?;
    }
    for shape in &group.shapes {
        write_shape(shape, out)?;
    }
    writeln!(out, "</g>")
}

fn write_shape(shape: &Shape, out: &mut dyn Write) -> io::Result<()> {
    match shape {
        Shape::Rect {
            at,
            width,
            height,
            radius,
            fill,
            stroke,
        } => writeln!(
            out,
            r#"<rect x="{:.1}" y="{:.1}" width="{width:.1}" height="{height:.1}" rx="{radius:.1}" fill="{}"{}/>"#,
            at.x,
            at.y,
            fill.map_or_else(|| "none".to_owned(), hex),
            stroke.map(stroked).unwrap_or_default()
        ),
        Shape::Route { pairs, stroke } => {
            writeln!(
                out,
                r#"<path d="{}" fill="none"{}/>"#,
                route(pairs),
                stroked(*stroke)
            )
        }
        Shape::Arrow { tip, color } => writeln!(
            out,
            r#"<path d="M{:.1} {:.1}l-{} -{}v{}z" fill="{}"/>"#,
            tip.x,
            tip.y,
            ARROW.0,
            ARROW.1,
            ARROW.1 * 2.0,
            hex(*color)
        ),
        Shape::Text {
            at,
            anchor,
            size,
            weight,
            color,
            halo,
            text,
        } => {
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => r#" text-anchor="middle""#,
                Anchor::End => r#" text-anchor="end""#,
            };
            let weight = if *weight == Weight::Bold {
                r#" font-weight="bold""#
            } else {
                ""
            };
            let halo = if *halo {
                format!(
                    r#" stroke="{}" stroke-width="3" stroke-linejoin="round" paint-order="stroke""#,
                    hex(BACKGROUND)
                )
            } else {
                String::new()
            };
            writeln!(
                out,
                r#"<text x="{:.1}" y="{:.1}" font-size="{size}" fill="{}"{anchor}{weight}{halo}>{}</text>"#,
                at.x,
                at.y,
                hex(*color),
                escape(text)
            )
        }
    }
}

fn route(pairs: &[(Point, Point)]) -> String {
    let mut path = String::new();
    for (at, (start, end)) in pairs.iter().enumerate() {
        let (a, b) = controls(*start, *end);
        let to = if at == 0 { 'M' } else { 'L' };
        // Writing to a `String` does not fail.
        let _ = write!(
            path,
            "{to}{:.1} {:.1}C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
            start.x, start.y, a.x, a.y, b.x, b.y, end.x, end.y
        );
    }
    path
}

fn stroked(
    Stroke {
        color,
        width,
        dashed,
    }: Stroke,
) -> String {
    let dash = if dashed {
        r#" stroke-dasharray="4 3""#
    } else {
        ""
    };
    format!(r#" stroke="{}" stroke-width="{width}"{dash}"#, hex(color))
}

fn hex(Color(r, g, b): Color) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}
