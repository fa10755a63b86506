//! Tests of the hash that leaves out lines.

use super::*;
use crate::lineless_text::LinelessText;

/// A text that is passed in pieces of any length.
fn read(text: &[u8]) -> Option<LinelessText> {
    let of_pieces = |length: usize| {
        let mut tokens = Tokens::default();
        let (mut at, mut end) = (0, 0);
        while end < text.len() {
            end = text.len().min(end + length);
            at += tokens.take(&text[at..end], false);
        }
        assert_eq!(at + tokens.take(&text[at..], true), text.len());
        let read = |(hash, layout)| LinelessText::new(hash, layout);
        tokens.finish().map(read)
    };
    let whole = of_pieces(text.len().max(1));
    let parts = |read: &Option<LinelessText>| {
        let parts = |read: &LinelessText| (read.hash, read.layout.clone());
        read.as_ref().map(parts)
    };
    for length in 1..text.len() {
        assert_eq!(
            parts(&of_pieces(length)),
            parts(&whole),
            "{:?} {length}",
            text.escape_ascii()
        );
    }
    whole
}

/// Whether the result of one text is that of the other.
fn is_same(one: &str, other: &str) -> bool {
    let Some((made, here)) = read(one.as_bytes()).zip(read(other.as_bytes())) else {
        return false;
    };
    let file = tempfile::NamedTempFile::new().expect("file");
    std::fs::write(file.path(), other).expect("write");
    made.hash == here.hash && here.suits(made.layout.as_ref(), file.path())
}

const TEXT: &str =
    "# 0 \"a.cu\"\n# 1 \"x.h\" 1 3 4\nint x;\n# 2 \"a.cu\" 2\nint f() {\n return 1;\n}\n";

#[track_caller]
fn same(one: &str, other: &str) {
    assert!(is_same(one, one), "{one:?} has no hash");
    assert!(is_same(one, other), "{one:?} {other:?}");
    assert!(is_same(other, one), "{other:?} {one:?}");
}

#[track_caller]
fn differ(one: &str, other: &str) {
    assert!(!is_same(one, other), "{one:?} {other:?}");
    assert!(!is_same(other, one), "{other:?} {one:?}");
}

#[test]
fn lines_do_not_count() {
    for other in [
        "# 0 \"a.cu\"\n# 1 \"x.h\" 1 3 4\nint x;\n# 2 \"a.cu\" 2\n\n\n  \nint f() {\n return 1;\n}\n",
        "# 0 \"a.cu\"\n# 1 \"x.h\" 1 3 4\nint x;\n# 2 \"a.cu\" 2\n# 20 \"a.cu\"\nint f() { \n   return 1;\n}",
        "# 0 \"a.cu\"\n# 9 \"x.h\" 1 3 4\n# 12 \"x.h\" 3 4\nint x;\n# 4 \"a.cu\" 2\nint f() {\n\treturn 1;\n}\n",
    ] {
        same(TEXT, other);
    }
}

#[test]
fn everything_else_does() {
    for (from, to) in [
        ("x.h", "y.h"),
        (" 1 3 4", " 1"),
        ("\" 2", "\""),
        ("int x;", "int  x;"),
        ("return 1", "return 2"),
        ("{\n return", "{ return"),
        ("int f", "#pragma a\nint f"),
        ("int f", "# 3 \"a.cu\" 3 4\nint f"),
        ("int f", "# 3 \"b.cu\"\nint f"),
    ] {
        differ(TEXT, &TEXT.replace(from, to));
    }
}

#[test]
fn a_raw_string_counts_whole() {
    for prefix in ["R", "u8R", "LR"] {
        let text = format!(
            "x = 1'000 + '\"' + \"R\\\"(\" + f({prefix}\"d( a\n\n# 1 \"b\"\n )\" )d\")\nint y;\n"
        );
        same(&text, &text.replace("int y", "\nint y"));
        differ(&text, &text.replace("\n\n# 1", "\n# 1"));
        differ(&text, &text.replace("# 1", "# 2"));
        differ(&text, &text.replace(" a\n", " a \n"));
    }
    same("ERROR\"(\n\n", "ERROR\"(\n");
}

#[test]
fn lines_that_are_asked_for_count() {
    let text = TEXT.replace("int x;", "inline int x() {\nreturn __builtin_LINE(); }");
    same(&text, &text.replace("\nint f", "\n\nint f"));
    differ(&text, &text.replace("\nreturn __b", "\n\nreturn __b"));
    let text = "int f() { return\n__builtin_LINE(); }";
    differ(text, &format!("\n{text}"));
    let text = TEXT.replace("return 1", "return __builtin_LINE()");
    same(&text, &text.replace("int x", "\nint x"));
    differ(&text, &text.replace("\nint f", "\n\nint f"));
    differ(&text, &text.replace("# 2", "# 3"));
    // Which file is the main one is not known.
    let text = "int a;\n# 1 \"a.cu\"\nint f() { return __builtin_LINE(); }\n";
    differ(text, &text.replace("# 1", "# 2"));
}

#[test]
fn where_every_line_may_be_asked_for_every_line_counts() {
    for text in [
        "f(__builtin_LINE()) // comment",
        "struct S { int line = __builtin_LINE(); };",
    ] {
        let text = format!("# 1 \"a.cu\"\nint a;\n# 1 \"x.h\" 1\n{text}\n# 3 \"a.cu\" 2\nint b;\n");
        differ(&text, &text.replace("int a", "\nint a"));
        differ(&text, &text.replace("int b", "\nint b"));
        differ(&text, &text.replace("# 1 \"x", "# 2 \"x"));
        // The end of the last line is no place of a token.
        assert!(is_same(&text, &text.replace("b;\n", "b; \n\n")));
    }
}

#[test]
fn columns_that_are_asked_for_count() {
    let text = TEXT.replace("int x;", "inline int x() {\nreturn __builtin_COLUMN(); }");
    same(&text, &text.replace("int f", "  int f"));
    differ(&text, &text.replace("return __b", " return __b"));
    differ(
        &text.replace("return __b", "\treturn __b"),
        &text.replace("return __b", " return __b"),
    );
    same(&text, &text.replace("}\n", "}  \n"));
    let raw = "R\"(\n\n)\" ;";
    let text = text.replace("inline", &format!("{raw}\ninline"));
    same(&text, &text);
    // A raw string's lines are lines.
    let shorter = text.replace(raw, "R\"(\n)\" ;");
    differ(&text, &shorter);
}

#[test]
fn what_is_not_understood_has_no_hash() {
    for text in [
        "R\"(",
        "R\"no end",
        "x = R\"(a)\"; // comment",
        "/*\nR\"(\n*/ R\"( )\";",
        "\"open R\"(a)\"",
        "a \\\nb",
        "\0 \"a.cu\"",
    ] {
        assert!(read(text.as_bytes()).is_none(), "{text:?}");
    }
}

#[test]
fn what_looks_like_a_marker_is_one_only_if_it_is_whole() {
    for line in [
        "# 1",
        "# 1 \"a",
        "# 1 \"a\" 5",
        "# 1 \"a\\\"",
        "#line 1 \"a\"",
    ] {
        differ(
            &format!("{line}\n"),
            &format!("{}\n", line.replace('1', "2")),
        );
    }
}
