//! Checks that tasks of `cargo xtask` and packages in commands exist.

use std::collections::{BTreeMap, BTreeSet};

const MAIN: &str = "xtask/src/main.rs";

/// What a command of cargo may name.
pub struct Tasks<'a> {
    /// `audit-ptx`; empty without xtask's main file.
    tasks: BTreeSet<String>,
    /// Words of xtask's sources; an option's name is one of them.
    words: BTreeSet<&'a str>,
    packages: BTreeSet<&'a str>,
}

impl<'a> Tasks<'a> {
    pub fn of(files: &'a BTreeMap<String, String>) -> Self {
        let main = files.get(MAIN).map_or("", String::as_str);
        let variants = main
            .lines()
            .skip_while(|line| !line.starts_with("enum Task"))
            .take_while(|line| *line != "}")
            .filter_map(|line| line.strip_prefix("    "))
            .filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
        let name = |line: &'a str| line.split(|c: char| !c.is_ascii_alphanumeric()).next();
        let sources = files
            .iter()
            .filter(|(path, _)| path.starts_with("xtask/src/"));
        let words = sources
            .flat_map(|(_, text)| text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')));
        let manifests = files
            .iter()
            .filter(|(path, _)| path.ends_with("Cargo.toml"));
        let packages = manifests
            .flat_map(|(_, text)| text.lines())
            .filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        Self {
            tasks: variants.filter_map(name).map(kebab).collect(),
            words: words.collect(),
            packages: packages.collect(),
        }
    }

    /// Complaints about this command, or line of a shell.
    pub fn complaints(&self, line: &str) -> Vec<String> {
        let line = line.split(" #").next().unwrap_or_default();
        let mut found = Vec::new();
        for part in line
            .split(['|', ';', '(', ')'])
            .flat_map(|part| part.split("&&"))
        {
            let words: Vec<&str> = part.split_whitespace().collect();
            let Some(cargo) = words.iter().position(|word| *word == "cargo") else {
                continue;
            };
            let words = words[cargo + 1..].split(|word| *word == "--");
            let words: &[&str] = words.into_iter().next().unwrap_or_default();
            match words {
                ["xtask", task, options @ ..] => found.extend(self.wrong_task(task, options)),
                ["install", ..] => {}
                _ => found.extend(self.wrong_package(words)),
            }
        }
        found
    }

    fn wrong_task(&self, task: &str, options: &[&str]) -> Option<String> {
        let is_name = task.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
        if is_name && !self.tasks.contains(task) {
            return Some(format!("`cargo xtask {task}` is no task of {MAIN}"));
        }
        let mut names = options.iter().filter_map(|word| word.strip_prefix("--"));
        let is_unknown = |name: &&str| {
            let name = name.split(['=', ']']).next().unwrap_or_default();
            !self.words.contains(name.replace('-', "_").as_str())
        };
        let unknown = names.find(is_unknown)?;
        Some(format!("`cargo xtask {task}` has no option `--{unknown}`"))
    }

    fn wrong_package(&self, words: &[&str]) -> Option<String> {
        let mut pairs = words.windows(2);
        let named = pairs.find_map(|pair| match pair {
            ["-p" | "--package", package] => Some(*package),
            _ => None,
        })?;
        let is_name = named.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
        (is_name && !self.packages.contains(named))
            .then(|| format!("there is no package `{named}` in this workspace"))
    }
}

/// `AuditPtx` is `audit-ptx`.
fn kebab(name: &str) -> String {
    let mut all = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !all.is_empty() {
            all.push('-');
        }
        all.push(c.to_ascii_lowercase());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_options_and_packages_are_looked_up() {
        let files = [
            (
                MAIN,
                "enum Task {\n    /// Prints\n    AuditPtx(a::Options),\n    Tidy,\n}\n",
            ),
            ("xtask/src/a.rs", "    keep_going: bool,\n"),
            (
                "crates/plan/Cargo.toml",
                "[package]\nname = \"warpcc-plan\"\n",
            ),
        ];
        let files = files
            .map(|(path, text)| (path.to_owned(), text.to_owned()))
            .into();
        let tasks = Tasks::of(&files);
        for right in [
            "cargo xtask audit-ptx --keep-going 3 -- --any",
            "A=1 cargo xtask tidy && cargo build -p warpcc-plan",
            "cargo xtask NAME",
            "cargo install -p other",
            "cargo build --nosuch",
        ] {
            assert_eq!(tasks.complaints(right), Vec::<String>::new(), "{right}");
        }
        for (wrong, what) in [
            ("cargo xtask audit", "cargo xtask audit"),
            ("cargo xtask tidy --keep", "--keep"),
            ("x; cargo test --package plan", "`plan`"),
        ] {
            let found = tasks.complaints(wrong);
            assert!(
                found.len() == 1 && found[0].contains(what),
                "{wrong}: {found:?}"
            );
        }
    }
}
