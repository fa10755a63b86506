//! The summary of a job on GitHub Actions, in Markdown.

use std::fs::OpenOptions;
use std::io::{self, Write};

use anyhow::Context;

use super::super::output;
use super::figures::Stats;
use super::print;
use crate::config::variable;

/// Appends the summary to the file that GitHub names; prints it where there is none.
///
/// # Errors
/// The file cannot be written.
pub fn write(stats: &Stats) -> anyhow::Result<()> {
    let Some(file) = variable("GITHUB_STEP_SUMMARY").filter(|file| !file.is_empty()) else {
        output::print(|out| write_summary(stats, out))?;
        return Ok(());
    };
    let cannot = || format!("cannot write the summary to {}", file.display());
    let mut text = Vec::new();
    write_summary(stats, &mut text).with_context(cannot)?;
    let mut out = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&file)
        .with_context(cannot)?;
    out.write_all(&text).with_context(cannot)
}

/// One figure, and all the others below it, folded.
fn write_summary(stats: &Stats, out: &mut dyn Write) -> io::Result<()> {
    let headline = stats.avoided();
    let headline = headline.as_deref().unwrap_or("nothing compiled");
    writeln!(out, "### warpcc\n\n**{headline}**\n")?;
    writeln!(out, "<details><summary>warpcc stats</summary>\n\n```text")?;
    // A folder's name could end the block.
    let mut text = Vec::new();
    print::write_text(stats, &mut text)?;
    out.write_all(
        String::from_utf8_lossy(&text)
            .replace("```", "'''")
            .as_bytes(),
    )?;
    writeln!(out, "```\n\n</details>\n")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;
    use crate::commands::output::text_of;
    use crate::commands::stats::figures::Project;

    #[test]
    fn a_summary_begins_with_the_figure_and_its_block_ends_once() {
        let stats = Stats {
            counters: [("invocations.total".to_owned(), 1)].into(),
            saved: Duration::from_secs(3),
            spent: Some(Duration::from_secs(1)),
            projects: vec![Project {
                folder: PathBuf::from("/a/```/b"),
                calls: 1,
                ..Project::default()
            }],
            ..Stats::default()
        };
        let text = text_of(|out| write_summary(&stats, out));
        assert!(
            text.starts_with("### warpcc\n\n**75% of compiler time avoided: 3.00 s of 4.00 s**\n"),
            "{text}"
        );
        assert_eq!(text.matches("```").count(), 2, "{text}");
        let none = text_of(|out| write_summary(&Stats::default(), out));
        assert!(none.contains("**nothing compiled**"), "{none}");
    }
}
