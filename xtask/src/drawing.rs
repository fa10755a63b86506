//! What the pictures have in common: fonts and colours, and how they begin.

/// The width of a chart of measurements.
pub const WIDTH: f64 = 760.0;

/// What warpcc took, on a light page and on a dark one.
pub const OURS: [&str; 2] = ["#2da44e", "#3fb950"];

/// Lines and areas that are there for comparison, on a light page. The dark one differs: an area there needs less contrast than a
/// line.
pub const PALE: &str = "#d0d7de";

/// A chart of measurements as far as its heading. `light` and `dark` are the rules for what only this chart has, as CSS.
pub fn begin(height: f64, title: &str, heading: &str, rules: [&str; 2]) -> String {
    let mut svg = open(WIDTH, height, title, rules);
    svg += &format!(
        "<text class=\"title\" x=\"16\" y=\"30\">{}</text>\n",
        escape(heading)
    );
    svg
}

/// A picture without anything in it.
pub fn open(width: f64, height: f64, title: &str, [light, dark]: [&str; 2]) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
         <title>{title}</title>\n\
         <style>text{{font:13px system-ui,sans-serif;fill:#1f2328}}\
         .title{{font-size:17px;font-weight:600}}.quiet{{fill:#656d76;font-size:12px}}{light}\
         @media(prefers-color-scheme:dark){{text{{fill:#e6edf3}}.quiet{{fill:#8d96a0}}{dark}}}</style>\n",
        title = escape(title),
    )
}

/// A text as a chart holds it.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
