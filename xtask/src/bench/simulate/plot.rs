//! Draws wall time over workers, both on logarithmic scales, a line for each place, with what limits at its end.

use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 56.0;

const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#1f2328}.title{font-size:16px;font-weight:600}\
.quiet{fill:#656d76}.grid{stroke:#d0d7de;stroke-width:1}polyline{fill:none;stroke-width:2}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.quiet{fill:#8d96a0}.grid{stroke:#30363d}}";

const COLOURS: [&str; 3] = ["#2da44e", "#0969da", "#bf8700"];

/// A name, the wall time without workers, and for numbers of workers the wall time and what limits it.
type Curve<'a> = (&'a str, f64, Vec<(f64, f64, String)>);

/// The chart.
pub fn draw(files: usize, curves: &[Curve<'_>]) -> String {
    let points = || curves.iter().flat_map(|(_, _, points)| points);
    let ends = |values: &dyn Fn() -> Vec<f64>| {
        let all = values();
        let low = all.iter().copied().fold(f64::INFINITY, f64::min);
        (low.ln(), all.iter().copied().fold(0.0, f64::max).ln())
    };
    let (first, last) = ends(&|| points().map(|point| point.0).collect());
    let (low, high) = ends(&|| points().map(|point| point.1).collect());
    let (low, high) = (low - 0.25, high + 0.15);
    let x = |workers: f64| LEFT + (workers.ln() - first) / (last - first) * (WIDTH - LEFT - RIGHT);
    let y = |wall: f64| TOP + (high - wall.ln()) / (high - low) * (HEIGHT - TOP - BOTTOM);
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n\
         <title>Simulated wall time of a cold build, by workers</title>\n<style>{STYLE}</style>\n\
         <text class=\"title\" x=\"16\" y=\"26\">Simulated: {files} files for seven architectures, cold</text>\n\
         <text class=\"quiet\" x=\"16\" y=\"46\">seconds on the clock, by workers; both scales logarithmic</text>\n"
    );
    let mut tick = 1.0_f64;
    while tick < 1e6 {
        for tick in [tick, 2.0 * tick, 5.0 * tick] {
            if (low..high).contains(&tick.ln()) {
                let at = y(tick);
                let _ = writeln!(
                    svg,
                    "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                     <text class=\"quiet\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{tick} s</text>",
                    WIDTH - RIGHT,
                    LEFT - 8.0,
                    at + 4.0
                );
            }
        }
        tick *= 10.0;
    }
    if let Some((_, _, points)) = curves.first() {
        for (workers, _, _) in points {
            let _ = writeln!(
                svg,
                "<text class=\"quiet\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{workers}</text>",
                x(*workers),
                HEIGHT - BOTTOM + 20.0
            );
        }
    }
    for ((name, alone, points), colour) in curves.iter().zip(COLOURS) {
        let line: Vec<String> = points
            .iter()
            .map(|(workers, wall, _)| format!("{:.1},{:.1}", x(*workers), y(*wall)))
            .collect();
        let _ = writeln!(
            svg,
            "<polyline stroke=\"{colour}\" points=\"{}\"/>",
            line.join(" ")
        );
        let Some((workers, wall, limit)) = points.last() else {
            continue;
        };
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" style=\"fill:{colour}\">{name} \
             (alone {alone:.0} s): {wall:.0} s, limited by {limit}</text>",
            x(*workers),
            y(*wall) - 8.0
        );
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_workers_are_to_the_right_and_less_time_is_below() {
        let points = vec![(2.0, 100.0, "a".to_owned()), (2000.0, 10.0, "b".to_owned())];
        let svg = draw(3, &[("here", 200.0, points)]);
        let line = svg
            .split("points=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        let numbers: Vec<f64> = line
            .expect("a line")
            .split([' ', ','])
            .map(|number| number.parse().expect("a number"))
            .collect();
        assert!(
            numbers[0] < numbers[2] && numbers[1] < numbers[3],
            "{numbers:?}"
        );
        assert!(
            svg.contains("10 s, limited by b") && !svg.contains("NaN"),
            "{svg}"
        );
    }
}
