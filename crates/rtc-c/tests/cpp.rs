//! C++ programs against the library that was just built, through its C++ header.

mod built;

use built::{Built, Nvidia};

#[test]
fn many_kernels_packs_and_files_work_from_cpp() {
    let built = Built::new();
    let exe = built.compile_cpp("tests/c/many.cpp");
    let said = built.run(&exe, &Nvidia::newest(), &[]);
    assert_eq!(said, "done\n");
}
