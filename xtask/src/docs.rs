//! Writes the parts of the documentation that are generated.

mod flow;

use std::fs;

use anyhow::{Context, Result};

use crate::{process, repo};

/// `cargo xtask docs`: docs/cli.md from the `--help` of every command, and the picture of ARCHITECTURE.md from its table.
pub fn main() -> Result<()> {
    let page = fs::read_to_string(repo::root().join("ARCHITECTURE.md"))?;
    let picture = repo::root().join(flow::PICTURE);
    fs::write(&picture, flow::draw(&page)?)
        .with_context(|| format!("failed to write {}", picture.display()))?;
    // The test that compares the page with the program writes it instead.
    let mut command = process::cargo("test");
    command
        .args(["--locked", "--workspace", "--test", "explain", "cli_page"])
        .env("WARPCC_DOCS", "write");
    process::run(&mut command)
}
