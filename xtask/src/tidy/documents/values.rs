//! Checks that pages name values of settings, counters and reasons that exist: `log = "stderr"`, `WARPCC_BASE_DIR=auto`,
//! `remote.wrong_bytes`, and the first column of a table of reasons.
//!
//! A value exists if a program has it as a whole string, outside its tests. Whether the setting accepts it, a test of warpcc
//! decides with the program's own parser (`crates/warpcc/src/config/documents.rs`).

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::markdown::Page;
use crate::tidy::rules;

/// The page with a table row for each setting.
const SETTINGS: &str = "docs/configuration.md";

/// What counters are named after: the part of their names before the dot.
const COUNTED: [&str; 4] = ["base_dir", "kernels", "remote", "remote_server"];

/// The strings of all programs, and the names of all settings.
pub struct Values<'a> {
    /// Rust files and scripts of `crates`, without their tests.
    programs: Vec<&'a str>,
    /// Their strings without spaces.
    strings: BTreeSet<&'a str>,
    /// The settings' names in the file: `base_dir`.
    settings: BTreeSet<&'a str>,
}

impl<'a> Values<'a> {
    pub fn of(files: &'a BTreeMap<String, String>) -> Self {
        let is_program = |path: &str| {
            path.starts_with("crates/")
                && (rules::is_rust(path) || path.ends_with(".py"))
                && !rules::is_test_path(path)
        };
        let programs: Vec<&str> = (files.iter())
            .filter(|(path, _)| is_program(path))
            .map(|(_, text)| before_tests(text))
            .collect();
        let strings: BTreeSet<&str> = programs.iter().flat_map(|text| strings(text)).collect();
        let page = files.get(SETTINGS).map_or("", String::as_str);
        let settings = page.lines().filter_map(first_code).collect();
        Self {
            programs,
            strings,
            settings,
        }
    }

    /// Complaints about the page, each with its line.
    pub fn complaints(&self, path: &str, page: &Page, text: &str) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        let mut demand = |line: usize, value: &str, what: &str| {
            found.push((
                line,
                format!("no program has the {what} `{value}`: name what there is"),
            ));
        };
        for code in page.code.iter().chain(&page.shell).chain(&page.settings) {
            for value in self.values(&code.what) {
                if !self.strings.contains(value) {
                    demand(code.line, value, "value");
                }
            }
            if !self.has_counter(&code.what) {
                demand(code.line, &code.what, "counter");
            }
        }
        for (line, row) in text.lines().enumerate() {
            if path == SETTINGS && first_code(row).is_some_and(is_name) {
                for value in codes(row).skip(1).filter(|code| is_value(code)) {
                    if !self.strings.contains(value) {
                        demand(line + 1, value, "value");
                    }
                }
            }
        }
        for (line, reason) in reasons(text) {
            if !self.has_text(reason) {
                demand(line, reason, "reason");
            }
        }
        found
    }

    /// The values that settings get in a piece of code: `base_dir = ["auto"]`, `WARPCC_LOG=stderr make`.
    fn values<'c>(&self, code: &'c str) -> Vec<&'c str> {
        let (name, value) = match code.split_once('=') {
            Some((name, value)) => (name.trim(), value),
            None => return Vec::new(),
        };
        let name = name.rsplit(' ').next().unwrap_or_default();
        let value = match name.starts_with("WARPCC_") {
            true => value.split(' ').next().unwrap_or_default(),
            false if self.settings.contains(name) => value,
            false => return Vec::new(),
        };
        let words = value.split(|c: char| c.is_whitespace() || "[]\",".contains(c));
        words
            .filter(|word| is_value(word) && !["true", "false"].contains(word))
            .collect()
    }

    /// Whether the code is no counter of ours, or one that is counted.
    fn has_counter(&self, code: &str) -> bool {
        let Some((before, name)) = code.split_once('.') else {
            return true;
        };
        !is_name(name) || !COUNTED.contains(&before) || self.strings.contains(code) || {
            let is_made = |string: &&str| {
                string
                    .strip_prefix(before)
                    .is_some_and(|rest| rest.starts_with(".{"))
            };
            self.strings.iter().any(is_made) && self.strings.contains(name)
        }
    }

    /// Whether a program has the text. Words in capitals, and what is cut short with `…`, stand for anything.
    fn has_text(&self, text: &str) -> bool {
        let is_any = |word: &&str| {
            word.contains('…') || (word.len() > 1 && word.bytes().all(|b| b.is_ascii_uppercase()))
        };
        let mut parts = vec![String::new()];
        for word in text.split(' ') {
            match (is_any(&word), parts.last_mut()) {
                (false, Some(part)) if part.is_empty() => part.push_str(word),
                (false, Some(part)) => {
                    part.push(' ');
                    part.push_str(word);
                }
                _ => parts.push(String::new()),
            }
        }
        let has = |part: &String| {
            self.programs
                .iter()
                .any(|text| text.contains(part.as_str()))
        };
        parts.iter().all(has)
    }
}

