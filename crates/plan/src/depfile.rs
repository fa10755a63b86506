//! nvcc's "Filter Dependencies": writes the make rule, byte for byte, from the line markers of the preprocessed files.
//!
//! Seen on 11.8, 12.4, 13.0 and 13.5: the passes are read in the plan's order. A name counts if a line begins with `# 1 "`,
//! and the name neither begins with `<` nor ends with `/`. So `#line 1 "parser.y"` counts, and so does such a line
//! of a raw string; the flags for entering and leaving a file do not. With blanks before the `#`, it counts on 13.5 only.
//! `-MMD` leaves out a marker with the flag of a system
//! header (3). What a macro in the first line of such a header expands to has a marker without it. The first marker that
//! counts decides the order. A name is written as the marker has it: clang's `\303` stays. A space gets a backslash, and no
//! other character does. The target is written as it is.

use std::collections::HashSet;

use memchr::memmem;

/// The reason for bypassing a call: its dependency file would contain such a name.
pub const QUOTED_NAME: &str = "a quote or a backslash in a name of the dependency file";

/// The reason for bypassing a call: its preprocessed text has no line markers, for example because of gcc's `-P` in an
/// options file. nvcc has the source's name from elsewhere.
pub const NO_MARKER: &str = "a preprocessed text that does not name its source";

/// The reason for bypassing a call: nvcc reads a line of a raw string as a marker without an end, and fails.
pub const ENDLESS_MARKER: &str = "a line marker without an end";

/// The reason for bypassing a call: a line of a raw string is a marker for some releases of nvcc, and none for others.
pub const INDENTED_MARKER: &str = "a line marker after blanks";

/// The file that a line marker names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Marker<'a> {
    /// The path as it is written, with its escapes.
    path: &'a [u8],
    /// Flag 3: a system header.
    system: bool,
}

/// How a line begins that says that the first line of a file follows.
const FIRST_LINE: &[u8] = b"# 1 \"";

/// Calls `each` for every line that nvcc takes for the marker of a file's first line; with a reason where nvcc decides.
fn first_lines<'a>(text: &'a [u8], mut each: impl FnMut(Result<Marker<'a>, &'static str>)) {
    for at in memmem::find_iter(text, FIRST_LINE) {
        let before = &text[..at];
        let last = before
            .iter()
            .rposition(|byte| !matches!(byte, b' ' | b'\t'));
        if last.is_some_and(|last| before[last] != b'\n') {
            continue;
        }
        let line = last.map_or(0, |last| last + 1);
        each(match line == at {
            true => named(&text[at + FIRST_LINE.len()..]).ok_or(ENDLESS_MARKER),
            false => Err(INDENTED_MARKER),
        });
    }
}

/// The path with which the source's own marker begins the text, whatever its line.
fn source_of(text: &[u8]) -> Option<&[u8]> {
    let rest = text.strip_prefix(b"# ")?;
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let rest = rest.get(digits..)?.strip_prefix(b" \"")?;
    (digits > 0).then(|| named(rest))?.map(|marker| marker.path)
}

/// The marker whose name begins here.
fn named(rest: &[u8]) -> Option<Marker<'_>> {
    let mut end = 0;
    loop {
        match rest.get(end)? {
            b'"' => break,
            b'\n' => return None,
            b'\\' => end += 1 + usize::from(rest.get(end + 1) != Some(&b'\n')),
            _ => end += 1,
        }
    }
    let path = rest.get(..end)?;
    let flags = rest.get(end + 1..)?;
    let flags = &flags[..memchr::memchr(b'\n', flags).unwrap_or(flags.len())];
    let mut numbers = flags
        .split(|byte| matches!(byte, b' ' | b'\t'))
        .take_while(|word| word.iter().all(u8::is_ascii_digit));
    Some(Marker {
        path,
        system: numbers.any(|word| word == b"3"),
    })
}

/// Whether nvcc writes the name as it is. It reads an escaped quote or backslash by rules of its own.
fn is_plain(path: &[u8]) -> bool {
    !path
        .windows(2)
        .any(|two| two[0] == b'\\' && matches!(two[1], b'"' | b'\\'))
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
/// A name has a quote or a backslash, or the source's name has any other escape: nvcc reads the markers of such names by rules
/// of its own, and adds names that no file has (seen on 13.5). Or a text does not begin with a marker, or has one without an end or after blanks.
pub fn rule(rule: &Rule, texts: &[&[u8]]) -> Result<Vec<u8>, &'static str> {
    let sources: Option<Vec<_>> = texts.iter().map(|text| source_of(text)).collect();
    let sources = sources.ok_or(NO_MARKER)?;
    let mut refused = None;
    let mut headers: Vec<&[u8]> = Vec::new();
    let mut seen: HashSet<&[u8]> = HashSet::new();
    for (&text, &source) in texts.iter().zip(&sources) {
        // nvcc has the source's name from the command line, and lists an escaped one of clang's (`\303`) as a header.
        if source.contains(&b'\\') {
            refused = Some(QUOTED_NAME);
        }
        seen.insert(source);
        first_lines(text, |marker| {
            let Marker { path, system } = match marker {
                Ok(marker) => marker,
                Err(reason) => {
                    refused = Some(reason);
                    return;
                }
            };
            if !is_plain(path) {
                refused = Some(QUOTED_NAME);
            }
            let left_out = (rule.skip_system && system) || is_no_file(path);
            if !left_out && seen.insert(path) {
                headers.push(path);
            }
        });
    }
    if let Some(reason) = refused {
        return Err(reason);
    }
    let escape = |path: &[u8]| -> Vec<u8> {
        let parts: Vec<&[u8]> = path.split(|byte| *byte == b' ').collect();
        parts.join(&b"\\ "[..])
    };
    let source = sources.first().copied().unwrap_or_default();
    let folder = rule.folder.iter().flat_map(|folder| [folder, "/"]);
    let mut out = folder.collect::<String>().into_bytes();
    match &rule.target {
        Some(target) => out.extend_from_slice(target.as_bytes()),
        None => out.extend(object_of(source)),
    }
    out.extend_from_slice(b" : ");
    out.extend(escape(source));
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
    Ok(out)
}

