//! Tests of what is asked for.

use super::*;

fn request(source: &str) -> CompileRequest {
    CompileRequest::new("k", source, "sm_90".parse().expect("a target"))
}

#[test]
fn a_nul_is_refused_with_its_place() {
    let error = request("a\nb\0c").check().expect_err("refused").to_string();
    assert!(
        error.contains("source") && error.contains("byte 3 (line 2)"),
        "{error}"
    );
    let mut other = request("");
    other.options.push("-DA=\0".into());
    assert!(other.check().is_err());
}

#[test]
fn names_do_no_harm_in_a_line_directive() {
    let mut one = request("x");
    one.name = "scale<float, \"\\\n\">".into();
    assert!(
        one.whole_text()
            .starts_with("#line 1 \"scale_float_______\"\n")
    );
    one.name = "".into();
    assert_eq!(one.plain_name(), "kernel");
}

#[test]
fn requests_are_equal_only_where_everything_is() {
    let full = || {
        let mut one = request(&"x".repeat(5000));
        one.preamble.push(Text::new("p", "a".repeat(5000)));
        one.headers.push(Text::new("h", "b"));
        one.bundles.push(bundle("h", "b"));
        one.include_folders.push("/i".into());
        one.name_expressions.push("k".into());
        one.options.push("-DA".into());
        one
    };
    let changes: [fn(&mut CompileRequest); 13] = [
        |one| one.bundles.push(bundle("h", "c")),
        |one| one.name = "other".into(),
        |one| one.source = format!("{}y", "x".repeat(4999)).into(),
        // The change is between two samples.
        |one| one.source = format!("{}y{}", "x".repeat(400), "x".repeat(4599)).into(),
        |one| one.preamble[0].text = format!("{}b{}", "a".repeat(400), "a".repeat(4599)).into(),
        |one| one.preamble[0].name = "q".into(),
        |one| one.headers.clear(),
        |one| one.headers = std::mem::take(&mut one.preamble),
        |one| one.include_folders[0] = "/j".into(),
        |one| one.name_expressions.push("l".into()),
        |one| one.options = vec!["-DB".into()],
        |one| one.options = std::mem::take(&mut one.name_expressions),
        |one| one.target = "sm_80".parse().expect("a target"),
    ];
    let one = full();
    for (again, cheap) in [(one.clone(), true), (full(), false)] {
        assert!(one.equals(&again) && one == again);
        assert_eq!(one.is_one(&again), cheap);
        assert_eq!(
            (one.quick(), one.thorough()),
            (again.quick(), again.thorough())
        );
    }
    for (index, change) in changes.iter().enumerate() {
        let mut other = one.clone();
        change(&mut other);
        assert!(
            !one.equals(&other) && !one.is_one(&other) && one != other,
            "{index}"
        );
        assert_ne!(one.thorough(), other.thorough(), "{index}");
    }
}

fn bundle(name: &str, text: &str) -> Bundle {
    let mut maker = warpcc_rtc_bundle::BundleMaker::new();
    maker.header(name, text.as_bytes()).expect("added");
    Bundle::open(maker.finish().expect("made")).expect("a bundle")
}

#[test]
fn two_headers_of_one_name_are_refused() {
    let mut one = request("");
    one.headers = vec![Text::new("a.h", ""), Text::new("a.h", "")];
    assert!(one.check().is_err());
}
