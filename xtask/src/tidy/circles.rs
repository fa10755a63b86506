//! Checks that no two files of a crate import each other, directly or through others (docs/design/layout.md).
//!
//! An import is a path that begins with `crate`, `super`, `self` or a module of the file. Re-exports (`pub use`) are no
//! imports, and neither are the paths in a file's tests.

use std::collections::{BTreeMap, BTreeSet};

use super::complaint::Complaint;
use super::rules;

/// A module whose files are the parts of one type.
const ONE_TYPE: &str = "input_manifest";

/// A module: the names that lead to it from the crate's root.
type Module = Vec<String>;

/// Complaints about imports that close a circle, each with the importing file.
pub fn complaints(texts: &BTreeMap<String, String>) -> Vec<(String, Complaint)> {
    let sources: BTreeSet<&str> = texts.keys().filter_map(|path| sources_of(path)).collect();
    let of_crate = |folder: &&str| {
        let files = texts.iter().filter_map(|(path, text)| {
            let module = module_of(path.strip_prefix(folder)?)?;
            Some((module, (path.as_str(), text.as_str())))
        });
        circles(&files.collect())
    };
    sources.iter().flat_map(of_crate).collect()
}

/// The folder of a crate's sources, with the slash at its end, that `path` lies in.
fn sources_of(path: &str) -> Option<&str> {
    let end = path.find("/src/")? + "/src/".len();
    path.ends_with(".rs").then(|| &path[..end])
}

/// The module of a file: `disk/blob.rs` is `disk::blob`, and `lib.rs` the root. `None` for tests.
fn module_of(path: &str) -> Option<Module> {
    let path = path.strip_suffix(".rs")?;
    if path.ends_with("_tests") || path.split('/').any(|part| part == "tests") {
        return None;
    }
    let parts = path.split('/').filter(|part| *part != "lib");
    Some(parts.map(str::to_owned).collect())
}

fn circles(files: &BTreeMap<Module, (&str, &str)>) -> Vec<(String, Complaint)> {
    let imports: BTreeMap<&Module, BTreeSet<Module>> = files
        .iter()
        .map(|(module, (_, text))| (module, imports_of(module, text, files)))
        .collect();
    let reaches = |from: &Module, to: &Module| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(next) = open.pop() {
            for import in imports.get(next).into_iter().flatten() {
                if import == to {
                    return true;
                }
                if seen.insert(import) {
                    open.push(import);
                }
            }
        }
        false
    };
    let mut found = Vec::new();
    for (module, imported) in &imports {
        for import in imported.iter().filter(|import| reaches(import, module)) {
            let message = format!(
                "it imports {}, which imports it, straight or through others: put what both need into a file below both",
                import.join("::")
            );
            found.push((files[*module].0.to_owned(), Complaint::whole(message)));
        }
    }
    found
}

/// The files whose items `text`, the module's, names.
fn imports_of(
    module: &Module,
    text: &str,
    files: &BTreeMap<Module, (&str, &str)>,
) -> BTreeSet<Module> {
    // The crate's root only re-exports names.
    if module.is_empty() {
        return BTreeSet::new();
    }
    let tests = rules::first_test_line(text);
    let lines = text.lines().take(tests.saturating_sub(1));
    let code: Vec<&str> = lines
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let code = code.join("\n");
    let statements = code
        .split_inclusive(';')
        .filter(|statement| !statement.trim_start().starts_with("pub use "));
    let named = statements.flat_map(paths);
    let resolved = named.filter_map(|path| resolve(module, &path, files));
    let counts = |to: &Module| !to.is_empty() && to != module && !both_in_one_type(module, to);
    resolved.filter(counts).collect()
}

fn both_in_one_type(one: &Module, other: &Module) -> bool {
    let is_part = |module: &Module| module.first().is_some_and(|first| first == ONE_TYPE);
    is_part(one) && is_part(other)
}

