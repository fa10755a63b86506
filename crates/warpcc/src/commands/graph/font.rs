//! The typeface that is part of the program: widths of text, and outlines of letters.
//!
//! A build machine often has no fonts, so two weights of DejaVu Sans, reduced to
//! Latin letters, are part of the program (fonts/LICENSE).

use ttf_parser::{Face, GlyphId, OutlineBuilder};

static REGULAR: &[u8] = include_bytes!("fonts/DejaVuSans.ttf");
static BOLD: &[u8] = include_bytes!("fonts/DejaVuSans-Bold.ttf");

/// How heavy text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    Regular,
    Bold,
}

/// Both weights, ready to measure with.
pub(super) struct Fonts {
    regular: Face<'static>,
    bold: Face<'static>,
}

impl Fonts {
    pub(super) fn load() -> Self {
        let parse = |bytes| Face::parse(bytes, 0).expect("BUG: the built-in font is damaged");
        Self {
            regular: parse(REGULAR),
            bold: parse(BOLD),
        }
    }

    fn face(&self, weight: Weight) -> &Face<'static> {
        match weight {
            Weight::Regular => &self.regular,
            Weight::Bold => &self.bold,
        }
    }

    /// How wide `text` is at this size.
    pub(super) fn width(&self, text: &str, size: f32, weight: Weight) -> f32 {
        let face = self.face(weight);
        text.chars().map(|letter| advance(face, letter, size)).sum()
    }

    /// `text`, with its middle left out if it is wider than `room`.
    ///
    /// The middle is left out because the names of temporary files differ at their end.
    pub(super) fn fit(&self, text: &str, room: f32, size: f32, weight: Weight) -> String {
        if self.width(text, size, weight) <= room {
            return text.to_owned();
        }
        let letters: Vec<char> = text.chars().collect();
        for kept in (1..letters.len()).rev() {
            let head: String = letters[..kept * 2 / 5].iter().collect();
            let tail: String = letters[letters.len() - (kept - kept * 2 / 5)..]
                .iter()
                .collect();
            let shorter = format!("{head}…{tail}");
            if self.width(&shorter, size, weight) <= room {
                return shorter;
            }
        }
        "…".to_owned()
    }

    /// Draw the outlines of `text`, whose baseline begins at `x`, `y`.
    pub(super) fn outline(&self, text: &str, style: Style, pen: &mut dyn Pen) {
        let face = self.face(style.weight);
        let scale = style.size / f32::from(face.units_per_em());
        let mut x = style.x;
        for letter in text.chars() {
            let mut placed = PlacedPen {
                pen: &mut *pen,
                x,
                y: style.y,
                scale,
            };
            // A letter without an outline is a space.
            let _ = face.outline_glyph(glyph(face, letter), &mut placed);
            x += advance(face, letter, style.size);
        }
    }
}

/// Where and how a text is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub(super) x: f32,
    pub(super) y: f32,
    pub(super) size: f32,
    pub(super) weight: Weight,
}

/// Draws outlines, at positions in the drawing's coordinates.
pub(super) trait Pen {
    fn move_to(&mut self, x: f32, y: f32);
    fn line_to(&mut self, x: f32, y: f32);
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32);
    fn cubic_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32);
    fn close(&mut self);
}

/// Converts a font's units, which count upwards, to the drawing's.
struct PlacedPen<'a> {
    pen: &'a mut dyn Pen,
    x: f32,
    y: f32,
    scale: f32,
}

impl PlacedPen<'_> {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl OutlineBuilder for PlacedPen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.pen.move_to(x, y);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.pen.line_to(x, y);
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.pen.quad_to(x1, y1, x, y);
    }
    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.pen.cubic_to(x1, y1, x2, y2, x, y);
    }
    fn close(&mut self) {
        self.pen.close();
    }
}

/// The glyph of a letter. Glyph 0 is the box for a letter that the font does not have.
fn glyph(face: &Face<'_>, letter: char) -> GlyphId {
    face.glyph_index(letter).unwrap_or(GlyphId(0))
}

fn advance(face: &Face<'_>, letter: char, size: f32) -> f32 {
    let units = face.glyph_hor_advance(glyph(face, letter)).unwrap_or(0);
    f32::from(units) * size / f32::from(face.units_per_em())
}
