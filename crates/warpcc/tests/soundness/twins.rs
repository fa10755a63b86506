//! gcc takes two files of one content for one, for `#pragma once`, where their times are equal too.

use crate::space::TestSpace;
use crate::{KERNEL, ONE, warm};

#[test]
fn one_of_two_equal_headers_gets_another_time() {
    let space = TestSpace::new("twins");
    space.write(
        "case.cu",
        &format!("#include \"a/x.h\"\n#include \"b/x.h\"\n#define VALUE 1\n{KERNEL}"),
    );
    for folder in ["a", "b"] {
        let header = format!("{folder}/x.h");
        space.write(&header, "#pragma once\nstruct Once {};\n");
        space.set_old(&header);
    }
    warm(&space, ONE);
    // A touch of both, and of one.
    for header in ["a/x.h", "b/x.h"] {
        let text = "#pragma once\nstruct Once {};\n";
        space.write(header, text);
        std::thread::sleep(std::time::Duration::from_millis(1100));
    }
    // nvcc reads both now, and finds the structure twice.
    space.agree(ONE).demand_no_direct_hit();
}
