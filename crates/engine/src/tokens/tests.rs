//! Tests of the hash that leaves out lines.

use super::*;

/// The hash of a text that is passed in pieces of any length.
fn hash(text: &[u8]) -> Option<[u8; 32]> {
    let of_pieces = |length: usize| {
        let mut tokens = Tokens::default();
        let (mut at, mut end) = (0, 0);
        while end < text.len() {
            end = text.len().min(end + length);
            at += tokens.take(&text[at..end], false);
        }
        assert_eq!(at + tokens.take(&text[at..], true), text.len());
        let read = || Ok(text.to_vec());
        tokens
            .finish()
            .with_queried_lines(read)
            .expect("no reading fails")
    };
    let whole = of_pieces(text.len().max(1));
    for length in 1..text.len() {
        assert_eq!(
            of_pieces(length),
            whole,
            "{:?} {length}",
            text.escape_ascii()
        );
    }
    whole
}

const TEXT: &str =
    "# 0 \"a.cu\"\n# 1 \"x.h\" 1 3 4\nint x;\n# 2 \"a.cu\" 2\nint f() {\n return 1;\n}\n";

#[track_caller]
fn same(one: &str, other: &str) {
    assert!(hash(one.as_bytes()).is_some(), "{one:?} has no hash");
    assert_eq!(
        hash(one.as_bytes()),
        hash(other.as_bytes()),
        "{one:?} {other:?}"
    );
}

#[track_caller]
fn differ(one: &str, other: &str) {
    assert_ne!(
        hash(one.as_bytes()),
        hash(other.as_bytes()),
        "{one:?} {other:?}"
    );
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
}

#[test]
fn what_is_not_understood_has_no_hash() {
    for text in [
        "f(__builtin_LINE()) // comment",
        "struct S { int line = __builtin_LINE(); };",
        "R\"(",
        "R\"no end",
        "x = R\"(a)\"; // comment",
        "/*\nR\"(\n*/ R\"( )\";",
        "\"open R\"(a)\"",
        "a \\\nb",
        "\0 \"a.cu\"",
    ] {
        assert_eq!(hash(text.as_bytes()), None, "{text:?}");
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
