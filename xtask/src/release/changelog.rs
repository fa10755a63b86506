//! The changelog: what is not released yet, and the page with that under a version.

use anyhow::{Context, Result, bail};

const UNRELEASED: &str = "## [Unreleased]\n";

/// The text under the heading `[Unreleased]`.
pub fn unreleased(text: &str) -> Result<&str> {
    let (_, after) = text
        .split_once(UNRELEASED)
        .context("the changelog has no section [Unreleased]")?;
    let section = after.split("\n## ").next().unwrap_or(after).trim();
    if section.is_empty() {
        bail!("the changelog has nothing under [Unreleased]");
    }
    Ok(section)
}

/// The page with that section under `version`, and an empty one before it.
pub fn released(text: &str, version: &str, date: &str) -> Result<String> {
    if text.contains(&format!("\n## [{version}]")) {
        bail!("the changelog has a section for {version} already: Cargo.toml needs a new version");
    }
    let heading = format!("{UNRELEASED}\n## [{version}] - {date}\n");
    Ok(text.replacen(UNRELEASED, &heading, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "# Changelog\n\n## [Unreleased]\n\n### A\n\n- new\n\n## [0.1.0] - 2026-01-01\n\n- old\n";

    #[test]
    fn section_goes_under_its_version() -> Result<()> {
        assert_eq!(unreleased(PAGE)?, "### A\n\n- new");
        let page = released(PAGE, "0.2.0", "2026-02-03")?;
        assert!(
            page.contains(
                "## [Unreleased]\n\n## [0.2.0] - 2026-02-03\n\n### A\n\n- new\n\n## [0.1.0]"
            ),
            "{page}"
        );
        assert!(
            unreleased(&page).is_err(),
            "nothing is left for the next one"
        );
        Ok(())
    }

    #[test]
    fn version_is_released_once() {
        assert!(released(PAGE, "0.1.0", "2026-02-03").is_err());
        assert!(unreleased("# Changelog\n").is_err());
    }
}
