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
        let mut page = Page::new(form, &mut out);
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

/// Two commands of one tool, with the same option.
fn two_steps() -> Explanation {
    let step = |number: usize| {
        serde_json::json!({
            "number": number, "tool": "ptxas", "arch": null, "title": format!("Assemble {number}"),
            "purpose": "Machine code is made.", "command": "ptxas -O3", "needs": [], "reads": [],
            "options": [{"words": "-O3", "meaning": "optimise", "known": true}],
            "writes": [], "tree": [], "outcome": "ran", "micros": 1500, "stdout": "", "stderr": ""
        })
    };
    let steps = serde_json::from_value(serde_json::json!([step(1), step(2)]));
    Explanation {
        command: vec!["nvcc".into()],
        steps: steps.expect("as `--json` writes it"),
        ..Explanation::default()
    }
}

const FORM: Form = Form {
    width: 80,
    tint: Tint::Plain,
};

#[test]
fn brief_is_a_row_for_each_step() {
    let mut out = Vec::new();
    write_brief(&two_steps(), FORM, &mut out).expect("memory");
    let text = String::from_utf8(out).expect("text");
    assert!(
        text.contains("\n       1  ptxas  Assemble 1    2 ms\n"),
        "{text}"
    );
    assert!(!text.contains("optimise"), "{text}");
}

#[test]
fn a_step_alone_is_explained_in_full() {
    let step = |which| {
        let mut out = Vec::new();
        let found = write_step(&two_steps(), which, FORM, &mut out).expect("memory");
        let text = String::from_utf8(out).expect("text");
        assert_eq!(found, !text.is_empty());
        text
    };
    let second = step("2");
    assert!(
        second.contains("Step 2 of 2") && !second.contains("Step 1 of 2"),
        "{second}"
    );
    assert!(
        second.contains("Machine code is made.") && second.contains("optimise"),
        "{second}"
    );
    assert_eq!(step("ptxas").matches("Step ").count(), 2);
    assert_eq!(step("3"), "");
}
