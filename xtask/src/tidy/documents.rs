//! Checks that everything that pages name exists: pages, headings, files, variables, commands, options, tasks, names of a
//! program's parts, and values of settings.
//!
//! Knows no page by name but docs/README.md, which leads to all others, docs/cli.md, which the
//! program wrote, and docs/configuration.md, which has every variable.

mod identifiers;
mod tasks;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use super::commands::DocumentedCommands;
use super::complaint::Complaint;
use super::markdown::Page;
use super::rules;

use identifiers::Words;
use tasks::Tasks;
use values::Values;

const MAP: &str = "docs/README.md";
const COMMANDS: &str = "docs/cli.md";
const SETTINGS: &str = "docs/configuration.md";
/// It may name what there was.
const CHANGES: &str = "CHANGELOG.md";
const PREFIX: &str = "WARPCC_";

/// A complaint and the file it is about.
type Located = (String, Complaint);

/// Everything that is committed, as far as pages can name it.
pub struct Repository<'a> {
    /// Paths with their texts; an empty text for a file that is no text.
    files: &'a BTreeMap<String, String>,
    folders: BTreeSet<&'a str>,
    pages: BTreeMap<&'a str, Page>,
    /// Names with our prefix anywhere but in pages.
    names: BTreeSet<&'a str>,
    commands: DocumentedCommands,
    words: Words<'a>,
    tasks: Tasks<'a>,
    values: Values<'a>,
}

impl<'a> Repository<'a> {
    pub fn new(files: &'a BTreeMap<String, String>) -> Self {
        let mut folders = BTreeSet::new();
        for path in files.keys() {
            folders.extend(path.match_indices('/').map(|(at, _)| &path[..at]));
        }
        let is_page = |path: &str| path.ends_with(".md");
        let pages = (files.iter())
            .filter(|(path, _)| is_page(path))
            .map(|(path, text)| (path.as_str(), Page::parse(text)));
        let names = (files.iter())
            .filter(|(path, _)| !is_page(path))
            .flat_map(|(_, text)| text.lines().flat_map(prefixed).map(|(name, _)| name));
        let commands = files
            .get(COMMANDS)
            .map(|page| DocumentedCommands::parse(page));
        Self {
            files,
            folders,
            pages: pages.collect(),
            names: names.collect(),
            commands: commands.unwrap_or_default(),
            words: Words::of(files),
            tasks: Tasks::of(files),
            values: Values::of(files),
        }
    }

    pub fn complaints(&self) -> Vec<Located> {
        let mut found = Vec::new();
        if self.commands.is_empty() {
            let message = "write it with `cargo xtask docs`: options in pages are looked up here";
            found.push((COMMANDS.to_owned(), Complaint::whole(message)));
        }
        for (path, page) in &self.pages {
            let mut say =
                |line, message| found.push(((*path).to_owned(), Complaint::at(line, message)));
            for link in &page.links {
                if let Some(message) = self.wrong_link(path, &link.what) {
                    say(link.line, message);
                }
            }
            for code in &page.code {
                if let Some(message) = self.wrong_path(&code.what) {
                    say(code.line, message);
                }
            }
            for command in page.shell.iter().chain(&page.code) {
                for message in self.commands.complaints(&command.what) {
                    say(command.line, message);
                }
                for message in self.tasks.complaints(&command.what) {
                    say(command.line, message);
                }
            }
            if !identifiers::is_exempt(path) {
                for (line, message) in self.words.complaints(page) {
                    say(line, message);
                }
            }
            let text = self.files.get(*path).map_or("", String::as_str);
            if *path != CHANGES {
                for (line, message) in self.values.complaints(path, page, text) {
                    say(line, message);
                }
            }
            for (number, line) in text.lines().enumerate() {
                for (name, end) in prefixed(line) {
                    if !self.is_name(name, end) {
                        say(
                            number + 1,
                            format!("no source has `{name}`: name what there is"),
                        );
                    }
                }
            }
        }
        found.extend(self.unexplained_variables());
        found.extend(self.unreachable_pages());
        found.extend(self.pages_that_programs_name());
        found
    }

    /// Complaints about pages that comments and messages name, and that do not exist.
    fn pages_that_programs_name(&self) -> Vec<Located> {
        let mut found = Vec::new();
        for (path, text) in self.files {
            if self.pages.contains_key(path.as_str()) || rules::is_test_path(path) {
                continue;
            }
            let tests = rules::first_test_line(text);
            for (number, line) in text.lines().enumerate().take_while(|(n, _)| n + 1 < tests) {
                for page in named_pages(line).filter(|page| !self.files.contains_key(*page)) {
                    let message = format!("there is no `{page}`: name a page that is committed");
                    found.push((path.clone(), Complaint::at(number + 1, message)));
                }
            }
        }
        found
    }

    /// `PREFIX_…` and `PREFIX_*` stand for all names with this prefix.
    fn is_name(&self, name: &str, end: Option<char>) -> bool {
        if name.ends_with('_') || matches!(end, Some('…' | '*')) {
            return self.names.iter().any(|known| known.starts_with(name));
        }
        self.names.contains(name)
    }

    fn wrong_link(&self, page: &str, target: &str) -> Option<String> {
        if target.contains("://") || target.starts_with("mailto:") {
            return None;
        }
        let (place, anchor) = match target.split_once('#') {
            Some((place, anchor)) => (place, Some(anchor)),
            None => (target, None),
        };
        let path = if place.is_empty() {
            page.to_owned()
        } else {
            joined(page, place)
        };
        if !self.exists(&path) {
            return Some(format!("the link `{target}` leads to no committed file"));
        }
        let anchor = anchor?;
        let known = self.pages.get(path.as_str());
        if known.is_some_and(|page| page.anchors.iter().any(|known| known == anchor)) {
            return None;
        }
        Some(format!("{path} has no heading for `#{anchor}`"))
    }

