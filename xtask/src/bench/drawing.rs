//! What the charts of measurements have in common: their width, fonts and colours, and how they begin.

pub const WIDTH: f64 = 760.0;

/// What warpcc took, on a light page and on a dark one.
pub const OURS: [&str; 2] = ["#2da44e", "#3fb950"];

/// Lines and areas that are there for comparison, on a light page. The dark one differs: an area there needs less contrast than a
/// line.
pub const PALE: &str = "#d0d7de";

/// A chart as far as its heading. `light` and `dark` are the rules for what only this chart has, as CSS.
pub fn begin(height: f64, title: &str, heading: &str, [light, dark]: [&str; 2]) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
         <title>{title}</title>\n\
         <style>text{{font:13px system-ui,sans-serif;fill:#1f2328}}\
         .title{{font-size:17px;font-weight:600}}.quiet{{fill:#656d76;font-size:12px}}{light}\
         @media(prefers-color-scheme:dark){{text{{fill:#e6edf3}}.quiet{{fill:#8d96a0}}{dark}}}</style>\n\
         <text class=\"title\" x=\"16\" y=\"30\">{heading}</text>\n",
        title = escape(title),
        heading = escape(heading),
    )
}

/// A text as a chart holds it.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
