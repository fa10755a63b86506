//! How options are spelled, and what each takes.

use super::*;

fn long(argument: &str) -> Option<(&'static str, Option<&str>)> {
    find(argument).map(|m| (m.row.long, m.attached))
}

#[test]
fn spellings() {
    assert_eq!(long("-o"), Some(("output-file", None)));
    assert_eq!(long("--output-file=x"), Some(("output-file", Some("x"))));
    assert_eq!(
        long("-compress-mode=size"),
        Some(("compress-mode", Some("size")))
    );
    assert_eq!(long("-O3"), Some(("optimize", Some("3"))));
    assert_eq!(long("-t4"), Some(("threads", Some("4"))));
    assert_eq!(long("-t=0"), Some(("threads", Some("0"))));
    assert_eq!(
        long("-DX=\"a b\""),
        Some(("define-macro", Some("X=\"a b\"")))
    );
    assert_eq!(long("-lineinfo"), Some(("generate-line-info", None)));
    assert_eq!(long("-lcudadevrt"), Some(("library", Some("cudadevrt"))));
    assert_eq!(long("-Xptxas=-v"), Some(("ptxas-options", Some("-v"))));
    assert_eq!(long("-G"), Some(("device-debug", None)));
    assert_eq!(long("-isystem=/x"), Some(("system-include", Some("/x"))));
    assert_eq!(long("-Wall"), None);
    assert_eq!(long("-fPIC"), None);
    assert_eq!(long("--not-an-option"), None);
}

#[test]
fn every_row_is_found_by_its_names_and_is_alone() {
    for row in TABLE {
        assert_eq!(
            find(&format!("--{}", row.long)).map(|m| m.row.long),
            Some(row.long)
        );
        if !row.short.is_empty() {
            assert_eq!(
                find(&format!("-{}", row.short)).map(|m| m.row.long),
                Some(row.long),
                "{}",
                row.short
            );
        }
    }
}
