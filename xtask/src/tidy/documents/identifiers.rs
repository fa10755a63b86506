//! Checks that names in pages that look like names of a program's parts are in some source: `TaskStates::advance`,
//! `early_cutoff`, `blobs-v1`, `--dry-run`, a test's name, a key of a settings file.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::markdown::Page;

/// Names that pages take from other projects.
const FOREIGN: [&str; 6] = [
    "FetchContent",
    "backward_functions",
    "compile_using_nvcc",
    "forward_functions",
    "manylinux_2_17",
    "record_stream",
];

const COMMANDS: &str = "docs/cli.md";

/// Whether a page may name what is no more, or what only a tool made: design notes, changes, and a page that a program wrote.
pub fn is_exempt(page: &str) -> bool {
    page.starts_with("docs/design/") || ["CHANGELOG.md", "docs/tutorial.md"].contains(&page)
}

/// All words of the committed files that are no pages, and of the page of commands, which the program wrote.
pub struct Words<'a>(BTreeSet<&'a str>);

impl<'a> Words<'a> {
    pub fn of(files: &'a BTreeMap<String, String>) -> Self {
        let sources = files
            .iter()
            .filter(|(path, _)| !path.ends_with(".md") || *path == COMMANDS);
        Self(sources.flat_map(|(_, text)| words(text)).collect())
    }

    /// An option is the name of a field in a program that clap reads it for.
    fn has(&self, name: &str) -> bool {
        let option = name.strip_prefix("--");
        let is_field = |option: &str| self.0.contains(option.replace('-', "_").as_str());
        self.0.contains(option.unwrap_or(name)) || option.is_some_and(is_field)
    }

    /// Complaints about the page, each with its line.
    pub fn complaints(&self, page: &Page) -> Vec<(usize, String)> {
        let named = page.code.iter().flat_map(|code| {
            let names = names_in(&code.what).into_iter();
            names.map(|name| (code.line, name))
        });
        let keys = page.keys.iter().map(|key| (key.line, key.what.as_str()));
        named
            .chain(keys)
            .filter(|(_, name)| !self.has(name) && !FOREIGN.contains(name))
            .map(|(line, name)| {
                let message = format!(
                    "no source has `{name}`: name what there is, or add it to FOREIGN if it is another project's"
                );
                (line, message)
            })
            .collect()
    }
}

/// The words of a text: identifiers, and those with hyphens (`blobs-v1`, `dry-run`).
fn words(text: &str) -> impl Iterator<Item = &str> {
    let with_hyphens = text.split(|c: char| !is_name_char(c) && c != '-');
    text.split(|c: char| !is_name_char(c))
        .chain(with_hyphens.map(|word| word.trim_matches('-')))
}

/// The names of a piece of code that are parts of a program by their form.
fn names_in(code: &str) -> Vec<&str> {
    let code = code.split(" = ").next().unwrap_or_default();
    let code = code.split('(').next().unwrap_or_default();
    // `soundness hits::touched_header`: a test's program and name.
    let path = match code.split_once(' ') {
        Some((program, path)) if program.bytes().all(is_lower_or_colon) => path,
        _ => code,
    };
    let is_path = path.contains("::") && path.chars().all(|c| is_name_char(c) || ":…".contains(c));
    if is_path {
        let parts = path.split("::");
        return parts
            .filter(|part| !part.is_empty() && !part.contains('…'))
            .collect();
    }
    let is_one = is_snake(code) || is_camel(code) || is_versioned(code) || is_option(code);
    is_one.then_some(code).into_iter().collect()
}

fn is_lower_or_colon(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte == b':'
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// `early_cutoff`: lower case, with `_` inside.
fn is_snake(name: &str) -> bool {
    let of_snake = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let has_inside = name.trim_matches('_').contains('_');
    has_inside && name.starts_with(|c: char| c.is_ascii_lowercase()) && name.bytes().all(of_snake)
}

/// `InputManifest`: at least two words.
fn is_camel(name: &str) -> bool {
    let capitals = name.bytes().filter(u8::is_ascii_uppercase).count();
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|b| b.is_ascii_alphanumeric())
        && name.bytes().any(|b| b.is_ascii_lowercase())
        && capitals > 1
        && !name
            .as_bytes()
            .windows(2)
            .any(|two| two.iter().all(u8::is_ascii_uppercase))
}

/// `--dry-run`, alone.
fn is_option(name: &str) -> bool {
    let of_option = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    name.strip_prefix("--")
        .is_some_and(|rest| rest.len() > 1 && rest.bytes().all(of_option))
}

/// `blobs-v1`.
fn is_versioned(name: &str) -> bool {
    name.split_once("-v").is_some_and(|(stem, version)| {
        !stem.is_empty()
            && stem.bytes().all(|b| b.is_ascii_lowercase())
            && !version.is_empty()
            && version.bytes().all(|b| b.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_source_has_is_found() {
        let files = [
            (
                "crates/a/src/b.rs",
                "fn look_up() {} // \"blobs-v1\"\nstruct Options { dry_run: bool, max_size: u64 }\n",
            ),
            (COMMANDS, "      --no-cache  Read nothing\n"),
        ];
        let files = files
            .map(|(path, text)| (path.to_owned(), text.to_owned()))
            .into();
        let words = Words::of(&files);
        let complaints = |page: &str| words.complaints(&Page::parse(page)).len();
        for right in [
            "`look_up` `blobs-v1` `--dry-run` `--no-cache` `manylinux_2_17`\n",
            "```toml\nmax_size = \"5G\"\n```\n",
        ] {
            assert_eq!(complaints(right), 0, "{right}");
        }
        for wrong in [
            "`look_down`\n",
            "`Options::look_down`\n",
            "`NoOptions`\n",
            "`blobs-v2`\n",
            "`--dry-ran`\n",
            "`max_siz = 5`\n",
            "```toml\na = 1\nlayers = [{ max_siz = \"5G\" }]\n```\n",
        ] {
            assert_eq!(complaints(wrong), 1, "{wrong}");
        }
    }

    #[test]
    fn only_names_of_parts_are_looked_up() {
        for (code, expected) in [
            ("TaskStates::advance", &["TaskStates", "advance"][..]),
            (
                "soundness hits::touched_header",
                &["hits", "touched_header"],
            ),
            ("callers::…::cupy", &["callers", "cupy"]),
            ("early_cutoff = true", &["early_cutoff"]),
            ("InputManifest", &["InputManifest"]),
            ("blobs-v1", &["blobs-v1"]),
            ("--dry-run", &["--dry-run"]),
            ("--", &[]),
            ("__cudaRegister", &[]),
            ("CUDA", &[]),
            ("nvcc -c x.cu", &[]),
            ("a_b.cu", &[]),
            ("Finished", &[]),
        ] {
            assert_eq!(names_in(code), expected, "{code}");
        }
    }
}