/// The file that a path leads to: the last module on it.
fn resolve(
    module: &Module,
    path: &[String],
    files: &BTreeMap<Module, (&str, &str)>,
) -> Option<Module> {
    let mut at = module.clone();
    let mut rest = path;
    match path.first()?.as_str() {
        "crate" => (at, rest) = (Module::new(), &path[1..]),
        "self" => rest = &path[1..],
        "super" => {
            while rest.first().is_some_and(|word| word == "super") {
                at.pop();
                rest = &rest[1..];
            }
        }
        child => {
            at.push(child.to_owned());
            if !files.contains_key(&at) {
                return None;
            }
            rest = &path[1..];
        }
    }
    while let Some(next) = rest.first() {
        at.push(next.clone());
        if !files.contains_key(&at) {
            at.pop();
            break;
        }
        rest = &rest[1..];
    }
    Some(at)
}

/// Every path of a statement, groups taken apart: `use a::{b, c::d};` has `a::b` and `a::c::d`.
fn paths(statement: &str) -> Vec<Vec<String>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut groups: Vec<Vec<String>> = Vec::new();
    let mut path: Vec<String> = Vec::new();
    let mut rest = statement;
    while let Some(first) = rest.chars().next() {
        let (token, after) = match rest.find(|c| !is_word(c)).unwrap_or(rest.len()) {
            0 if rest.starts_with("::") => rest.split_at(2),
            0 => rest.split_at(first.len_utf8()),
            end => rest.split_at(end),
        };
        let goes_on = after.starts_with("::");
        match token {
            "::" if after.starts_with('{') => {
                groups.push(std::mem::take(&mut path));
                rest = &after[1..];
                continue;
            }
            "::" => {}
            // A group within a block ends before the block does.
            "}" => drop(groups.pop()),
            "{" => groups.push(Vec::new()),
            _ if token.starts_with(is_word) => {
                if path.is_empty() {
                    path = groups.last().cloned().unwrap_or_default();
                }
                path.push(token.to_owned());
                if !goes_on {
                    found.push(std::mem::take(&mut path));
                }
            }
            _ => {}
        }
        rest = after;
    }
    found.retain(|path| path.len() > 1);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let own =
            |(path, text): &(&str, &str)| (format!("crates/engine/src/{path}"), (*text).to_owned());
        let found = complaints(&files.iter().map(own).collect());
        found.into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn a_circle_is_found_however_it_is_written() {
        for (first, second) in [
            ("use crate::b::B;", "use crate::a::A;"),
            ("use crate::{c, b::{B, D}};", "fn f() { crate::a::f(); }"),
            ("use super::b;", "fn f(a: &super::a::A) {}"),
        ] {
            let all = [
                ("lib.rs", "mod a;\nmod b;"),
                ("a.rs", first),
                ("b.rs", second),
            ];
            let expected = ["crates/engine/src/a.rs", "crates/engine/src/b.rs"];
            assert_eq!(found(&all), expected, "{first}");
        }
        let long = [
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "use crate::c::C;"),
            ("c.rs", "use crate::a::A;"),
            ("d.rs", "use crate::a::A;"),
        ];
        assert_eq!(found(&long).len(), 3);
        let folder = [("a.rs", "mod b;\nuse b::B;"), ("a/b.rs", "use super::A;")];
        assert_eq!(found(&folder).len(), 2);
    }

    #[test]
    fn reexports_and_tests_are_no_imports() {
        for (first, second) in [
            ("use crate::b::B;", "//! As crate::a::A.\nuse crate::c::C;"),
            (
                "use crate::b::B;",
                "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}",
            ),
            ("use crate::b::B;", "fn f() { other::a::f(); }"),
        ] {
            assert_eq!(
                found(&[("a.rs", first), ("b.rs", second)]),
                [""; 0],
                "{second}"
            );
        }
        let face = [
            ("a.rs", "mod b;\npub use b::{B, C};"),
            ("a/b.rs", "use super::A;"),
        ];
        assert_eq!(found(&face), [""; 0]);
        let one_type = [
            ("input_manifest.rs", "mod b;\nuse b::B;"),
            ("input_manifest/b.rs", "use super::A;"),
        ];
        assert_eq!(found(&one_type), [""; 0]);
    }
}
