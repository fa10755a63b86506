//! Renders the drawing of a run as a PNG, without any program or file from outside.

use std::io::{self, Write};

use tiny_skia::{
    FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, Stroke as Line, StrokeDash,
    Transform,
};

use super::draw::draw;
use super::font::{Fonts, Pen, Style};
use super::layout::Point;
use super::lines::controls;
use super::scene::{ARROW, Anchor, BACKGROUND, Color, Scene, Shape, Stroke};
use crate::commands::timeline::Run;

/// Two pixels per unit: sharp on today's screens.
const SCALE: f32 = 2.0;
/// A drawing larger than this is scaled down: 64 Mpixel is 256 MiB of memory.
const MAX_PIXELS: f32 = 64e6;
/// The distance of a circle's control points, as a share of its radius.
const KAPPA: f32 = 0.552_284_8;

/// Write the picture.
pub fn write_png(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let scene = draw(run);
    let png = rasterise(&scene)?.encode_png().map_err(io::Error::other)?;
    out.write_all(&png)
}

fn rasterise(scene: &Scene) -> io::Result<Pixmap> {
    let scale = SCALE.min((MAX_PIXELS / (scene.width * scene.height)).sqrt());
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounded above"
    )]
    let pixels = |length: f32| (length * scale).ceil() as u32;
    let mut pixmap = Pixmap::new(pixels(scene.width), pixels(scene.height))
        .ok_or_else(|| io::Error::other("the graph is too large for a picture: write .svg"))?;
    let Color(r, g, b) = BACKGROUND;
    pixmap.fill(tiny_skia::Color::from_rgba8(r, g, b, 255));
    let mut canvas = Canvas {
        pixmap,
        fonts: Fonts::load(),
        transform: Transform::from_scale(scale, scale),
    };
    for shape in scene.groups.iter().flat_map(|group| &group.shapes) {
        canvas.shape(shape);
    }
    Ok(canvas.pixmap)
}

struct Canvas {
    pixmap: Pixmap,
    fonts: Fonts,
    transform: Transform,
}

impl Canvas {
    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Rect {
                at,
                width,
                height,
                radius,
                fill,
                stroke,
            } => {
                let path = rounded(*at, *width, *height, *radius);
                if let Some(color) = fill {
                    self.fill(path.as_ref(), *color);
                }
                if let Some(stroke) = stroke {
                    self.stroke(path.as_ref(), *stroke);
                }
            }
            Shape::Route { pairs, stroke } => self.stroke(route(pairs).as_ref(), *stroke),
            Shape::Arrow { tip, color } => {
                let mut path = PathBuilder::new();
                path.move_to(tip.x, tip.y);
                path.line_to(tip.x - ARROW.0, tip.y - ARROW.1);
                path.line_to(tip.x - ARROW.0, tip.y + ARROW.1);
                path.close();
                self.fill(path.finish().as_ref(), *color);
            }
            Shape::Text {
                at,
                anchor,
                size,
                weight,
                color,
                halo,
                text,
            } => {
                let width = self.fonts.width(text, *size, *weight);
                let x = match anchor {
                    Anchor::Start => at.x,
                    Anchor::Middle => at.x - width / 2.0,
                    Anchor::End => at.x - width,
                };
                let mut outline = Outline(PathBuilder::new());
                let style = Style {
                    x,
                    y: at.y,
                    size: *size,
                    weight: *weight,
                };
                self.fonts.outline(text, style, &mut outline);
                let path = outline.0.finish();
                if *halo {
                    let edge = Stroke {
                        color: BACKGROUND,
                        width: 3.0,
                        dashed: false,
                    };
                    self.stroke(path.as_ref(), edge);
                }
                self.fill(path.as_ref(), *color);
            }
        }
    }

    /// Fills a path. `None` is a path without an extent, such as that of a text of spaces: there is nothing to draw.
    fn fill(&mut self, path: Option<&Path>, color: Color) {
        if let Some(path) = path {
            let rule = FillRule::Winding;
            self.pixmap
                .fill_path(path, &paint(color), rule, self.transform, None);
        }
    }

    fn stroke(&mut self, path: Option<&Path>, stroke: Stroke) {
        if let Some(path) = path {
            let line = Line {
                width: stroke.width,
                line_join: LineJoin::Round,
                dash: stroke
                    .dashed
                    .then(|| StrokeDash::new(vec![4.0, 3.0], 0.0))
                    .flatten(),
                ..Line::default()
            };
            self.pixmap
                .stroke_path(path, &paint(stroke.color), &line, self.transform, None);
        }
    }
}

fn paint(Color(r, g, b): Color) -> Paint<'static> {
    let mut paint = Paint {
        anti_alias: true,
        ..Paint::default()
    };
    paint.set_color_rgba8(r, g, b, 255);
    paint
}

fn route(pairs: &[(Point, Point)]) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (at, (start, end)) in pairs.iter().enumerate() {
        if at == 0 {
            path.move_to(start.x, start.y);
        } else {
            path.line_to(start.x, start.y);
        }
        let (a, b) = controls(*start, *end);
        path.cubic_to(a.x, a.y, b.x, b.y, end.x, end.y);
    }
    path.finish()
}

fn rounded(at: Point, width: f32, height: f32, radius: f32) -> Option<Path> {
    let rect = Rect::from_xywh(at.x, at.y, width, height)?;
    let r = radius.min(width / 2.0).min(height / 2.0);
    let k = r * (1.0 - KAPPA);
    let (left, top, right, bottom) = (rect.left(), rect.top(), rect.right(), rect.bottom());
    let mut path = PathBuilder::new();
    path.move_to(left + r, top);
    path.line_to(right - r, top);
    path.cubic_to(right - k, top, right, top + k, right, top + r);
    path.line_to(right, bottom - r);
    path.cubic_to(right, bottom - k, right - k, bottom, right - r, bottom);
    path.line_to(left + r, bottom);
    path.cubic_to(left + k, bottom, left, bottom - k, left, bottom - r);
    path.line_to(left, top + r);
    path.cubic_to(left, top + k, left + k, top, left + r, top);
    path.close();
    path.finish()
}

/// Collects letters into one path.
struct Outline(PathBuilder);

impl Pen for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.0.move_to(x, y);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        self.0.line_to(x, y);
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.0.quad_to(x1, y1, x, y);
    }
    fn cubic_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.0.cubic_to(x1, y1, x2, y2, x, y);
    }
    fn close(&mut self) {
        self.0.close();
    }
}
