//! Checks which crate of ours imports which, from each crate's `Cargo.toml`, and that no file goes around that.
//!
//! Development dependencies are free: a test may use what the crate itself may not.

use std::path::{Component, Path, PathBuf};

use toml::{Table, Value};

use super::complaint::{Complaint, Source};
use super::rules::{code_lines, first_test_line, is_rust};

/// The crates of ours that a crate may import.
enum May {
    Only(&'static [&'static str]),
    Anything,
}

/// The table of DESIGN and ARCHITECTURE: a crate exists to forbid an import, or to be used alone.
const DIRECTION: &[(&str, May)] = &[
    ("warpcc-plan", May::Only(&[])),
    ("warpcc-path-map", May::Only(&[])),
    ("warpcc-cache", May::Only(&["warpcc-path-map"])),
    ("warpcc-fatbin", May::Only(&[])),
    ("warpcc-jit", May::Only(&["warpcc-fatbin"])),
    ("warpcc-watch", May::Only(&[])),
    ("warpcc-budget", May::Only(&[])),
    (
        "warpcc-engine",
        May::Only(&[
            "warpcc-path-map",
            "warpcc-plan",
            "warpcc-cache",
            "warpcc-watch",
            "warpcc-budget",
        ]),
    ),
    ("warpcc-markup", May::Only(&[])),
    ("warpcc-report", May::Only(&["warpcc-markup"])),
    (
        "warpcc-explain",
        May::Only(&["warpcc-plan", "warpcc-fatbin", "warpcc-markup"]),
    ),
    (
        "warpcc-remote-client",
        May::Only(&["warpcc-path-map", "warpcc-cache"]),
    ),
    (
        "warpcc-remote",
        May::Only(&["warpcc-cache", "warpcc-remote-client"]),
    ),
    (
        "warpcc-rtc",
        May::Only(&[
            "warpcc-budget",
            "warpcc-cache",
            "warpcc-fatbin",
            "warpcc-rtc-bundle",
        ]),
    ),
    ("warpcc-rtc-bundle", May::Only(&[])),
    ("warpcc-rtc-build", May::Only(&["warpcc-rtc-bundle"])),
    (
        "warpcc-rtc-embed-example",
        May::Only(&["warpcc-rtc", "warpcc-rtc-build"]),
    ),
    ("warpcc-kernels", May::Only(&["warpcc-rtc"])),
    (
        "warpcc-rtc-c",
        May::Only(&["warpcc-rtc", "warpcc-kernels", "warpcc-remote"]),
    ),
    (
        "warpcc-rtc-py",
        May::Only(&["warpcc-rtc", "warpcc-kernels", "warpcc-remote"]),
    ),
    ("warpcc-testkit", May::Only(&[])),
    (
        "warpcc",
        // Not warpcc-remote, which links the network crates.
        May::Only(&[
            "warpcc-path-map",
            "warpcc-plan",
            "warpcc-cache",
            "warpcc-watch",
            "warpcc-budget",
            "warpcc-engine",
            "warpcc-markup",
            "warpcc-report",
            "warpcc-explain",
            "warpcc-fatbin",
            "warpcc-jit",
            "warpcc-rtc",
            "warpcc-rtc-build",
            "warpcc-remote-client",
        ]),
    ),
    ("warpcc-fuzz", May::Anything),
    ("xtask", May::Only(&[])),
];

/// Checks that imports go in the table's direction.
pub fn points_down(source: &Source) -> Vec<Complaint> {
    if !(source.path == "Cargo.toml" || source.path.ends_with("/Cargo.toml")) {
        return Vec::new();
    }
    let manifest: Table = match source.text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![Complaint::whole(format!("not TOML: {error}"))],
    };
    let name = manifest
        .get("package")
        .and_then(|package| package.get("name"));
    let Some(name) = name.and_then(Value::as_str) else {
        return Vec::new(); // The workspace's own manifest.
    };
    let Some((_, may)) = DIRECTION.iter().find(|(known, _)| *known == name) else {
        return vec![Complaint::whole(format!(
            "crate {name} is new: say what it may import in DIRECTION in {}",
            file!()
        ))];
    };
    let May::Only(allowed) = may else {
        return Vec::new();
    };
    imports(&manifest)
        .into_iter()
        .filter(|import| is_ours(import) && !allowed.contains(&import.as_str()))
        .map(|import| Complaint::whole(wrong_way(name, &import, allowed)))
        .collect()
}

/// Checks that the code for a call of nvcc does not use warpcc's own commands, and can be read without them.
pub fn calls_use_no_command(source: &Source) -> Vec<Complaint> {
    let Some(file) = source.path.strip_prefix("crates/warpcc/src/") else {
        return Vec::new();
    };
    if !is_rust(file) || file.starts_with("commands") || file.starts_with("cli") {
        return Vec::new();
    }
    let tests = first_test_line(source.text);
    code_lines(source.text)
        .filter(|(number, line)| *number < tests && line.contains("commands::"))
        .map(|(number, _)| {
            Complaint::at(
                number,
                "only cli.rs uses commands: move what a call of nvcc needs out of them, into a file beside both",
            )
        })
        .collect()
}

