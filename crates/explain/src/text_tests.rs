//! Tests of the text: widths, tables, colours.

use super::*;

#[test]
fn a_table_is_wrapped_in_its_last_column_or_becomes_records() {
    let shown = |width, first: &str| {
        let rows = vec![vec![first.to_owned(), "word ".repeat(12), String::new()]];
        let table = Block::table("T", &["name", "value", "nothing"], rows);
        let mut out = Vec::new();
        let form = Form {
            width,
            tint: Tint::Plain,
        };
        let mut page = Page {
            form,
            out: &mut out,
        };
        page.block(&table).expect("memory");
        String::from_utf8(out).expect("text")
    };
    let whole = shown(100, "a");
    assert!(whole.contains("\n    a     word word"), "{whole}");
    assert_eq!(whole.lines().count(), 4, "{whole}");
    assert!(!whole.contains("nothing"));
    let wrapped = shown(50, "a");
    assert!(wrapped.contains("\n          word"), "{wrapped}");
    let records = shown(50, "a-name-that-leaves-no-room");
    assert!(records.contains("\n    - name   a-name"), "{records}");
}

#[test]
fn colours_only_when_asked_for() {
    let explanation = Explanation {
        command: vec!["nvcc".into()],
        ..Explanation::default()
    };
    for (tint, expected) in [(Tint::Plain, false), (Tint::Colours, true)] {
        let mut out = Vec::new();
        write(&explanation, Form { width: 80, tint }, &mut out).expect("memory");
        assert_eq!(out.contains(&0x1b), expected);
    }
}
