//! Checks that nextest's settings name tests that exist. nextest ignores a filter that matches nothing, so a test that was
//! renamed would silently lose its priority.

use std::collections::BTreeMap;

use super::complaint::Complaint;

const SETTINGS: &str = ".config/nextest.toml";

/// Complaints about filters that match no test.
pub fn complaints(texts: &BTreeMap<String, String>) -> Vec<(String, Complaint)> {
    let Some(settings) = texts.get(SETTINGS) else {
        return Vec::new();
    };
    let lines = settings.lines().zip(1..);
    let filters = lines.flat_map(|(line, number)| {
        let names = line.split("test(").skip(1);
        names.filter_map(move |rest| Some((number, rest.split_once(')')?.0)))
    });
    filters
        // A pattern is for names that a macro makes.
        .filter(|(_, name)| !name.starts_with('/') && !is_of_a_test(name, texts))
        .map(|(number, name)| {
            let message = format!("no test or module has `{name}` in its name: was it renamed?");
            (SETTINGS.to_owned(), Complaint::at(number, message))
        })
        .collect()
}

/// Whether each part of a test's name is in the name of a function or a module.
fn is_of_a_test(name: &str, texts: &BTreeMap<String, String>) -> bool {
    let is_defined = |part: &str| {
        texts
            .iter()
            .filter(|(path, _)| path.ends_with(".rs"))
            .flat_map(|(_, text)| text.lines())
            .map(str::trim_start)
            .filter(|line| line.starts_with("fn ") || line.starts_with("mod "))
            .any(|line| line.contains(part))
    };
    name.trim_start_matches(['=', '~'])
        .split("::")
        .all(is_defined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_of_a_renamed_test_is_found() {
        let settings =
            "filter = 'binary(x) & test(loops::) + test(is_quick)'\n+ test(was_renamed)\n";
        let texts = [
            (SETTINGS, settings),
            ("a/tests/main.rs", "mod loops;\n// was_renamed\n"),
            (
                "a/tests/loops.rs",
                "    fn it_is_quick() {}\nlet was_renamed = 1;\n",
            ),
        ];
        let texts = texts.map(|(path, text)| (path.to_owned(), text.to_owned()));
        let found = complaints(&texts.into());
        let lines: Vec<usize> = found.iter().map(|(_, complaint)| complaint.line).collect();
        assert_eq!(lines, [2]);
    }
}
