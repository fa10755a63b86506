//! What warpcc tells people: pure functions from plain data to a `Write`.
//!
//! Knows nothing of the engine or the cache; the driver fills in the data. The
//! one door to standard output is [`print()`].

pub mod advice;
pub mod build;
pub mod cache;
pub mod fatbin;
mod font;
mod graph_box;
mod graph_dot;
mod graph_draw;
mod graph_layout;
mod graph_lines;
mod graph_png;
mod graph_scene;
mod graph_svg;
pub mod jit;
pub mod progress;
pub mod remote;
pub mod settings;
pub mod stats;
pub mod table;
pub mod timeline;
pub mod trace;
pub mod verbose;
pub mod why;

use std::io::{self, Write};

pub use graph_dot::write_dot;
pub use graph_png::write_png;
pub use graph_svg::write_svg;

/// Give `write` standard output, buffered.
///
/// A reader that has seen enough (`warpcc stats | head -1`) is not an error.
pub fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Whether a person is looking at standard output.
pub fn is_terminal() -> bool {
    io::IsTerminal::is_terminal(&io::stdout())
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
