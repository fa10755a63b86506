//! Checks that soak notices a missing guard: cases and histories that are right with all guards have to go wrong.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};

use super::options::{SoakOptions, Which};
use super::replay::replay_file;
use super::workers;
use crate::repo;

/// Every guard, and a case that goes wrong without it. Guards that replace each other are joined by `+`: their case is
/// right without any single one.
const ROWS: [(&str, &str); 47] = [
    ("missing-names", "header-shadowed"),
    ("second-look", "replaced-with-equal-times"),
    ("kinds", "file-looked-at"),
    ("links", "link-read"),
    ("nothing", "link-appears-where-nothing-was"),
    ("resolved", "path-resolved"),
    ("listings", "folder-listed"),
    ("executables", "program-not-executable-any-more"),
    ("permissions", "script-becomes-executable"),
    ("sizes-and-times", "newer-than-another"),
    ("kernel-texts", "text-of-the-kernel"),
    ("settled-folders", "header-behind-a-dangling-link"),
    ("trust", "mapped-in-dev-shm"),
    ("identity-at-open", "link-retargeted-during-a-call"),
    (
        "identity-at-open+changed-during",
        "file-written-during-a-call",
    ),
    (
        "files-without-end+identity-at-open+changed-during",
        "file-of-the-kernel",
    ),
    ("times-of-noted-headers", "noted-header-changed"),
    ("equal-files", "one-of-two-equal-headers-is-touched"),
    ("special-files", "pipe-read"),
    ("unseen-programs", "static-wrapper"),
    ("side-outputs", "other-file-written"),
    ("writes-in-turn", "failing-build-changes-no-older-file"),
    ("what-hits-saw", "step-that-hit-read-a-file"),
    ("conditions-of-steps", "variable-nobody-listed"),
    ("variables", "variable-nobody-listed"),
    ("variables-in-keys+variables", "language-of-a-call"),
    ("variables-in-step-keys+variables", "language-of-a-step"),
    ("whole-environment", "wrapper-reads-variable"),
    ("mentioned", "variable-mentioned"),
    ("asked-folder", "folder-asked-for"),
    ("pwd", "folder-by-another-name"),
    ("program-search", "wrapper-searches-path"),
    ("programs-in-keys+program-search", "compiler-found-earlier"),
    ("programs-of-steps", "program-found-earlier-beside-a-tool"),
    ("earlier-programs+program-search", "archiver-found-earlier"),
    ("tool-path+programs-of-steps", "toolkit-of-links"),
    ("tool-content+programs-run", "tools-replaced"),
    ("file-names", "two-names-of-one-image"),
    ("folder-in-keys", "folder-in-a-module-id"),
    ("folder-in-step-keys+asked-folder", "folder-of-lines"),
    ("scratch-folder", "folder-of-intermediate-files"),
    ("archive-before", "archive-before"),
    ("dates", "dates"),
    ("lines-asked-for", "line-asked-for"),
    ("lines-in-results", "lines-of-debug-information"),
    ("lines-in-messages", "line-of-a-warning"),
    ("looks-of-outputs", "output-has-a-mode"),
];

/// The same as [`ROWS`], for guards of outputs' names.
const OUTPUTS: [(&str, &str); 2] = [
    (
        "outputs-that-are-links+looks-of-outputs",
        "output-is-a-link",
    ),
    ("outputs-with-two-names", "output-has-two-names"),
];

/// Prints a table of guards, each with the case or history that showed that it is missing.
pub fn bite(options: &SoakOptions, warpcc: &Path) -> Result<()> {
    let mut missed = Vec::new();
    println!("| without | found by | after | what |");
    println!("|---|---|---|---|");
    let all = options.without.iter().any(|guard| guard == "all");
    let rows: Vec<&str> = match all {
        true => rows().map(|(guards, _)| guards).collect(),
        false => options.without.iter().map(String::as_str).collect(),
    };
    for guards in rows {
        let began = Instant::now();
        let found = match by_case(options, warpcc, guards)? {
            None if options.minutes > 0.0 => by_history(options, warpcc, guards)?,
            found => found,
        };
        let seconds = began.elapsed().as_secs();
        let guards = guards.replace('+', "`, `");
        match found {
            Some((by, what)) => {
                let what = what.replace('|', "\\|");
                println!("| `{guards}` | {by} | {seconds} s | {what} |");
            }
            None => {
                println!("| `{guards}` | nothing | {seconds} s | |");
                missed.push(guards);
            }
        }
    }
    if !missed.is_empty() {
        bail!("soak found no wrong result without {}", missed.join(", "));
    }
    Ok(())
}

fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    ROWS.into_iter().chain(OUTPUTS)
}

/// The first case that goes wrong, with its first difference: from `--replay`, or the guard's known case.
fn by_case(options: &SoakOptions, warpcc: &Path, guards: &str) -> Result<Option<(String, String)>> {
    let of_row = rows().filter(|(row, _)| *row == guards);
    let known = of_row.map(|(_, case)| repo::root().join(format!("xtask/soak/cases/{case}.soak")));
    let mut files = options.replay.clone();
    files.extend(known.filter(|_| options.replay.is_empty()));
    for file in &files {
        let run = |without: Option<&str>| {
            let without = without.map(|guards| guards.replace('+', ","));
            let wrong = replay_file(options, file, warpcc, without)?.wrong;
            anyhow::Ok(wrong.map(|(_, found)| found.first().cloned().unwrap_or_default()))
        };
        let Some(found) = run(Some(guards))? else {
            continue;
        };
        // A history that is also wrong with all guards says nothing about this one, nor does one that is wrong without one
        // of several.
        let mut fewer: Vec<Option<&str>> = vec![None];
        if guards.contains('+') {
            fewer.extend(guards.split('+').map(Some));
        }
        let mut is_it = true;
        for guards in fewer {
            is_it &= run(guards)?.is_none();
        }
        if is_it {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            return Ok(Some((format!("`{name}`"), found)));
        }
    }
    Ok(None)
}

/// The first random history that goes wrong, with its first difference.
fn by_history(
    options: &SoakOptions,
    warpcc: &Path,
    guards: &str,
) -> Result<Option<(String, String)>> {
    let real = options.tools == Which::Real;
    let figures = workers::search(options, warpcc, real, Some(guards))?;
    let by = |seed| format!("seed {seed}, one of {}", figures.histories);
    Ok(figures.first_wrong.map(|(seed, what)| (by(seed), what)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::super::replay::tests::{replay_case, warpcc_beside};
    use super::*;

    /// Without a row, it would not be known whether a guard works.
    #[test]
    fn every_guard_has_a_row_and_every_row_a_case() -> Result<()> {
        let mut named = BTreeSet::new();
        let mut folders = vec![repo::root().join("crates")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|e| e == "rs") {
                    let text = fs::read_to_string(&path)?;
                    let parts = text.split("is_off(\"").skip(1);
                    named.extend(parts.filter_map(|part| Some(part.split_once('"')?.0.to_owned())));
                }
            }
        }
        let of_facts = [
            "kinds",
            "links",
            "resolved",
            "listings",
            "nothing",
            "sizes-and-times",
            "kernel-texts",
            "executables",
            "permissions",
        ];
        named.extend(of_facts.map(str::to_owned));
        let known: BTreeSet<String> = rows()
            .flat_map(|(guards, _)| guards.split('+'))
            .map(str::to_owned)
            .collect();
        assert_eq!(named, known);
        for (guards, case) in rows() {
            let file = repo::root().join(format!("xtask/soak/cases/{case}.soak"));
            assert!(file.is_file(), "{guards}: {case}");
        }
        Ok(())
    }

    /// How often a case is tried before it counts as right. On a busy machine a case may be right by chance: one of the third
    /// part was, once in ten runs. Which one, and why, is not known.
    const TRIES: usize = 10;

    /// A guard that no case needs any more is one that soak no longer tries.
    fn cases_need_their_guards(part: usize) -> Result<()> {
        let warpcc = warpcc_beside()?;
        for (guards, case) in rows().skip(part).step_by(PARTS) {
            let without = |guards: &str| {
                let verdict = replay_case(case, &warpcc, Some(guards.replace('+', ",")))?;
                anyhow::Ok(verdict.wrong.is_some())
            };
            let mut is_wrong = false;
            for _ in 0..TRIES {
                is_wrong = is_wrong || without(guards)?;
            }
            assert!(is_wrong, "{case} is right without {guards}");
            for one in guards.split('+').filter(|one| *one != guards) {
                assert!(!without(one)?, "{case} is wrong without {one} alone");
            }
        }
        Ok(())
    }

    /// The number of tests that run in parallel.
    const PARTS: usize = 4;

    #[test]
    fn cases_need_their_guards_1() -> Result<()> {
        cases_need_their_guards(0)
    }

    #[test]
    fn cases_need_their_guards_2() -> Result<()> {
        cases_need_their_guards(1)
    }

    #[test]
    fn cases_need_their_guards_3() -> Result<()> {
        cases_need_their_guards(2)
    }

    #[test]
    fn cases_need_their_guards_4() -> Result<()> {
        cases_need_their_guards(3)
    }
}
