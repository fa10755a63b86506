//! A drawing of a run: its commands, and the files between them.

mod boxes;
mod dot;
mod draw;
mod font;
mod layout;
mod lines;
mod png;
mod scene;
mod svg;

pub use dot::write_dot;
pub use png::write_png;
pub use svg::write_svg;