    /// Code that looks like a path of this repository: it begins with a folder of ours, or a
    /// crate's name and `src` or `tests`, or it is a Rust file.
    fn wrong_path(&self, code: &str) -> Option<String> {
        let path = code.trim_end_matches('/');
        let is_path = |b: u8| b.is_ascii_alphanumeric() || b"_-./*".contains(&b);
        if path.is_empty() || path.starts_with(['/', '*']) || !path.bytes().all(is_path) {
            return None;
        }
        let mut parts = path.split('/');
        let (first, second) = (parts.next().unwrap_or_default(), parts.next());
        let is_rust = rules::is_rust(path) && !path.starts_with('.');
        let found = if second.is_some() && self.folders.contains(first) {
            self.matches(path)
        } else if self.folders.contains(&*format!("crates/{first}"))
            && matches!(second, Some("src" | "tests"))
        {
            self.matches(&format!("crates/{path}"))
        } else if is_rust {
            let end = format!("/{path}");
            self.files.keys().any(|known| known.ends_with(&end))
        } else {
            return None;
        };
        (!found)
            .then(|| format!("`{code}` is no committed file: name it from the repository's root"))
    }

    fn exists(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.folders.contains(path) || path.is_empty()
    }

    /// Whether a file has this path. `*` or a word in capitals stands for any name: `cases/NAME.cu`.
    fn matches(&self, path: &str) -> bool {
        let fits = |known: &str| {
            known.split('/').count() == path.split('/').count()
                && (known.split('/').zip(path.split('/'))).all(|(known, part)| fits(known, part))
        };
        self.exists(path)
            || self.files.keys().any(|known| fits(known))
            || self.folders.iter().any(|known| fits(known))
    }

    /// Complaints about variables that the program reads, and that the page of settings does not have.
    fn unexplained_variables(&self) -> Vec<Located> {
        let settings = self.files.get(SETTINGS).map_or("", String::as_str);
        let explained: BTreeSet<&str> = settings
            .lines()
            .flat_map(prefixed)
            .map(|(name, _)| name)
            .collect();
        let mut found = Vec::new();
        for (path, text) in self.files {
            if !(rules::is_rust(path) || path.ends_with(".py")) || rules::is_test_path(path) {
                continue;
            }
            let tests = rules::first_test_line(text);
            for (number, line) in text.lines().enumerate().take_while(|(n, _)| n + 1 < tests) {
                for name in read_here(line).filter(|name| !explained.contains(name)) {
                    let message = format!("say in {SETTINGS} what `{name}` means");
                    found.push((path.clone(), Complaint::at(number + 1, message)));
                }
            }
        }
        found
    }

    /// Complaints about pages below docs that the map does not link to.
    fn unreachable_pages(&self) -> Vec<Located> {
        let links = self.pages.get(MAP).map_or(&[][..], |page| &page.links);
        let reached: BTreeSet<String> = (links.iter())
            .map(|link| joined(MAP, link.what.split('#').next().unwrap_or_default()))
            .collect();
        (self.pages.keys())
            .filter(|path| path.starts_with("docs/") && **path != MAP && !reached.contains(**path))
            .map(|path| {
                let message = format!("link the page in {MAP}, so that somebody finds it");
                ((*path).to_owned(), Complaint::whole(message))
            })
            .collect()
    }
}

/// `docs/….md` in a line.
fn named_pages(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("docs/").filter_map(|(at, _)| {
        let rest = &line[at..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "/_-.".contains(c)));
        let page = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
        page.ends_with(".md").then_some(page)
    })
}

/// A path that is relative to a page's folder.
fn joined(page: &str, place: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in place.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Whether a name matches a part of a pattern: the name itself, `*`, or capitals that stand for any name.
fn fits(known: &str, part: &str) -> bool {
    let (stem, ending) = match part.split_once('.') {
        Some((stem, ending)) => (stem, Some(ending)),
        None => (part, None),
    };
    let any = stem == "*" || (!stem.is_empty() && stem.bytes().all(|b| b.is_ascii_uppercase()));
    part == known
        || any
            && match ending {
                None => true,
                Some(ending) => known.ends_with(&format!(".{ending}")),
            }
}

/// Names with our prefix in a line, each with the character after it.
fn prefixed(line: &str) -> impl Iterator<Item = (&str, Option<char>)> {
    let of_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    line.match_indices(PREFIX).filter_map(move |(at, _)| {
        // `-DNAME`, as a compiler takes it, is a name, too.
        let before = line[..at].strip_suffix("-D").unwrap_or(&line[..at]);
        if before.ends_with(of_name) {
            return None;
        }
        let end = line[at..]
            .find(|c| !of_name(c))
            .map_or(line.len(), |n| at + n);
        Some((&line[at..end], line[end..].chars().next()))
    })
}

/// Names that are a whole string of this line of a program, comments and bare prefixes aside.
fn read_here(line: &str) -> impl Iterator<Item = &str> {
    let code = !line.trim_start().starts_with("//");
    line.match_indices("\"WARPCC_")
        .filter(move |_| code)
        .filter_map(|(at, _)| {
            let inside = &line[at + 1..];
            let name = inside.split('"').next()?;
            let whole = name
                .bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
            (whole && !name.ends_with('_')).then_some(name)
        })
}

#[cfg(test)]
mod tests;
