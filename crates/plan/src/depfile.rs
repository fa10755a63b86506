//! nvcc's "Filter Dependencies": writes the make rule, byte for byte, from the line markers of the preprocessed files.
//!
//! Seen on 13.0 and 13.5: the passes are read in the plan's order. A header counts if a marker enters it (flag 1) and its
//! name does not begin with `<`; `-MMD` leaves out system headers (flag 3). The first appearance decides the order. A space
//! gets a backslash, and no other character does. The target is written as it is.

use std::borrow::Cow;
use std::collections::HashSet;

use memchr::memmem;

/// The reason for bypassing a call: its dependency file would contain such a name.
pub const QUOTED_NAME: &str = "a quote or a backslash in a name of the dependency file";

/// The reason for bypassing a call: its preprocessed text has no line markers, for example because of gcc's `-P` in an
/// options file. nvcc has the source's name from elsewhere.
pub const NO_MARKER: &str = "a preprocessed text that does not name its source";

/// A file that a line marker names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker<'a> {
    /// The path after unescaping.
    pub path: Cow<'a, [u8]>,
    /// Flag 1: the preprocessor enters the file here.
    pub enters: bool,
    /// Flag 3: a system header.
    pub system: bool,
}

/// Calls `each` for every line marker (`# 12 "path" 1 3`) of a preprocessed text.
pub fn markers<'a>(text: &'a [u8], mut each: impl FnMut(Marker<'a>)) {
    if text.starts_with(b"# ")
        && let Some(marker) = parse_marker(text)
    {
        each(marker);
    }
    for at in memmem::find_iter(text, b"\n# ") {
        if let Some(marker) = parse_marker(&text[at + 1..]) {
            each(marker);
        }
    }
}

fn parse_marker(line: &[u8]) -> Option<Marker<'_>> {
    let rest = line.strip_prefix(b"# ")?;
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let rest = rest.get(digits..)?.strip_prefix(b" \"")?;
    if digits == 0 {
        return None;
    }
    let mut end = 0;
    let mut escaped = false;
    loop {
        match rest.get(end)? {
            b'"' => break,
            b'\n' => return None,
            b'\\' => {
                escaped = true;
                end += 2;
            }
            _ => end += 1,
        }
    }
    let raw = rest.get(..end)?;
    let path = if escaped {
        Cow::Owned(unescape(raw))
    } else {
        Cow::Borrowed(raw)
    };
    let flags = rest.get(end + 1..)?;
    let flags = &flags[..memchr::memchr(b'\n', flags).unwrap_or(flags.len())];
    let has = |flag: u8| flags.split(|b| *b == b' ').any(|f| f == [flag]);
    Some(Marker {
        path,
        enters: has(b'1'),
        system: has(b'3'),
    })
}

fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(&b) = raw.get(at) {
        at += 1;
        if b != b'\\' {
            out.push(b);
            continue;
        }
        let octal: Vec<u8> = raw
            .iter()
            .skip(at)
            .take(3)
            .copied()
            .take_while(|b| (b'0'..=b'7').contains(b))
            .collect();
        if octal.is_empty() {
            if let Some(&next) = raw.get(at) {
                out.push(next);
                at += 1;
            }
        } else {
            at += octal.len();
            out.push(
                octal
                    .iter()
                    .fold(0u8, |n, d| n.wrapping_mul(8).wrapping_add(d - b'0')),
            );
        }
    }
    out
}

/// The command line's options for the rule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    /// The text before the colon, by `-MT` or `-o`. Without it the target is the object of the source.
    pub target: Option<String>,
    /// `-odir`: nvcc writes it, and a `/`, before any target.
    pub folder: Option<String>,
    /// `-MMD`: system headers are left out.
    pub skip_system: bool,
    /// `-MP`: an empty rule for every header.
    pub phony: bool,
}

/// The dependency file for the preprocessed `texts`, in the plan's order.
///
/// # Errors
/// A name has a quote or a backslash: nvcc reads the markers of such names by rules of its own, and adds names that no file
/// has (seen on 13.5). Or a text does not begin with a marker.
pub fn rule(rule: &Rule, texts: &[&[u8]]) -> Result<Vec<u8>, &'static str> {
    let mut is_plain = true;
    let has_marker = |text: &&[u8]| parse_marker(text).is_some();
    if !texts.iter().all(has_marker) {
        return Err(NO_MARKER);
    }
    let mut source: Option<Vec<u8>> = None;
    let mut headers: Vec<Vec<u8>> = Vec::new();
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    for text in texts {
        let mut first = true;
        markers(text, |marker| {
            is_plain &= !marker.path.iter().any(|byte| matches!(byte, b'"' | b'\\'));
            if std::mem::take(&mut first) {
                let path = marker.path.into_owned();
                seen.insert(path.clone());
                source.get_or_insert(path);
                return;
            }
            let left_out = (rule.skip_system && marker.system) || is_no_file(&marker.path);
            if marker.enters && !left_out && !seen.contains(marker.path.as_ref()) {
                let path = marker.path.into_owned();
                seen.insert(path.clone());
                headers.push(path);
            }
        });
    }
    let escape = |path: &[u8]| -> Vec<u8> {
        let parts: Vec<&[u8]> = path.split(|byte| *byte == b' ').collect();
        parts.join(&b"\\ "[..])
    };
    let source = source.unwrap_or_default();
    let folder = rule.folder.iter().flat_map(|folder| [folder, "/"]);
    let mut out = folder.collect::<String>().into_bytes();
    match &rule.target {
        Some(target) => out.extend_from_slice(target.as_bytes()),
        None => out.extend(object_of(&source)),
    }
    out.extend_from_slice(b" : ");
    out.extend(escape(&source));
    for header in &headers {
        out.extend_from_slice(b" \\\n    ");
        out.extend(escape(header));
    }
    out.push(b'\n');
    if rule.phony {
        for header in &headers {
            out.push(b'\n');
            out.extend(escape(header));
            out.extend_from_slice(b":\n");
        }
    }
    is_plain.then_some(out).ok_or(QUOTED_NAME)
}