/// clang enters `<built-in>` and `<command line>`, and with `-g` gcc names the working directory, with slashes at the end.
/// nvcc lists no such name.
fn is_no_file(path: &[u8]) -> bool {
    path.starts_with(b"<") || path.ends_with(b"/")
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

    const TEXT: &[u8] = b"# 0 \"m.cu\"\n# 0 \"<built-in>\"\n# 1 \"/usr/include/stdc-predef.h\" 1 3 4\n# 0 \"<command-line>\" 2\n# 1 \"inc/sp dir/h.h\" 1\nint x;\n# 77 \"lines.y\"\n# 1 \"inc/\\303\\251.h\" 1\n";

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
            "o x.o : m.cu \\\n    /usr/include/stdc-predef.h \\\n    inc/sp\\ dir/h.h \\\n    inc/\\303\\251.h\n"
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
            "t : m.cu \\\n    inc/sp\\ dir/h.h \\\n    inc/\\303\\251.h\n\ninc/sp\\ dir/h.h:\n\ninc/\\303\\251.h:\n"
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
        let latin = b"# 1 \"e.cu\"\n# 1 \"h\xff \xe9.h\" 1\n";
        let listed = rule(&Rule::default(), &[latin]);
        let listed = listed.expect("plain names");
        assert_eq!(listed, b"e.o : e.cu \\\n    h\xff\\ \xe9.h\n");
    }

    #[test]
    fn names_with_quotes_and_backslashes_are_nvccs() {
        for name in [r#"d\"/e.cu"#, r"d\\/e.cu", r"\303\251.cu", r"a\tb.cu"] {
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

    /// Each was a line of a raw string, compiled by nvcc 11.8, 12.4, 13.0 and 13.5.
    #[test]
    fn a_line_is_read_as_nvcc_reads_it() {
        for (line, listed, listed_of_mmd) in [
            ("# 1 \"x\"", "x", "x"),
            ("# 1 \"x\\040\\ny\\/z\"", "x\\040\\ny\\/z", "x\\040\\ny\\/z"),
            ("# 1 \"x\" 2", "x", "x"),
            ("# 1 \"x\"y", "x", "x"),
            ("# 1 \"x\" 1  3", "x", ""),
            ("# 1 \"x\"\t3", "x", ""),
            ("# 1 \"x\"3 1", "x", ""),
            ("# 1 \"x\" 3x", "x", "x"),
            ("# 1 \"x\" y 3", "x", "x"),
            ("# 1 \"x\" 33 13", "x", "x"),
            ("# 1 \"a\" \"b\"", "a", "a"),
            ("# 1 \"/a//b\"", "/a//b", "/a//b"),
            ("# 1 \"/a/b//\"", "", ""),
            ("# 1 \"a/\" 1", "", ""),
            ("#  1 \"x\"", "", ""),
            ("# 1  \"x\"", "", ""),
            ("# 01 \"x\"", "", ""),
            ("# 10 \"x\" 1", "", ""),
            ("x # 1 \"x\"", "", ""),
            ("\x0b# 1 \"x\"", "", ""),
            ("# 2 \"x", "", ""),
        ] {
            let whole = format!("# 0 \"s.cu\"\n{line}\nend");
            for (skip_system, listed) in [(false, listed), (true, listed_of_mmd)] {
                let asked = Rule {
                    skip_system,
                    ..Rule::default()
                };
                let wanted = match listed {
                    "" => "s.o : s.cu\n".to_owned(),
                    name => format!("s.o : s.cu \\\n    {name}\n"),
                };
                let found = text(rule(&asked, &[whole.as_bytes()]));
                assert_eq!(found, wanted, "{line}");
            }
        }
        for (line, reason) in [
            ("# 1 \"x\nend", ENDLESS_MARKER),
            ("# 1 \"x\\\nend\"", ENDLESS_MARKER),
            (" # 1 \"x\" 1", INDENTED_MARKER),
            ("\t  # 1 \"x\" 1", INDENTED_MARKER),
        ] {
            let text = format!("# 0 \"s.cu\"\n{line}");
            let found = rule(&Rule::default(), &[text.as_bytes()]);
            assert_eq!(found, Err(reason));
        }
    }
}
