//! Pages that the program itself writes. Knows nothing of what stands in them: the test that
//! compares them with the program writes them instead.

use anyhow::Result;

use crate::process;

/// `cargo xtask docs`: docs/cli.md, from the `--help` of every command.
pub fn main() -> Result<()> {
    let mut command = process::cargo("test");
    command
        .args(["--locked", "--workspace", "--test", "explain", "cli_page"])
        .env("WARPCC_DOCS", "write");
    process::run(&mut command)
}
