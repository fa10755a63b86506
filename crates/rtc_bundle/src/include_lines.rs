//! Whole names in the `#include` lines of a header.
//!
//! A compiler looks for `#include "b.cuh"` in `lib/a.cuh` next to that file first. NVRTC does not, if headers are given as
//! text: it compares whole names (13.5, tried: `"b.cuh"`, `"./b.cuh"` and `"../b.cuh"` are not found, nor with
//! `__has_include`). So a name that leads from the header's own folder to another header of the bundle becomes that
//! header's name. Lines stay where they are.

use std::collections::BTreeSet;

/// The words that a name of a file may follow.
const WORDS: [&[u8]; 4] = [b"include", b"include_next", b"__has_include", b"import"];

/// The text of the header `own`, with whole names of other headers.
pub(crate) fn with_whole_names(own: &str, text: &[u8], names: &BTreeSet<String>) -> Vec<u8> {
    let folder = own.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut made = Vec::with_capacity(text.len());
    let mut done = 0;
    let mut at = 0;
    while let Some((from, to)) = next_name(text, at) {
        at = to;
        let Ok(asked) = str::from_utf8(&text[from..to]) else {
            continue;
        };
        let is_quoted = text[from - 1] == b'"';
        if let Some(name) = whole_name(folder, asked, is_quoted, names) {
            made.extend_from_slice(&text[done..from]);
            made.extend_from_slice(name.as_bytes());
            done = to;
        }
    }
    made.extend_from_slice(&text[done..]);
    made
}

/// The header that a name means, if it is not the one of that very name.
fn whole_name(
    folder: &str,
    asked: &str,
    is_quoted: bool,
    names: &BTreeSet<String>,
) -> Option<String> {
    let beside = || resolved(&format!("{folder}/{asked}"));
    let beside = is_quoted.then(beside).flatten();
    let found = beside.filter(|name| names.contains(name));
    let found = found.or_else(|| {
        let plain = resolved(asked)?;
        (!names.contains(asked) && names.contains(&plain)).then_some(plain)
    })?;
    // A quote in a name would end it.
    let ends_it = |c: char| c == if is_quoted { '"' } else { '>' };
    (found != asked && !found.contains(ends_it)).then_some(found)
}

/// A path without `.` and `..`; `None` if it leads out.
fn resolved(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The next name of a file after `at`, without its quotes.
fn next_name(text: &[u8], mut at: usize) -> Option<(usize, usize)> {
    while at < text.len() {
        if !is_word(text[at]) {
            at += 1;
            continue;
        }
        let end = at + text[at..].iter().take_while(|byte| is_word(**byte)).count();
        let word = &text[at..end];
        if WORDS.contains(&word) && (word.starts_with(b"__") || follows_a_hash(&text[..at])) {
            let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'(');
            let open = end + text[end..].iter().take_while(is_blank).count();
            let close = match text.get(open) {
                Some(b'"') => b'"',
                Some(b'<') => b'>',
                _ => {
                    at = end;
                    continue;
                }
            };
            let name = &text[open + 1..];
            let length = name
                .iter()
                .position(|byte| *byte == close || *byte == b'\n');
            if let Some(length) = length.filter(|length| name[*length] == close) {
                return Some((open + 1, open + 1 + length));
            }
        }
        at = end;
    }
    None
}

fn follows_a_hash(before: &[u8]) -> bool {
    let mut before = before.iter().rev();
    before.find(|byte| !matches!(byte, b' ' | b'\t')) == Some(&b'#')
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(own: &str, text: &str, names: &[&str]) -> String {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let made = with_whole_names(own, text.as_bytes(), &names);
        String::from_utf8(made).expect("text")
    }

    #[test]
    fn a_name_from_the_own_folder_becomes_whole() {
        let names = ["m/a.h", "m/b.h", "m/n/c.h", "d.h", "b.h"];
        for (own, line, expected) in [
            ("m/a.h", "#include \"b.h\"", "#include \"m/b.h\""),
            (
                "m/a.h",
                " #\tinclude\t\"./b.h\" // x",
                " #\tinclude\t\"m/b.h\" // x",
            ),
            ("m/a.h", "#include \"n/c.h\"", "#include \"m/n/c.h\""),
            ("m/n/c.h", "#include \"../b.h\"", "#include \"m/b.h\""),
            ("m/n/c.h", "#include \"../../d.h\"", "#include \"d.h\""),
            (
                "m/a.h",
                "#if __has_include( \"b.h\" )",
                "#if __has_include( \"m/b.h\" )",
            ),
            ("m/a.h", "#include <m/../d.h>", "#include <d.h>"),
            // Pointed brackets do not mean the own folder.
            ("m/a.h", "#include <b.h>", "#include <b.h>"),
            ("m/a.h", "#include \"d.h\"", "#include \"d.h\""),
            ("m/a.h", "#include \"../../d.h\"", "#include \"../../d.h\""),
            ("m/a.h", "#include NAME \"b.h\"", "#include NAME \"b.h\""),
            ("m/a.h", "#include \"b.h\n\"", "#include \"b.h\n\""),
            ("m/a.h", "include \"b.h\"", "include \"b.h\""),
            ("m/a.h", "#include \"", "#include \""),
            ("m/a.h", "#include", "#include"),
        ] {
            assert_eq!(changed(own, line, &names), expected, "{own}");
        }
        let two = "#include \"b.h\"\n#include \"n/c.h\"\n\n";
        let expected = "#include \"m/b.h\"\n#include \"m/n/c.h\"\n\n";
        assert_eq!(changed("m/a.h", two, &names), expected);
        // In a folder whose name cannot stand between quotes nothing can be done.
        assert_eq!(
            changed("q\"/a.h", "#include \"b.h\"", &["q\"/a.h", "q\"/b.h"]),
            "#include \"b.h\""
        );
    }
}