/// clang enters `<built-in>` and `<command line>`. nvcc lists no such name.
fn is_no_file(path: &[u8]) -> bool {
    path.starts_with(b"<")
}

fn object_of(source: &[u8]) -> Vec<u8> {
    let name = source.rsplit(|byte| *byte == b'/').next().unwrap_or(source);
    let stem = memchr::memrchr(b'.', name).map_or(name, |dot| &name[..dot]);
    [stem, b".o"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(rule: Result<Vec<u8>, &str>) -> String {
        String::from_utf8_lossy(&rule.expect("plain names")).into_owned()
    }

    const TEXT: &[u8] = b"# 0 \"m.cu\"\n# 0 \"<built-in>\"\n# 1 \"/usr/include/stdc-predef.h\" 1 3 4\n# 0 \"<command-line>\" 2\n# 1 \"inc/sp dir/h.h\" 1\nint x;\n# 77 \"forged.y\"\n# 1 \"inc/\\303\\251.h\" 1\n";

    #[test]
    fn the_rule_as_nvcc_writes_it() {
        let md = rule(
            &Rule {
                target: Some("o x.o".into()),
                ..Rule::default()
            },
            &[TEXT, TEXT],
        );
        assert_eq!(
            text(md),
            "o x.o : m.cu \\\n    /usr/include/stdc-predef.h \\\n    inc/sp\\ dir/h.h \\\n    inc/é.h\n"
        );
        let mmd = rule(
            &Rule {
                target: Some("t".into()),
                skip_system: true,
                phony: true,
                ..Rule::default()
            },
            &[TEXT],
        );
        assert_eq!(
            text(mmd),
            "t : m.cu \\\n    inc/sp\\ dir/h.h \\\n    inc/é.h\n\ninc/sp\\ dir/h.h:\n\ninc/é.h:\n"
        );
    }

    #[test]
    fn the_folder_of_outputs_is_before_any_target() {
        let folders = ["out", "out/", "/a//", ""];
        for (target, begin) in [
            (None, "e.o"),
            (Some("../x y.o"), "../x y.o"),
            (Some(""), ""),
        ] {
            let target = target.map(str::to_owned);
            for folder in folders.map(Some).into_iter().chain([None]) {
                let asked = Rule {
                    target: target.clone(),
                    folder: folder.map(str::to_owned),
                    ..Rule::default()
                };
                let before = folder.map(|folder| format!("{folder}/"));
                let want = format!("{}{begin} : d/e.cu\n", before.unwrap_or_default());
                assert_eq!(text(rule(&asked, &[b"# 1 \"d/e.cu\"\n"])), want);
            }
        }
    }

    #[test]
    fn names_that_are_no_files_are_left_out() {
        let clang = b"# 1 \"e.cu\"\n# 1 \"<built-in>\" 1\n# 1 \"<built-in>\" 3\n# 1 \"<command line>\" 1\n# 1 \"<built-in>\" 2\n# 1 \"h.h\" 1\n# 1 \"<x>/y.h\" 1\n# 1 \"baz>\" 1\n# 1 \"d/<x>\" 1\n";
        let listed = rule(
            &Rule {
                target: Some("t".into()),
                ..Rule::default()
            },
            &[clang],
        );
        assert_eq!(
            text(listed),
            "t : e.cu \\\n    h.h \\\n    baz> \\\n    d/<x>\n"
        );
    }

    #[test]
    fn names_are_bytes() {
        let latin = b"# 1 \"e.cu\"\n# 1 \"h\\377 \\351.h\" 1\n";
        let listed = rule(&Rule::default(), &[latin]);
        let listed = listed.expect("plain names");
        assert_eq!(listed, b"e.o : e.cu \\\n    h\xff\\ \xe9.h\n");
    }

    #[test]
    fn names_with_quotes_and_backslashes_are_nvccs() {
        for name in [r#"d\"/e.cu"#, r"d\\/e.cu"] {
            let marker = format!("# 1 \"{name}\"\n");
            assert_eq!(
                rule(&Rule::default(), &[marker.as_bytes()]),
                Err(QUOTED_NAME)
            );
        }
    }

    #[test]
    fn a_text_that_does_not_name_its_source_is_nvccs() {
        for other in [&b""[..], b"int x;\n# 1 \"h.h\" 1\n", b"#line 1 \"m.cu\"\n"] {
            assert_eq!(rule(&Rule::default(), &[TEXT, other]), Err(NO_MARKER));
        }
    }

    #[test]
    fn broken_markers_are_text() {
        let mut count = 0;
        markers(b"# x\n# 1 \"open\n# 1\n# \"a\"\n# 5 \"a\\", |_| count += 1);
        assert_eq!(count, 0);
    }
}