fn before_tests(text: &str) -> &str {
    text.find("\n#[cfg(test)]").map_or(text, |at| &text[..at])
}

/// The strings in a program's text that are one word.
fn strings(text: &str) -> impl Iterator<Item = &str> {
    let of_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_+-.{}".contains(c);
    text.lines().flat_map(move |line| {
        let pieces = line.split('"');
        pieces.filter(move |piece| !piece.is_empty() && piece.chars().all(of_word))
    })
}

fn is_name(text: &str) -> bool {
    text.len() > 1 && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}

fn is_value(text: &str) -> bool {
    let of_value = |b: u8| b.is_ascii_lowercase() || b"_+-".contains(&b);
    text.len() > 1
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(of_value)
}

/// The code in a line.
fn codes(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The code that a table's row begins with.
fn first_code(row: &str) -> Option<&str> {
    row.strip_prefix("| `")?.split('`').next()
}

/// The reasons in the first columns of tables whose first heading is `reason`, each with its line.
fn reasons(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_inside = false;
    for (number, line) in text.lines().enumerate() {
        match line.strip_prefix("| ") {
            Some(row) => {
                is_inside |= row.starts_with("reason |");
                let first = row.split(" |").next().unwrap_or_default();
                if is_inside {
                    found.extend(codes(first).map(|code| (number + 1, code)));
                }
            }
            None if line.starts_with("|--") => {}
            None => is_inside = false,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS_PAGE: &str =
        "| `log` | `WARPCC_LOG` | `stderr` or a file |\n| `base_dir` | | `auto` |\n";
    const PROGRAM: &str = "match word { \"stderr\" | \"auto\" => {} }\ncount(\"remote.hits\"); \
                           count(&format!(\"remote.{name}\", \"misses\")); let why = \"a date macro\"; \
                           format!(\"{file} changed while it was in use\")\n#[cfg(test)]\nlet old = \"stdout\";\n";

    fn complaints(path: &str, page: &str) -> Vec<usize> {
        let files = [(SETTINGS, SETTINGS_PAGE), ("crates/a/src/b.rs", PROGRAM)];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
        let files = files.into();
        let found = Values::of(&files).complaints(path, &Page::parse(page), page);
        found.into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn what_no_program_has_is_found() {
        for right in [
            "`log = \"stderr\"` `log = \"/a/file\"` `WARPCC_LOG=stderr make` `mode = \"fast\"`\n",
            "`remote.hits` `remote.misses` `build.ninja`\n",
            "```toml\nbase_dir = [\"~/src\", \"auto\"]\n```\n",
            "```sh\nWARPCC_BASE_DIR=auto make\n```\n",
            "| reason | meaning |\n|---|---|\n| `a date macro`, `FILE changed while it was in use` | |\n",
            "| option | |\n|---|---|\n| `a moon macro` | |\n",
        ] {
            assert_eq!(complaints("docs/a.md", right), [0; 0], "{right}");
        }
        for (wrong, line) in [
            ("`log = \"stdout\"`\n", 1),
            ("`WARPCC_BASE_DIR=always`\n", 1),
            ("`remote.wrongs`\n", 1),
            ("```toml\nbase_dir = [\"auto\", \"never\"]\n```\n", 2),
            ("```sh\nWARPCC_LOG=stdout make\n```\n", 2),
            (
                "| reason | meaning |\n|---|---|\n| `a date macro` | |\n| `a moon macro` | `x` |\n",
                4,
            ),
        ] {
            assert_eq!(complaints("docs/a.md", wrong), [line], "{wrong}");
        }
        assert_eq!(complaints(SETTINGS, SETTINGS_PAGE), [0; 0]);
        let stale = SETTINGS_PAGE.replace("stderr", "stdout");
        assert_eq!(complaints(SETTINGS, &stale), [1]);
    }
}
