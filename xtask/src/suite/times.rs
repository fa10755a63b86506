//! Summarises nextest's report of a run: the longest tests, the time of each binary, and how to run a failed test again.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::repo;

/// How many tests are named.
const LONGEST: usize = 10;

/// A test that ran.
#[derive(Debug, PartialEq)]
struct Test {
    /// nextest's name of the binary: `warpcc::soundness`.
    binary: String,
    name: String,
    seconds: f64,
    failed: bool,
}

/// The path of the report, from `.config/nextest.toml`. nextest's own folder is in the workspace, wherever cargo's is.
fn report() -> PathBuf {
    repo::root().join("target/nextest/default/junit.xml")
}

/// Removes the report of an earlier run, so that it is not taken for this one's.
pub fn forget() {
    // The report need not exist.
    _ = fs::remove_file(report());
}

/// Prints the times of the run that just ended. A run without a test leaves no report.
pub fn print() -> Result<()> {
    let path = report();
    if !path.exists() {
        return Ok(());
    }
    let text =
        fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    let tests = read(&text).with_context(|| format!("failed to read {}", path.display()))?;
    println!("{}", said(tests));
    Ok(())
}

fn read(text: &str) -> Result<Vec<Test>> {
    let document = roxmltree::Document::parse(text)?;
    let cases = document
        .descendants()
        .filter(|node| node.has_tag_name("testcase"));
    cases
        .map(|case| {
            let attribute = |name: &str| {
                let value = case.attribute(name);
                value.with_context(|| format!("a test without {name}"))
            };
            Ok(Test {
                binary: attribute("classname")?.to_owned(),
                name: attribute("name")?.to_owned(),
                seconds: attribute("time")?.parse()?,
                failed: case
                    .children()
                    .any(|child| child.has_tag_name("failure") || child.has_tag_name("error")),
            })
        })
        .collect()
}

fn said(mut tests: Vec<Test>) -> String {
    let mut binaries: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
    for test in &tests {
        let (seconds, count) = binaries.entry(&test.binary).or_default();
        *seconds += test.seconds;
        *count += 1;
    }
    let mut binaries: Vec<_> = binaries.into_iter().collect();
    binaries.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let mut lines = vec!["\nthe binaries that took most, tests at once added up".to_owned()];
    for (binary, (seconds, count)) in binaries.into_iter().take(LONGEST) {
        lines.push(format!("{seconds:>9.1} s  {binary} ({count})"));
    }
    let total: f64 = tests.iter().map(|test| test.seconds).sum();
    lines.push(format!("{total:>9.1} s  all {}", tests.len()));
    tests.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    lines.push("the longest tests".to_owned());
    for test in tests.iter().take(LONGEST) {
        let Test {
            binary,
            name,
            seconds,
            ..
        } = test;
        lines.push(format!("{seconds:>9.1} s  {binary} {name}"));
    }
    let failed: Vec<_> = tests.iter().filter(|test| test.failed).collect();
    if !failed.is_empty() {
        lines.push("the failed ones, again".to_owned());
    }
    for Test { binary, name, .. } in failed {
        lines.push(format!("  cargo xtask test --case '{binary} {name}'"));
    }
    lines.join("\n")
}

/// nextest's filter for the test that nextest prints as `BINARY NAME`.
pub fn selecting(case: &str) -> Result<String> {
    let (binary, name) = case
        .trim()
        .split_once(' ')
        .context("a case is a binary and a test, as nextest prints them: 'warpcc::soundness hits::touched_header'")?;
    Ok(format!("binary_id(={binary}) & test(={})", name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<?xml version="1.0"?>
<testsuites name="nextest-run"><testsuite name="a::one">
  <testcase name="x::quick" classname="a::one" time="0.5"></testcase>
  <testcase name="x::slow" classname="a::one" time="12.25"><failure message="no"/></testcase>
</testsuite><testsuite name="b"><testcase name="y" classname="b" time="3"/></testsuite></testsuites>"#;

    #[test]
    fn the_longest_comes_first_and_the_failed_one_is_told_how_to_run_again() {
        let text = said(read(REPORT).expect("a report"));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.contains(&"     12.8 s  a::one (2)"), "{text}");
        assert!(lines.contains(&"     15.8 s  all 3"), "{text}");
        let longest = lines.iter().position(|line| *line == "the longest tests");
        let longest = longest.expect("the longest tests");
        assert_eq!(lines[longest + 1], "     12.2 s  a::one x::slow");
        assert_eq!(lines[longest + 2], "      3.0 s  b y");
        assert_eq!(
            lines.last(),
            Some(&"  cargo xtask test --case 'a::one x::slow'")
        );
    }

    #[test]
    fn a_case_is_selected_by_both_its_names() {
        let one = selecting("a::one x::slow").expect("two names");
        assert_eq!(one, "binary_id(=a::one) & test(=x::slow)");
        assert!(selecting("x::slow").is_err());
    }
}
