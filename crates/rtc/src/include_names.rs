//! Finds the names of other files in a program's text, and the words that matter for them.

/// The names of other files in a text, and the words that matter for them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) names: Vec<Vec<u8>>,
    pub(crate) computed: bool,
    /// The first definition that could make a name outside the include folders.
    pub(crate) leads_out: Option<String>,
    pub(crate) shows_paths: bool,
}

/// Words by which a program gets the path of its text.
const PLACES: [&[u8]; 7] = [
    b"__FILE__",
    b"__BASE_FILE__",
    b"__FILE_NAME__",
    b"__builtin_FILE",
    b"__builtin_source_location",
    b"source_location",
    b"assert",
];

pub(crate) fn words_of(text: &[u8]) -> Words {
    let text = spliced(text);
    let mut words = Words::default();
    let mut at = 0;
    while at < text.len() {
        if !is_word(text[at]) {
            at += 1;
            continue;
        }
        let end = at + text[at..].iter().take_while(|b| is_word(**b)).count();
        let word = &text[at..end];
        match word {
            b"include" | b"include_next" | b"import" | b"embed" if is_directive(&text[..at]) => {
                words.file(literal(&text, end));
            }
            b"__has_include" | b"__has_include_next" | b"__has_embed" => {
                let next = blank(&text, end);
                if text.get(next) == Some(&b'(') {
                    words.file(literal(&text, next + 1));
                } else {
                    // `defined(__has_include)` names no file; a definition could pass the word on.
                    words.computed |= defines(&text, at);
                }
            }
            word if PLACES.contains(&word) => words.shows_paths = true,
            b"define" => {
                let line = text[end..]
                    .split(|b| *b == b'\n')
                    .next()
                    .unwrap_or_default();
                let has = |what: &[u8]| line.windows(what.len()).any(|part| part == what);
                let mut leads = has(b"..") && !only_ellipses(line) || has(b"</");
                if has(b"\"/") {
                    // A literal is a whole name, or none: nothing joins it with another.
                    match literals(line) {
                        Some(literals) => {
                            let outside =
                                literals.into_iter().filter(|name| name.starts_with(b"/"));
                            for name in outside {
                                // A name has no escapes, so what this one names is not clear.
                                leads |= name.contains(&b'\\');
                                words.names.push(name.to_vec());
                            }
                        }
                        None => leads = true,
                    }
                }
                if leads && words.leads_out.is_none() {
                    words.leads_out = Some(String::from_utf8_lossy(line).trim().to_owned());
                }
            }
            _ => {}
        }
        at = end;
    }
    words
}

impl Words {
    fn file(&mut self, name: Option<&[u8]>) {
        match name {
            Some(name) => self.names.push(name.to_vec()),
            None => self.computed = true,
        }
    }
}

/// The string literals of a definition, without their quotes; `None` if one does not end, or there may be a character.
fn literals(line: &[u8]) -> Option<Vec<&[u8]>> {
    if line.contains(&b'\'') {
        return None;
    }
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.iter().position(|b| *b == b'"') {
        let inside = &rest[start + 1..];
        let mut end = 0;
        while *inside.get(end)? != b'"' {
            end += if inside[end] == b'\\' { 2 } else { 1 };
        }
        found.push(&inside[..end]);
        rest = &inside[end + 1..];
    }
    Some(found)
}

/// The names that a text includes or tests, if they are written out. For fuzzing: it returns for every text.
pub fn names_included(text: &[u8]) -> Vec<Vec<u8>> {
    words_of(text).names
}

/// Joins lines that end with a backslash; NVRTC, like gcc, allows blanks behind it.
fn spliced(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|b| *b == b'\\') {
        let behind = &rest[at + 1..];
        let blanks = behind
            .iter()
            .take_while(|b| matches!(b, b' ' | b'\t' | b'\r'))
            .count();
        out.extend_from_slice(&rest[..at]);
        if behind.get(blanks) == Some(&b'\n') {
            rest = &behind[blanks + 1..];
        } else {
            out.push(b'\\');
            rest = behind;
        }
    }
    out.extend_from_slice(rest);
    out
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

/// Whether the text before a word makes it a directive, or may do so.
fn is_directive(before: &[u8]) -> bool {
    let blanks = before
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_whitespace() && **b != b'\n');
    let before = &before[..before.len() - blanks.count()];
    // A comment may stand between.
    ["#".as_bytes(), b"%:", b"??=", b"*/"]
        .iter()
        .any(|sign| before.ends_with(sign))
}

