//! Draw a report as horizontal bars: wall time, with CPU time as a thinner bar beneath.
//!
//! The scale is linear and starts at zero, so that lengths can be compared. A value that is too
//! short to see is written next to its bar.

use std::fmt::Write;

use serde_json::Value;

use crate::drawing::{self, OURS, PALE, WIDTH, escape};

const LEFT: f64 = 210.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 84.0;
const ROW: f64 = 44.0;

fn style() -> [String; 2] {
    let [ours, ours_dark] = OURS;
    [
        format!(".wall{{fill:#8b949e}}.ours{{fill:{ours}}}.cpu{{fill:{PALE}}}"),
        format!(".wall{{fill:#6e7681}}.ours{{fill:{ours_dark}}}.cpu{{fill:#30363d}}"),
    ]
}

/// One contender's row.
struct Bar<'a> {
    name: &'a str,
    ours: bool,
    wall: f64,
    cpu: f64,
    ratio: f64,
}

/// The chart of a report; `None` when the report has no results.
pub fn draw(report: &Value) -> Option<String> {
    let bars: Vec<_> = report
        .get("results")?
        .as_array()?
        .iter()
        .filter_map(bar)
        .collect();
    let longest = bars
        .iter()
        .flat_map(|bar| [bar.wall, bar.cpu])
        .reduce(f64::max)?;
    let scale = (WIDTH - LEFT - RIGHT) / longest.max(f64::MIN_POSITIVE);
    let height = TOP + ROW * bars.len() as f64 + 34.0;

    let title = title(report);
    let [light, dark] = style();
    let mut svg = drawing::begin(height, &title, &title, [&light, &dark]);
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        "<text class=\"quiet\" x=\"16\" y=\"52\">{}</text>",
        escape(&subtitle(report)),
    );
    for (index, bar) in bars.iter().enumerate() {
        let y = TOP + ROW * index as f64;
        let kind = if bar.ours { "ours" } else { "wall" };
        let (wall, cpu) = (bar.wall * scale, bar.cpu * scale);
        let beside = LEFT + wall.max(cpu) + 8.0;
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n\
             <rect class=\"{kind}\" x=\"{LEFT}\" y=\"{y}\" width=\"{:.1}\" height=\"18\" rx=\"2\"/>\n\
             <rect class=\"cpu\" x=\"{LEFT}\" y=\"{}\" width=\"{:.1}\" height=\"7\" rx=\"2\"/>\n\
             <text x=\"{beside:.1}\" y=\"{}\">{}</text>\n",
            LEFT - 10.0,
            y + 14.0,
            escape(bar.name),
            wall.max(1.0),
            y + 20.0,
            cpu.max(1.0),
            y + 14.0,
            escape(&label(bar)),
        );
    }
    let _ = write!(
        svg,
        "<text class=\"quiet\" x=\"{LEFT}\" y=\"{}\">thick: seconds on the clock; thin: seconds of \
         CPU; medians of {} runs</text>\n</svg>\n",
        height - 12.0,
        report.get("runs").and_then(Value::as_u64).unwrap_or(0),
    );
    Some(svg)
}

fn bar(result: &Value) -> Option<Bar<'_>> {
    let number = |key: &str| result.get(key).and_then(Value::as_f64);
    Some(Bar {
        name: result.get("what")?.as_str()?,
        ours: result.get("name")?.as_str()?.starts_with("warpcc"),
        wall: number("wall_s")?,
        cpu: number("cpu_s")?,
        ratio: number("times_as_fast_as_nvcc")?,
    })
}

fn label(bar: &Bar) -> String {
    let seconds = match bar.wall {
        s if s < 0.1 => format!("{:.1} ms", s * 1000.0),
        s if s < 10.0 => format!("{s:.2} s"),
        s => format!("{s:.1} s"),
    };
    match bar.ratio {
        r if bar.name == "nvcc" || !r.is_finite() => seconds,
        r if r >= 20.0 => format!("{seconds}  ({r:.0}×)"),
        r => format!("{seconds}  ({r:.2}×)"),
    }
}

fn title(report: &Value) -> String {
    let archs = report.get("architectures").and_then(Value::as_array);
    let archs = archs.into_iter().flatten().filter_map(Value::as_str);
    let archs: Vec<_> = archs.map(|arch| format!("sm_{arch}")).collect();
    let name = report
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    format!("One file ({name}) for {}", archs.join(", "))
}

fn subtitle(report: &Value) -> String {
    let text = |pointer: &str| report.pointer(pointer).and_then(Value::as_str);
    let count = |pointer: &str| report.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let parts = [
        text("/toolkit").map(str::to_owned),
        Some(format!("{} headers", count("/headers"))),
        Some(format!("{} cores", count("/machine/cores"))),
        text("/machine/cpu").map(str::to_owned),
        text("/date").map(str::to_owned),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(name: &str, what: &str, wall: f64, ratio: f64) -> Value {
        json!({"name": name, "what": what, "wall_s": wall, "cpu_s": wall, "times_as_fast_as_nvcc": ratio})
    }

    #[test]
    fn every_result_has_its_bar() {
        let report = json!({"name": "a<b", "architectures": ["80"], "runs": 3, "results": [
            result("nvcc", "nvcc", 40.0, 1.0),
            result("warpcc-hit", "warpcc, again", 0.004, 10000.0),
        ]});
        let svg = draw(&report).expect("two results can be drawn");
        assert_eq!(svg.matches("class=\"cpu\"").count(), 2);
        assert!(
            svg.contains("40.0 s<") && svg.contains("4.0 ms  (10000×)"),
            "{svg}"
        );
        assert!(svg.contains("a&lt;b") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn nothing_measured_is_no_chart() {
        assert_eq!(draw(&json!({"results": []})), None);
        assert_eq!(draw(&json!({})), None);
    }
}
