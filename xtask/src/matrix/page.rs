//! Writes docs/compatibility.md from the results of the rows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};

use super::rows::MatrixRow;
use super::{hosts, toolkits};
use crate::repo;

const HEAD: &str = include_str!("../../matrix/head.txt");
const FOOT: &str = include_str!("../../matrix/foot.txt");

/// Writes the page.
pub fn write(rows: &[MatrixRow]) -> Result<()> {
    let path = repo::root().join("docs/compatibility.md");
    fs::write(&path, text(rows)?).with_context(|| path.display().to_string())?;
    println!("wrote {}", path.display());
    Ok(())
}

fn text(rows: &[MatrixRow]) -> Result<String> {
    let mut page = HEAD.to_owned();
    let rows = in_order(rows);
    page += "\n## What was tried\n\n";
    page += "| toolkit | host compiler | cases | calls | identical | hits | nvcc fails | bypassed | different | date, commit |\n";
    page += "|---|---|---|---|---|---|---|---|---|---|\n";
    for row in &rows {
        let left: u64 = row.bypassed.values().sum();
        let (toolkit, host) = (&row.toolkit, &row.host);
        let when = format!("{}, {}", row.date, row.commit);
        if row.refused {
            writeln!(
                page,
                "| {toolkit} | {host} | | | | | | | nvcc refuses it | {when} |"
            )?;
            continue;
        }
        writeln!(
            page,
            "| {toolkit} | {host} | {} | {} | {} | {} | {} | {left} | {} | {when} |",
            row.cases,
            row.calls,
            row.identical,
            row.hits,
            row.failing,
            row.differences.len(),
        )?;
    }
    bypassed(&mut page, &rows)?;
    different(&mut page, &rows)?;
    versions(&mut page, &rows)?;
    page += FOOT;
    Ok(page)
}

/// The rows in the order of the tables of toolkits and compilers.
fn in_order(rows: &[MatrixRow]) -> Vec<&MatrixRow> {
    let toolkit = |row: &MatrixRow| {
        let at = toolkits::ALL.iter().position(|t| t.version == row.toolkit);
        at.unwrap_or(usize::MAX)
    };
    let host = |row: &MatrixRow| {
        hosts::ALL
            .iter()
            .position(|h| h.name == row.host)
            .unwrap_or(usize::MAX)
    };
    let mut all: Vec<&MatrixRow> = rows.iter().collect();
    all.sort_by_key(|row| (toolkit(row), host(row)));
    all
}

fn bypassed(page: &mut String, rows: &[&MatrixRow]) -> Result<()> {
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for (reason, count) in rows.iter().flat_map(|row| &row.bypassed) {
        *reasons.entry(reason).or_default() += count;
    }
    if reasons.is_empty() {
        return Ok(());
    }
    *page += "\n## Why calls were bypassed\n\nOf all rows together. [Modes and flags](modes.md) says which calls these are.\n\n";
    *page += "| reason | calls |\n|---|---|\n";
    for (reason, count) in reasons {
        writeln!(page, "| {} | {count} |", cell(reason))?;
    }
    Ok(())
}

fn different(page: &mut String, rows: &[&MatrixRow]) -> Result<()> {
    let mut causes: BTreeMap<(&str, String), BTreeSet<String>> = BTreeMap::new();
    for row in rows {
        for difference in &row.differences {
            let names = difference.what.iter().map(|line| {
                let end = line.find(" (").or_else(|| line.find(": nvcc `"));
                &line[..end.unwrap_or(line.len())]
            });
            let what = names.collect::<BTreeSet<_>>();
            let what = what.into_iter().collect::<Vec<_>>().join("; ");
            let row = format!("{} {}", row.toolkit, row.host);
            causes
                .entry((&difference.case, what))
                .or_default()
                .insert(row);
        }
    }
    *page += "\n## What differed\n\n";
    if causes.is_empty() {
        *page += "Nothing.\n";
        return Ok(());
    }
    *page += "| case | what | rows |\n|---|---|---|\n";
    for ((case, what), rows) in causes {
        let rows = rows.into_iter().collect::<Vec<_>>().join(", ");
        writeln!(page, "| {case} | {} | {rows} |", cell(&what))?;
    }
    Ok(())
}

fn versions(page: &mut String, rows: &[&MatrixRow]) -> Result<()> {
    let toolkits: BTreeSet<&str> = rows.iter().map(|row| row.release.as_str()).collect();
    let compilers: BTreeMap<&str, &str> = rows
        .iter()
        .map(|row| (row.host.as_str(), row.host_version.as_str()))
        .collect();
    *page += "\n## Versions\n\n";
    writeln!(
        page,
        "{}.\n",
        toolkits.into_iter().collect::<Vec<_>>().join(", ")
    )?;
    *page += "| host compiler | says of itself |\n|---|---|\n";
    for (name, version) in compilers {
        writeln!(page, "| {name} | {} |", cell(version))?;
    }
    Ok(())
}

/// A text in a table: in one line, and not too long.
fn cell(text: &str) -> String {
    const LONGEST: usize = 240;
    let line = text.replace('|', "\\|").replace(['\n', '\r'], " ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Difference;
    use super::*;

    #[test]
    fn a_page_has_a_line_for_each_row_and_each_cause() -> Result<()> {
        let difference = Difference {
            case: "mode ptx".to_owned(),
            call: "call -ptx a.cu".to_owned(),
            what: vec!["stderr: nvcc `a|b`, warpcc ``".to_owned()],
        };
        let row = |toolkit: &str, host: &str| MatrixRow {
            toolkit: toolkit.to_owned(),
            host: host.to_owned(),
            differences: vec![difference.clone()],
            bypassed: [("-E".to_owned(), 2)].into(),
            ..MatrixRow::default()
        };
        let page = text(&[row("13.5", "g++-12"), row("11.8", "g++-11")])?;
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}:\n{page}"));
        assert!(at("| 11.8 | g++-11 |") < at("| 13.5 | g++-12 |"));
        at("| mode ptx | stderr | 11.8 g++-11, 13.5 g++-12 |");
        at("| -E | 4 |");
        Ok(())
    }
}
