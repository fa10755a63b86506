//! Changes to where a header is found: names that were not there when it was looked
//! for, and the order and contents of the search path.

use crate::space::TestSpace;
use crate::{KERNEL, ONE, TWO, rebuilt, warm};

fn space_with(name: &str, files: &[(&str, &str)]) -> TestSpace {
    let space = TestSpace::new(name);
    space.write("case.cu", &format!("#include <a.h>\n{KERNEL}"));
    for (name, text) in files {
        space.write(name, text);
    }
    space
}

#[test]
fn new_header_shadows_an_old_one() {
    let files = [("first/other.h", ""), ("second/a.h", "#define VALUE 1\n")];
    let space = space_with("shadow", &files);
    let line = &format!("{TWO} -I first -I second");
    warm(&space, line);
    space.write("first/a.h", "#define VALUE 2\n");
    rebuilt(&space, line);
    space.remove("first/a.h");
    space.agree(line);
}

#[test]
fn folder_of_the_search_path_appears() {
    let space = space_with("shadow-dir", &[("second/a.h", "#define VALUE 1\n")]);
    let line = &format!("{ONE} -I first -I second");
    warm(&space, line);
    space.write("first/a.h", "#define VALUE 2\n");
    rebuilt(&space, line);
}

#[test]
fn folder_inside_the_search_path_appears() {
    let space = space_with(
        "shadow-sub",
        &[("second/sub/b.h", "#define VALUE 1\n"), ("first/x.h", "")],
    );
    space.write("case.cu", &format!("#include <sub/b.h>\n{KERNEL}"));
    let line = &format!("{ONE} -I first -I second");
    warm(&space, line);
    space.write("first/sub/b.h", "#define VALUE 2\n");
    rebuilt(&space, line);
}

#[test]
fn folder_of_the_search_path_is_a_link_retargeted() {
    let space = space_with(
        "shadow-link",
        &[("second/a.h", "#define VALUE 1\n"), ("empty/x.h", "")],
    );
    space.write("full/a.h", "#define VALUE 2\n");
    space.link("first", "empty");
    let line = &format!("{ONE} -I first -I second");
    warm(&space, line);
    space.link("first", "full");
    rebuilt(&space, line);
}

#[test]
fn header_appears_beside_the_source() {
    let space = space_with("shadow-quote", &[("inc/a.h", "#define VALUE 1\n")]);
    space.write("src/case.cu", &format!("#include \"a.h\"\n{KERNEL}"));
    let line = "-c src/case.cu -o out.o -arch=sm_90 -I inc";
    warm(&space, line);
    space.write("src/a.h", "#define VALUE 2\n");
    rebuilt(&space, line);
}

#[test]
fn header_of_the_toolkit_is_shadowed() {
    let space = TestSpace::whole("shadow-toolkit");
    space.write("inc/x.h", "");
    space.write(
        "case.cu",
        &format!("#define VALUE 1\n#include <cuda_fp16.h>\n{KERNEL}"),
    );
    let line = &format!("{ONE} -I inc");
    warm(&space, line);
    space.write("inc/cuda_fp16.h", "int from_the_shadow() { return 1; }\n");
    rebuilt(&space, line);
}

#[test]
fn header_shadowed_for_one_architecture_only() {
    let space = space_with(
        "shadow-one-arch",
        &[("second/a.h", "#define VALUE 1\n"), ("first/x.h", "")],
    );
    space.write(
        "case.cu",
        &format!(
            "#if __CUDA_ARCH__ >= 900\n#include <a.h>\n#else\n#define VALUE 0\n#endif\n{KERNEL}"
        ),
    );
    let line = &format!("{TWO} -I first -I second");
    warm(&space, line);
    space.write("first/a.h", "#define VALUE 2\n");
    rebuilt(&space, line);
}

#[test]
fn has_include_turns_true_and_false() {
    let source = "#if __has_include(<maybe.h>)\n#define VALUE 2\n#else\n#define VALUE 1\n#endif\n";
    let space = space_with("has-include", &[("inc/x.h", "")]);
    space.write("case.cu", &format!("{source}{KERNEL}"));
    let line = &format!("{ONE} -I inc");
    warm(&space, line);
    space.write("inc/maybe.h", "");
    rebuilt(&space, line);
    space.remove("inc/maybe.h");
    // The first state again: either of the two recorded results, if it is the right one.
    space.agree(line);
}

#[test]
fn has_include_of_a_path_turns_true() {
    let source =
        "#if __has_include(\"deep/er/maybe.h\")\n#define VALUE 2\n#else\n#define VALUE 1\n#endif\n";
    let space = space_with("has-include-deep", &[]);
    space.write("case.cu", &format!("{source}{KERNEL}"));
    warm(&space, ONE);
    space.write("deep/er/maybe.h", "");
    rebuilt(&space, ONE);
}

#[test]
fn header_disappears() {
    let space = space_with("disappears", &[("inc/a.h", "#define VALUE 1\n")]);
    let line = &format!("{ONE} -I inc");
    warm(&space, line);
    space.remove("inc/a.h");
    let build = space.agree(line);
    build.demand_no_direct_hit();
    assert_eq!(build.outcome.code, 1, "a missing header compiled");
    space.write("inc/a.h", "#define VALUE 1\n");
    space.agree(line);
}

#[test]
fn include_next_finds_another() {
    let files = [
        ("first/a.h", "#include_next <a.h>\n"),
        ("second/x.h", ""),
        ("third/a.h", "#define VALUE 3\n"),
    ];
    let space = space_with("include-next", &files);
    let line = &format!("{ONE} -I first -I second -I third");
    warm(&space, line);
    space.write("second/a.h", "#define VALUE 2\n");
    rebuilt(&space, line);
}

#[test]
fn order_of_the_search_path_counts() {
    let files = [
        ("first/a.h", "#define VALUE 1\n"),
        ("second/a.h", "#define VALUE 2\n"),
    ];
    let space = space_with("include-order", &files);
    warm(&space, &format!("{ONE} -I first -I second"));
    rebuilt(&space, &format!("{ONE} -I second -I first"));
    rebuilt(&space, &format!("{ONE} -isystem second -I first -DNOTHING"));
}
