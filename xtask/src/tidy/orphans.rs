//! Checks that every Rust file is part of a program: a file that no `mod` line names is not compiled, and no other check
//! notices it.

use std::collections::BTreeMap;
use std::path::Path;

use super::complaint::Complaint;

/// Files that cargo finds by itself: by these names, or in a folder of one of those names.
const BY_NAME: &[&str] = &["main", "lib", "build"];
const BY_FOLDER: &[&str] = &["tests", "examples", "benches", "bin"];

/// Complaints about files that no other file names.
pub fn complaints(texts: &BTreeMap<String, String>) -> Vec<(String, Complaint)> {
    texts
        .keys()
        .filter(|path| path.ends_with(".rs") && !is_found_by_cargo(path))
        .filter(|path| !is_named(path, texts))
        .map(|path| {
            let message = "no `mod` line names this file, so it is not compiled: add the line, or delete the file";
            (path.clone(), Complaint::whole(message))
        })
        .collect()
}

fn is_found_by_cargo(path: &str) -> bool {
    let folder = Path::new(path).parent().and_then(Path::file_name);
    let is_one_of = |name: Option<&std::ffi::OsStr>, names: &[&str]| {
        name.is_some_and(|name| names.iter().any(|one| name == *one))
    };
    is_one_of(Path::new(path).file_stem(), BY_NAME) || is_one_of(folder, BY_FOLDER)
}

/// Whether a file of the same folder, or the folder's own, declares the module, or any file gives its name as a text:
/// `#[path]`, a path in a `Cargo.toml`, a build script.
fn is_named(path: &str, texts: &BTreeMap<String, String>) -> bool {
    let (path, ending) = match path.strip_suffix("/mod.rs") {
        Some(folder) => (folder, "/mod.rs\""),
        None => (path.trim_end_matches(".rs"), ".rs\""),
    };
    let (folder, module) = path.rsplit_once('/').unwrap_or(("", path));
    let declares = |text: &str| {
        let line = format!("mod {module};");
        let mut lines = text.lines().map(str::trim_start);
        lines.any(|one| one.ends_with(&line) && !one.starts_with("//"))
    };
    let is_near = |other: &str| {
        other
            .rsplit_once('/')
            .is_some_and(|(place, _)| place == folder)
            || other == format!("{folder}.rs")
    };
    let quoted = format!("{module}{ending}");
    // Nearly all are declared nearby, which is found much sooner than a text is searched.
    let is_declared = |(other, text): (&String, &String)| is_near(other) && declares(text);
    texts.iter().any(is_declared) || texts.values().any(|text| text.contains(&quoted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(files: &[(&str, &str)]) -> Vec<String> {
        let owned = |(path, text): &(&str, &str)| (path.to_string(), text.to_string());
        let found = complaints(&files.iter().map(owned).collect());
        found.into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn a_file_that_no_module_names_is_found() {
        let files = [
            ("crates/a/src/lib.rs", "mod one;\npub(crate) mod two;\n"),
            ("crates/a/src/one.rs", "mod deep;"),
            ("crates/a/src/one/deep.rs", ""),
            ("crates/a/src/two.rs", ""),
            ("crates/a/src/left.rs", "// mod left;"),
            ("crates/a/src/one/left.rs", ""),
            ("crates/a/tests/whole.rs", "mod support;"),
            ("crates/a/tests/support/mod.rs", ""),
            ("crates/a/tests/other/mod.rs", ""),
            (
                "crates/a/gpu/main.rs",
                "#[path = \"../shared.rs\"]\nmod shared;",
            ),
            ("crates/a/shared.rs", ""),
            ("crates/a/tests/far/mod.rs", ""),
            (
                "crates/b/tests/uses.rs",
                "#[path = \"../../a/tests/far/mod.rs\"]\nmod far;",
            ),
        ];
        let expected = [
            "crates/a/src/left.rs",
            "crates/a/src/one/left.rs",
            "crates/a/tests/other/mod.rs",
        ];
        assert_eq!(named(&files), expected);
    }
}