/// The position of the next character that is no blank and in no comment.
fn blank(text: &[u8], mut at: usize) -> usize {
    loop {
        let rest = text.get(at..).unwrap_or_default();
        if rest.starts_with(b"/*") {
            match rest.windows(2).skip(2).position(|two| two == b"*/") {
                Some(end) => at += end + 4,
                None => return text.len(),
            }
        } else if rest
            .first()
            .is_some_and(|b| b.is_ascii_whitespace() && *b != b'\n')
        {
            at += 1;
        } else {
            return at;
        }
    }
}

/// The name between `<` and `>` or two `"`.
fn literal(text: &[u8], at: usize) -> Option<&[u8]> {
    let rest = text.get(blank(text, at)..)?;
    let end = match rest.first()? {
        b'<' => b'>',
        b'"' => b'"',
        _ => return None,
    };
    let line = rest[1..].split(|b| *b == b'\n').next()?;
    let length = line.iter().position(|b| *b == end)?;
    Some(&line[..length])
}

/// Whether the line around a place begins a macro's definition.
fn defines(text: &[u8], at: usize) -> bool {
    let start = text[..at]
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    text[start..at].windows(6).any(|word| word == b"define")
        && !text[start..at].windows(7).any(|word| word == b"defined")
        || text[start..at].windows(7).any(|word| word == b"define ")
}

/// Whether dots occur only in groups of three, as in a macro with any number of arguments.
fn only_ellipses(line: &[u8]) -> bool {
    let mut runs = line.split(|b| *b != b'.').filter(|run| run.len() > 1);
    runs.all(|run| run.len() == 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let words = words_of(text.as_bytes());
        assert!(!words.computed, "{text}");
        let names = words.names.iter();
        names
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect()
    }

    #[test]
    fn every_way_to_write_an_include_is_seen() {
        for text in [
            "#include \"a.h\"",
            "#include<a.h>",
            "  #  include   <a.h> // why",
            "# /* here */ include /* and\nhere */ \"a.h\"",
            "%:include <a.h>",
            "#inc\\\nlude <a.h>",
            "#include \\  \r\n <a.h>",
            "#include_next <a.h>",
            "#if 0\n#include <a.h>\n#endif",
            "// #include <a.h>",
            "#if __has_include(<a.h>)",
            "#if defined(__has_include) && __has_include ( \"a.h\" )",
            "/**/#include \"a.h\"",
        ] {
            assert_eq!(names(text), ["a.h"], "{text}");
        }
        for text in [
            "int include = 1;",
            "#ifdef __has_include",
            "include <a.h>",
            "#define including 3",
        ] {
            assert!(names(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn names_that_macros_make_are_not_guessed() {
        for text in [
            "#include HEADER",
            "#include STRING(a.h)",
            "#include",
            "#define HAS(x) __has_include(x)",
            "#define HAS __has_include",
            "#if __has_include(HEADER)",
        ] {
            assert!(words_of(text.as_bytes()).computed, "{text}");
        }
    }

    #[test]
    fn definitions_that_lead_out_are_seen() {
        let leads = |text: &str| words_of(text.as_bytes()).leads_out.is_some();
        assert!(
            leads("#define H \"../x.h\"")
                && leads("#define H </etc/x.h>")
                && leads("#define UP ..")
        );
        assert!(!leads("#define F(...) g(__VA_ARGS__)") && !leads("#define V 1.5"));
        // An absolute path is a name like others, where its end is plain.
        assert_eq!(names("#define H \"/a/x.h\" \"b\""), ["/a/x.h"]);
        let linker = "#define N __pragma(comment(linker, \"/EXPORT:\" __FUNCTION__ \"=\"))";
        let escaped = r#"#define N _Pragma("comment(linker, \"/EXPORT:\" __FUNCTION__ \"=\")")"#;
        assert!(!leads("#define H \"/a/x.h\"") && !leads(linker) && !leads(escaped));
        for unclear in [
            "#define H \"/a\\\"b\"",
            "#define H '\"' \"/a\"",
            "#define H \"/a",
        ] {
            assert!(leads(unclear), "{unclear}");
        }
    }

    #[test]
    fn hostile_text_ends() {
        for text in [
            "#include \"",
            "#include <\n>",
            "/*",
            "#include /*",
            "\\",
            "__has_include(",
            "#",
        ] {
            words_of(text.as_bytes());
        }
    }
}
