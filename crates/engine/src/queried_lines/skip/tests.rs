//! Tests that skipping braces changes nothing: random texts are read with it and without it.

use std::collections::BTreeSet;

use fastrand::Rng;

use super::super::{files_from, scan::Scan};

/// The files that ask, if the text is understood.
fn asking(text: &str, skips: bool) -> Option<BTreeSet<String>> {
    let begin = |text, names| {
        let mut scan = Scan::new(text, names);
        scan.not_skipped = if skips { 0 } else { usize::MAX };
        scan
    };
    let found = files_from(text.as_bytes(), &begin)?;
    let name = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    Some(found.into_iter().map(name).collect())
}

const NAMES: [&str; 8] = ["a", "b", "c", "S", "T", "raise", "current", "at"];

fn one_of<'a>(rng: &mut Rng, all: &[&'a str]) -> &'a str {
    rng.choice(all).copied().unwrap_or_default()
}

/// A random expression.
fn expression(rng: &mut Rng, deep: u8) -> String {
    let name = one_of(rng, &NAMES);
    let mut inner = || match deep {
        0 => "1".to_owned(),
        _ => expression(rng, deep - 1),
    };
    let (one, other) = (inner(), inner());
    match rng.u8(0..16) {
        0 => format!("{name}({one}, {other})"),
        1 => format!("{name}<{one}>({other})"),
        2 => format!("({one}) + a[{other}]"),
        3 => format!("{name}{{{one}}}"),
        4 => format!(
            "[&](int x) {{ {}return {one}; }}()",
            statement(rng, deep / 2)
        ),
        5 => "__builtin_LINE()".to_owned(),
        6 => format!("std::{name}({one})"),
        7 => "\"a } { \\\" ( b\"".to_owned(),
        8 => "1'000.0e+1f".to_owned(),
        9 => format!("x.template {name}<{one}>()"),
        10 => format!("throw {name}({one})"),
        11 => format!("static_cast<::a::b>({one} <= {other})"),
        12 => "R\"(} \" {)\"".to_owned(),
        _ => format!("{name} - 'x'"),
    }
}

/// A random statement, or a line that is no part of one.
fn statement(rng: &mut Rng, deep: u8) -> String {
    let name = one_of(rng, &NAMES);
    let value = expression(rng, deep);
    let mut inner = || match deep {
        0 => ";".to_owned(),
        _ => statement(rng, deep - 1),
    };
    let (one, other) = (inner(), inner());
    match rng.u8(0..14) {
        0 => format!("int {name} = {value}; "),
        1 => format!("if ({value}) {{ {one}{other} }} else {one}"),
        2 => format!("for (;;) {{ {one} }}"),
        3 => format!("struct {name} {{ {} }} x; {one}", member(rng, deep / 2)),
        4 => format!("\n# 7 \"{}.h\" 3\n{one}", one_of(rng, &["x", "y", "z"])),
        5 => format!("\n#pragma unroll\n{one}"),
        6 => format!("\n#pragma x {name}\n{one}"),
        7 => format!("T {name}[] = {{{value}, {{1}}}}; "),
        8 => format!("enum class {name} {{ q, r = {value} }}; "),
        _ => format!("{value}; "),
    }
}

/// Random parameters of a function.
fn parameters(rng: &mut Rng, deep: u8) -> String {
    let name = one_of(rng, &NAMES);
    match rng.u8(0..6) {
        0 => format!("int a, struct {name} b = {}", expression(rng, deep)),
        1 => "int line = __builtin_LINE()".to_owned(),
        2 => format!("S at = S::current(), T {name} = {{}}"),
        _ => format!("const {name} &x"),
    }
}

/// A random member of a class.
fn member(rng: &mut Rng, deep: u8) -> String {
    let name = one_of(rng, &NAMES);
    match rng.u8(0..8) {
        0 => format!("int {name} = {}; ", expression(rng, deep)),
        1 => format!(
            "{name}({}) : x(1), y{{2}} {{ {} }} ",
            parameters(rng, deep),
            statement(rng, deep)
        ),
        2 => format!(
            "public: {name} operator+(const {name} &x) const {{ {} }} ",
            statement(rng, deep)
        ),
        3 => format!("enum {{ q, {name} }}; "),
        4 => format!(
            "template <class {name}, class = int> void f({}) {{ {} }}",
            parameters(rng, deep),
            statement(rng, deep)
        ),
        _ => declaration(rng, deep / 2),
    }
}

