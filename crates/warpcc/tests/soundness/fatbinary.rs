//! Tests fatbinary, which gets another option in warpcc's plan than under nvcc: the plan is made with `--keep`.

use crate::space::Program;
use crate::{ONE, simple};

/// The name of the file that is created. With `--keep` nvcc gives one, and fatbinary warns of the second one.
#[test]
fn a_second_name_for_the_fat_binary_is_no_warning() {
    let space = simple("second-name");
    space.write("options", "--create=x\n");
    for option in ["--create=x", "--options-file,options"] {
        let words = space.words(&format!("{ONE} -Xfatbin {option}"));
        let wanted = space.run(&Program::Nvcc, &words);
        assert!(wanted.code == 0 && space.exists("x"), "{wanted:?}");
        for _ in 0..2 {
            space.remove("x");
            let got = space.run(&Program::Launcher, &words);
            assert_eq!((got.code, got.stderr_text()), (0, wanted.stderr_text()));
            assert!(space.exists("x"));
        }
        space.remove("x");
    }
}
