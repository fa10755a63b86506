//! Finds computed includes: those whose file name comes from a macro. Such a name may be composed of parts from several
//! places, so a search for the whole name does not find it.

use std::borrow::Cow;

use memchr::memmem;

/// Directives and operators that take a file's name.
const WORDS: [&[u8]; 3] = [b"include", b"embed", b"import"];

/// Whether a source may have a computed include. A comment that looks like one counts too.
pub fn are_in(source: &[u8]) -> bool {
    let source = spliced(source);
    WORDS.iter().any(|word| {
        memmem::find_iter(&source, word)
            .any(|at| is_computed(source[..at].trim_ascii_end(), &source[at + word.len()..]))
    })
}

/// Whether a source has the name of a folder in it that a macro could make a path with. A name is at least one whole word:
/// no macro takes a word apart.
pub fn may_use(source: &[u8], name: &[u8]) -> bool {
    let is_word = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$' | 0x80..);
    let goes_on = |inside: Option<&u8>, outside: Option<&u8>| {
        inside.is_some_and(is_word) && outside.is_some_and(is_word)
    };
    memmem::find_iter(source, name).any(|at| {
        let before = at.checked_sub(1).and_then(|at| source.get(at));
        let after = source.get(at + name.len());
        !(goes_on(name.first(), before) || goes_on(name.last(), after))
    })
}

/// Joins each line that ends in a backslash with the next one, because a word may go on there. gcc allows white space behind the
/// backslash.
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

/// Whether the word between `before` and `after` takes a file name, and a macro may follow it.
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
            // This only tests whether the operator exists.
            None => return false,
        }
    } else if begins_directive(before) {
        after
    } else {
        return false;
    };
    // A macro may also follow after a comment or a joined line, which are not parsed here.
    let first = argument.first();
    first.is_some_and(|c| is_word(c) || matches!(c, b'/' | b'\\'))
}

/// Whether `before` ends in the `#` or `%:` of a directive: it is the first character of its line, except for a comment.
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
    use super::{are_in, may_use};

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

    #[test]
    fn a_macro_makes_a_path_of_whole_words() {
        for text in ["#define DIR tmp", "\"tmp/x.h\"", "STR(tmp)", "tmp", "a/tmp"] {
            assert!(may_use(text.as_bytes(), b"tmp"), "{text}");
        }
        for text in ["int tmps;", "__tmp", "mytmp = 1", "tmp2", ""] {
            assert!(!may_use(text.as_bytes(), b"tmp"), "{text}");
        }
        assert!(may_use(b"#define DIR x.build", b".build"));
    }
}
