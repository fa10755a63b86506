//! Includes whose file name a macro makes. What such a name may be stands in no single place of a source.

use std::borrow::Cow;

use memchr::memmem;

/// Directives and operators that take a file's name.
const WORDS: [&[u8]; 3] = [b"include", b"embed", b"import"];

/// Whether a source may have one. A comment may look like one, too.
pub fn are_in(source: &[u8]) -> bool {
    let source = spliced(source);
    WORDS.iter().any(|word| {
        memmem::find_iter(&source, word)
            .any(|at| is_computed(source[..at].trim_ascii_end(), &source[at + word.len()..]))
    })
}

/// The source with lines joined that end in a backslash: a word may go on in the next one. gcc allows white space behind it.
fn spliced(source: &[u8]) -> Cow<'_, [u8]> {
    let splice = |at: usize| {
        let rest = &source[at + 1..];
        let end = memchr::memchr(b'\n', rest)?;
        rest[..end].trim_ascii().is_empty().then_some(at + end + 2)
    };
    let mut splices = memchr::memchr_iter(b'\\', source)
        .filter_map(|at| Some((at, splice(at)?)))
        .peekable();
    if splices.peek().is_none() {
        return Cow::Borrowed(source);
    }
    let mut joined = Vec::with_capacity(source.len());
    let mut done = 0;
    for (at, end) in splices {
        joined.extend_from_slice(&source[done..at]);
        done = end;
    }
    joined.extend_from_slice(&source[done..]);
    Cow::Owned(joined)
}

/// Whether the word between is followed by a macro.
fn is_computed(before: &[u8], after: &[u8]) -> bool {
    let is_word = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$' | 0x80..);
    let after = after.strip_prefix(b"_next").unwrap_or(after);
    if after.first().is_some_and(is_word) {
        return false;
    }
    let after = after.trim_ascii_start();
    let argument = if before.ends_with(b"__has_") {
        match after.strip_prefix(b"(") {
            Some(argument) => argument.trim_ascii_start(),
            // It is only asked whether there is such an operator.
            None => return false,
        }
    } else if begins_directive(before) {
        after
    } else {
        return false;
    };
    // Behind a comment or the end of a line, which is not looked for, there may be one.
    let first = argument.first();
    first.is_some_and(|c| is_word(c) || matches!(c, b'/' | b'\\'))
}

/// Whether a line's first character is the one that a directive begins with. There may be a comment before it.
fn begins_directive(before: &[u8]) -> bool {
    let hash = before.strip_suffix(b"#");
    let before = hash.or_else(|| before.strip_suffix(b"%:"));
    before.is_some_and(|before| {
        let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        let first = before[start..].trim_ascii_end();
        first.is_empty() || first.ends_with(b"*/")
    })
}

#[cfg(test)]
mod tests {
    use super::are_in;

    #[test]
    fn a_name_in_quotes_is_no_computed_one() {
        for text in [
            "#include <a.h>\n# include_next \"a.h\"\n%:include \"a.h\"\n",
            "#if defined(__has_include) && __has_include ( <a.h> )\n",
            "#ifdef __has_embed\nint include = 1; f(include);\n",
            "// to include NAME\n/* We use #include_next because\n   #include's and #includes are\n",
        ] {
            assert!(!are_in(text.as_bytes()), "{text}");
        }
        for text in [
            "#include NAME\n",
            " #  include_next TEXT(a/b.h)\n",
            "#if __has_include(NAME)\n",
            "#if __has_include_next ( NAME )\n",
            "#embed NAME\n",
            "%: include NAME",
            "int x;\n /* why */ # include NAME",
            "#include /* why */ NAME",
            "#inc\\\nlude NAME",
            "#inc\\ \r\nlude NAME",
            "#define A \\\n  b\n#\\\nembed \\\n NAME",
        ] {
            assert!(are_in(text.as_bytes()), "{text}");
        }
    }
}
