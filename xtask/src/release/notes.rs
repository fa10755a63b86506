//! Writes `NOTES.md`, the text for a release's page: the changes, and the files with their checksums.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Writes `NOTES.md` into `folder`, from the changelog's section and the checksums in that folder.
pub fn write(folder: &Path, version: &str, date: &str, section: &str) -> Result<()> {
    let sums = folder.join("SHA256SUMS");
    let sums =
        fs::read_to_string(&sums).with_context(|| format!("failed to read {}", sums.display()))?;
    let to = folder.join("NOTES.md");
    fs::write(&to, text(version, date, section, &sums))
        .with_context(|| format!("failed to write {}", to.display()))
}

fn text(version: &str, date: &str, section: &str, sums: &str) -> String {
    let mut text = format!("# warpcc {version}, {date}\n\n{section}\n\n## Files\n\n");
    text += "Checked with `sha256sum --check SHA256SUMS`. If there is a SHA256SUMS.sig, it was made by `ssh-keygen -Y sign -n \
             warpcc-release`, and `ssh-keygen -Y verify` says by whom.\n\n| file | SHA-256 |\n|---|---|\n";
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").unwrap_or((line, ""));
        text += &format!("| {name} | `{sum}` |\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_a_row() {
        let text = text(
            "1.2.3",
            "2026-01-02",
            "- a change",
            "ab12  a.whl\ncd34  b.deb\n",
        );
        assert!(
            text.starts_with("# warpcc 1.2.3, 2026-01-02\n\n- a change\n"),
            "{text}"
        );
        assert!(
            text.ends_with("| a.whl | `ab12` |\n| b.deb | `cd34` |\n"),
            "{text}"
        );
    }
}
