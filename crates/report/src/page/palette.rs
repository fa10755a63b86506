//! The tools' colours on the page, for a light and a dark screen.
//!
//! The hues are those of the drawings that `warpcc run --graph` makes; there, boxes carry their
//! names. Here a bar may be a pixel wide, so lightness tells tools apart as well, also for
//! people who do not see all colours. A test holds that.

use std::fmt::Write as _;

/// Names as in the style sheet, with their colours.
pub(super) type Palette = [(&'static str, &'static str); 7];

/// The colours on white.
pub(super) const LIGHT: Palette = [
    ("cudafe", "#432071"),
    ("cicc", "#1273cd"),
    ("ptxas", "#43b1b4"),
    ("fatbinary", "#a95f00"),
    ("nvlink", "#690d25"),
    ("host", "#50596d"),
    ("other", "#a3a44d"),
];

/// The colours on nearly black.
pub(super) const DARK: Palette = [
    ("cudafe", "#583ed0"),
    ("cicc", "#4797e5"),
    ("ptxas", "#66d1d4"),
    ("fatbinary", "#bc6c09"),
    ("nvlink", "#a51b38"),
    ("host", "#777d86"),
    ("other", "#b4b66a"),
];

/// The palette as lines of a style sheet.
pub(super) fn variables(palette: Palette) -> String {
    let mut lines = String::new();
    for (name, color) in palette {
        // Writing to a `String` does not fail.
        let _ = write!(lines, " --tool-{name}: {color};");
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    type Light = [f64; 3];

    /// Vision without one kind of cone (Machado, Oliveira, Fernandes 2009), and normal vision.
    const EYES: [[Light; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ];

    fn linear(color: &str) -> Light {
        [1, 3, 5].map(|at| {
            let part = u8::from_str_radix(&color[at..at + 2], 16).expect("hex");
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        })
    }

    fn through(eyes: &[Light; 3], color: Light) -> Light {
        eyes.map(|row| (0..3).map(|at| row[at] * color[at]).sum::<f64>().max(0.0))
    }

    /// Oklab: equal distances look equally different.
    fn seen([r, g, b]: Light) -> Light {
        let cones = [
            0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b,
            0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b,
            0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b,
        ];
        let [l, m, s] = cones.map(f64::cbrt);
        [
            0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
            1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
            0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s,
        ]
    }

    fn distance(a: Light, b: Light) -> f64 {
        (0..3).map(|at| (a[at] - b[at]).powi(2)).sum::<f64>().sqrt()
    }

    #[test]
    fn tools_are_told_apart_by_everybody() {
        for (palette, paper) in [(LIGHT, "#ffffff"), (DARK, "#11161d")] {
            for (at, (name, color)) in palette.iter().enumerate() {
                for eyes in &EYES {
                    let look = |color: &str| seen(through(eyes, linear(color)));
                    assert!(
                        distance(look(color), look(paper)) > 0.15,
                        "{name} on its paper"
                    );
                    for (other, other_color) in &palette[at + 1..] {
                        let apart = distance(look(color), look(other_color));
                        // Between blue and violet of the drawings it is 0.004 for some people.
                        assert!(apart > 0.12, "{name} and {other}: {apart:.3}");
                    }
                }
            }
        }
    }
}
