//! Checks that a type's name means one thing in a crate: a reader who knows one `Row` takes the next `Row` for the same.
//!
//! Such a name is a noun: `Made` and `Seen` could be anything.
//!
//! The names of tests may repeat, and so may those of types that belong to another (`type Output` of a trait).

use std::collections::BTreeMap;

use super::complaint::Complaint;
use super::rules;

/// Names that say what was done, and not what a value is.
const PARTICIPLES: [&str; 14] = [
    "Asked", "Given", "Held", "Kept", "Known", "Left", "Looked", "Made", "Said", "Seen", "Shown",
    "Taken", "Told", "Wanted",
];

/// Complaints about names that say nothing, and about names that two types of a crate have, at the later one.
pub fn complaints(texts: &BTreeMap<String, String>) -> Vec<(String, Complaint)> {
    let mut first: BTreeMap<(&str, &str), String> = BTreeMap::new();
    let mut found = Vec::new();
    for (path, text) in texts {
        if !rules::is_rust(path) || rules::is_test_path(path) {
            continue;
        }
        let tests = rules::first_test_line(text);
        for (number, line) in rules::code_lines(text).take_while(|(number, _)| *number < tests) {
            let Some(name) = defined(line) else { continue };
            if PARTICIPLES.contains(&name) {
                let message = format!("`{name}` is no noun: name the type after what it holds");
                found.push((path.clone(), Complaint::at(number, message)));
            }
            let place = format!("{path}:{number}");
            match first.get(&(program(path), name)) {
                None => drop(first.insert((program(path), name), place)),
                Some(other) => {
                    let message = format!(
                        "`{name}` is also the name of the type in {other}: name one after what it holds"
                    );
                    found.push((path.clone(), Complaint::at(number, message)));
                }
            }
        }
    }
    found
}

/// The program or library that a file is part of: a crate's `src`, or another folder of it.
fn program(path: &str) -> &str {
    let parts = match path.starts_with("crates/") {
        true => 3,
        false => 1,
    };
    let end = path.match_indices('/').nth(parts - 1);
    &path[..end.map_or(path.len(), |(at, _)| at)]
}

/// The name of the type that a line defines.
fn defined(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let code = match code.strip_prefix("pub") {
        Some(rest) => match rest.strip_prefix('(') {
            Some(place) => place.split_once(')')?.1,
            None => rest,
        }
        .trim_start(),
        None => code,
    };
    let (kind, rest) = code.split_once(' ')?;
    let belongs_to_another = kind == "type" && line.starts_with(' ');
    if !["struct", "enum", "trait", "union", "type"].contains(&kind) || belongs_to_another {
        return None;
    }
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let name = &rest[..end.unwrap_or(rest.len())];
    name.starts_with(|c: char| c.is_ascii_uppercase())
        .then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(files: &[(&str, &str)]) -> Vec<(String, usize)> {
        let texts = files.iter();
        let texts = texts.map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        let found = complaints(&texts.collect());
        found
            .into_iter()
            .map(|(path, complaint)| (path, complaint.line))
            .collect()
    }

    #[test]
    fn a_name_is_used_once_in_a_crate() {
        let twice = [
            ("crates/a/src/b.rs", "pub struct Row {}\n"),
            ("crates/a/src/c/d.rs", "\n    pub(super) enum Row {\n"),
        ];
        assert_eq!(places(&twice), [("crates/a/src/c/d.rs".to_owned(), 2)]);
        for (path, text) in [
            ("crates/b/src/b.rs", "struct Row;\n"),
            ("crates/a/preload/b.rs", "struct Row;\n"),
            ("crates/a/tests/b.rs", "struct Row;\n"),
            (
                "crates/a/src/e.rs",
                "#[cfg(test)]\nmod tests {\n    struct Row;\n",
            ),
            ("crates/a/src/e.rs", "impl T for U {\n    type Row = u8;\n"),
            (
                "crates/a/src/e.rs",
                "// struct Row;\nstruct Rows(Row);\nlet struct_row = Row;\n",
            ),
        ] {
            assert_eq!(places(&[twice[0], (path, text)]), [], "{text}");
        }
        for text in [
            "type Row<'a> = &'a u8;\n",
            "trait Row: Copy {}\n",
            "pub union Row {\n",
        ] {
            assert_eq!(
                places(&[twice[0], ("crates/a/src/z.rs", text)]).len(),
                1,
                "{text}"
            );
        }
    }
}