/// A random declaration.
fn declaration(rng: &mut Rng, deep: u8) -> String {
    let name = one_of(rng, &NAMES);
    let mut inner = || match deep {
        0 => "; ".to_owned(),
        _ => declaration(rng, deep - 1),
    };
    let (one, other) = (inner(), inner());
    match rng.u8(0..14) {
        0 => format!("namespace {name} {{ {one}{other} }} "),
        1 => format!("extern \"C\" {{ {one} }} "),
        2 => format!(
            "struct alignas(8) {name} : b {{ {}{} }}; ",
            member(rng, deep),
            member(rng, deep)
        ),
        3 => format!("union {name} {{ {} }} x; ", member(rng, deep)),
        4 => format!(
            "__attribute__((host)) void {name}({}) noexcept {{ {} }} ",
            parameters(rng, deep),
            statement(rng, deep)
        ),
        5 => format!(
            "template <class T> {name} f({}) {{ {}{} }}",
            parameters(rng, deep),
            statement(rng, deep),
            statement(rng, deep)
        ),
        6 => format!(
            "constexpr T {name}[] = {{ {{{}}}, {{1}} }}; ",
            expression(rng, deep)
        ),
        7 => format!("void {name}({}); ", parameters(rng, deep)),
        8 => format!("\n# 3 \"{}.h\"\n{one}", one_of(rng, &["x", "y", "z"])),
        9 => format!("using {name} = {}; ", one_of(rng, &NAMES)),
        10 => format!("class {name}; {one}"),
        _ => format!("{one}{other}"),
    }
}

/// The text with a few bytes removed or doubled.
fn damaged(rng: &mut Rng, mut text: String) -> String {
    for _ in 0..rng.u8(0..3) {
        let at = rng.usize(0..text.len().max(1));
        if let Some(byte) = text[at.min(text.len())..].chars().next() {
            match rng.bool() {
                true => _ = text.remove(at),
                false => text.insert(at, byte),
            }
        }
    }
    text
}

#[test]
fn skipping_changes_no_answer() {
    let mut rng = Rng::with_seed(7);
    let (mut understood, mut asked) = (0, 0);
    for _ in 0..15_000 {
        let text: String = (0..4).map(|_| declaration(&mut rng, 4)).collect();
        let text = damaged(&mut rng, format!("# 1 \"a.cu\"\n{text}"));
        // Braces that are skipped may hold what is not understood otherwise, such as a `<` that is no bracket.
        if let Some(files) = asking(&text, false) {
            understood += 1;
            asked += usize::from(!files.is_empty());
            assert_eq!(asking(&text, true), Some(files), "{text}");
        }
    }
    assert!(understood > 2_500 && asked > 250, "{understood} {asked}");
}

#[test]
fn what_is_skipped_is_not_read_piece_by_piece() {
    for (text, skipped) in [
        ("void f() { (template <); }", true),
        ("struct S { void f() { (template <); } };", true),
        ("int a[] = { (template <) };", true),
        // What follows a name that asks is read.
        ("void f() { current(); (template <); }", false),
        ("struct S { void f() { current(); (template <); } };", false),
        ("namespace n { (template <); }", false),
    ] {
        assert_eq!(asking(text, false), None, "{text}");
        assert_eq!(asking(text, true).is_some(), skipped, "{text}");
    }
}

#[test]
fn deep_brackets_are_read_once_in_vain() {
    let text = format!(
        "{}current(){}",
        "struct a { void f() { ".repeat(400),
        "; } };".repeat(400)
    );
    assert!(asking(&text, true).is_some());
    assert_eq!(asking(&text, true), asking(&text, false));
}

/// What is skipped may hold a class with the name of a function, or a part of another file.
#[test]
fn what_was_skipped_is_known() {
    let location = "struct L { static L current(int line = __builtin_LINE()); };";
    for source in [
        "struct o { struct X { int a; }; }; void X(L at = L::current()); void f() { o::X(1); }",
        "struct X { X(L at = L::current()); void f() { a();\n# 2 \"y.h\"\nb();\n# 3 \"x.h\"\nc(); } };",
    ] {
        let text = format!("# 1 \"x.h\"\n{location}\n{source}\n");
        assert_eq!(asking(&text, false), None, "{text}");
        assert_eq!(asking(&text, true), None, "{text}");
    }
}