/// Checks that a file belongs to one crate.
pub fn files_stay_in_their_crate(source: &Source) -> Vec<Complaint> {
    let home = |path: &Path| path.components().take(2).collect::<PathBuf>();
    let file = Path::new(source.path);
    if !is_rust(source.path) || !file.starts_with("crates") {
        return Vec::new();
    }
    let folder = file.parent().unwrap_or(file);
    code_lines(source.text)
        .filter_map(|(number, line)| {
            let named = line
                .trim()
                .strip_prefix("#[path = \"")?
                .strip_suffix("\"]")?;
            (home(&without_dots(&folder.join(named))) != home(file)).then_some(number)
        })
        .map(|number| {
            Complaint::at(
                number,
                "this compiles a file of another crate: tests share files through crates/testkit",
            )
        })
        .collect()
}

/// `a/../b` is `b`.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            part => plain.push(part),
        }
    }
    plain
}

fn wrong_way(name: &str, import: &str, allowed: &[&str]) -> String {
    let allowed = match allowed {
        [] => "nothing of ours".to_owned(),
        some => format!("only {}", some.join(", ")),
    };
    format!(
        "{name} may import {allowed}, not {import}: pass what it needs from above as a value, a \
         trait or a closure, or change DIRECTION in {} with its reason",
        file!()
    )
}

fn is_ours(package: &str) -> bool {
    package == "warpcc" || package == "xtask" || package.starts_with("warpcc-")
}

/// The packages that the crate or its build script links, for any target.
fn imports(manifest: &Table) -> Vec<String> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(|targets| targets.values());
    let tables = std::iter::once(manifest).chain(targets.filter_map(Value::as_table));
    tables
        .flat_map(|table| ["dependencies", "build-dependencies"].map(|key| table.get(key)))
        .flatten()
        .filter_map(Value::as_table)
        .flatten()
        .map(|(key, value)| package(key, value))
        .collect()
}

/// A dependency's package: its key, unless it was renamed.
fn package(key: &str, value: &Value) -> String {
    value
        .get("package")
        .and_then(Value::as_str)
        .unwrap_or(key)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> usize {
        points_down(&Source {
            path: "crates/x/Cargo.toml",
            bytes: text.as_bytes(),
            text,
        })
        .len()
    }

    #[test]
    fn allowed_imports_pass() {
        let engine = "package.name = 'warpcc-engine'\n[dependencies]\nserde = '1'\n\
                      warpcc-plan.workspace = true\nwarpcc-cache = { path = '../cache' }\n";
        assert_eq!(complaints(engine), 0);
        assert_eq!(
            complaints("package.name = 'warpcc'\n[dependencies]\nwarpcc-rtc = '1'\n"),
            0
        );
        assert_eq!(
            complaints("[workspace.dependencies]\nwarpcc-plan = '1'\n"),
            0
        );
    }

    #[test]
    fn an_import_upwards_is_found_wherever_it_stands() {
        for table in [
            "[dependencies]\nwarpcc-cache = '1'",
            "[build-dependencies]\nwarpcc-cache = '1'",
            "[dependencies]\nstore = { package = 'warpcc-cache', path = '../cache' }",
            "[target.'cfg(unix)'.dependencies]\nwarpcc-cache.workspace = true",
            "[dependencies.warpcc-cache]\npath = '../cache'",
        ] {
            assert_eq!(
                complaints(&format!("package.name = 'warpcc-plan'\n{table}\n")),
                1,
                "{table}"
            );
        }
    }

    #[test]
    fn tests_may_use_more() {
        assert_eq!(
            complaints("package.name = 'warpcc-plan'\n[dev-dependencies]\nwarpcc-engine = '1'\n"),
            0
        );
    }

    #[test]
    fn a_new_crate_is_asked_for_its_row() {
        assert_eq!(complaints("package.name = 'warpcc-novel'\n"), 1);
    }

    fn lines(rule: fn(&Source) -> Vec<Complaint>, path: &str, text: &str) -> Vec<usize> {
        let source = Source {
            path,
            bytes: text.as_bytes(),
            text,
        };
        rule(&source).iter().map(|found| found.line).collect()
    }

    #[test]
    fn a_call_of_nvcc_uses_no_command() {
        let text = "// commands::run\nuse crate::commands::nvcc::find_nvcc;\nlet all = subcommands;\n\
                    #[cfg(test)]\nuse crate::commands::run;\n";
        let found = |path: &str| lines(calls_use_no_command, path, text);
        assert_eq!(found("crates/warpcc/src/session.rs"), [2]);
        assert_eq!(found("crates/warpcc/src/build/plan.rs"), [2]);
        for free in [
            "crates/warpcc/src/cli.rs",
            "crates/warpcc/src/commands/why.rs",
            "crates/engine/src/run.rs",
        ] {
            assert!(found(free).is_empty(), "{free}");
        }
    }

    #[test]
    fn a_file_of_another_crate_is_found() {
        let text = "#[path = \"../space/mod.rs\"]\nmod a;\n#[path = \"../../../report/tests/b.rs\"]\nmod b;\n\
                    // #[path = \"../../../c.rs\"]\n#[path = \"../../../warpcc/tests/d.rs\"]\nmod d;\n";
        let path = "crates/warpcc/tests/explain/main.rs";
        assert_eq!(lines(files_stay_in_their_crate, path, text), [3]);
    }
}
