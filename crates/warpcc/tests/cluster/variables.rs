//! Variables that tools ask for: on a cluster nobody traces a tool, and none of this machine's variables is there.

use std::path::Path;

use warpcc_testkit::casd::Casd;

use crate::{KERNEL, OF_TWO, TWO, executed, space};

/// cudafe++, cicc, ptxas, fatbinary and the host compile, one of each.
const ONE: &str = "-c case.cu -o out.o -arch=sm_80";
const OF_ONE: u64 = 5;

#[test]
fn a_step_whose_tool_would_miss_a_variable_stays() {
    let Some(casd) = Casd::start() else { return };
    let mut space = space("cluster-variables", &casd.address());
    // The tools go up, so that nothing after this is late and done here as well.
    space.build(TWO);
    // The one is of cudafe++ and cicc, the other of the host compiler.
    for (name, value, stay) in [
        ("USR_INCLUDE", "include", 3),
        ("GCC_EXTRA_DIAGNOSTIC_OUTPUT", "fixits-v2", 1),
    ] {
        space.set_env(name, value);
        space.write("case.cu", &KERNEL.replace("3.5f", &format!("{stay}.25f")));
        let before = executed(&space);
        space.agree(TWO).demand_no_fallback();
        assert_eq!(executed(&space) - before, OF_TWO - stay, "{name}");
        space.unset_env(name);
    }
}

/// A release that nobody compared with the table: the steps of its tools run here until they were seen here.
#[test]
fn tools_of_an_unknown_release_are_seen_here_first() {
    let Some(casd) = Casd::start() else { return };
    let mut space = space("cluster-unknown-release", &casd.address());
    let real = space.toolkit.nvcc.clone();
    let bin = real.parent().map(Path::to_owned).expect("a folder");
    space.script(
        "tk/bin/nvcc",
        &format!(
            "#!/bin/sh\n'{}' \"$@\" 2> err.$$\ncode=$?\n\
             sed 's/__CUDACC_VER_MINOR__=[0-9]*/__CUDACC_VER_MINOR__=99/' err.$$ >&2\nrm err.$$\nexit $code\n",
            real.display()
        ),
    );
    space.write(
        "tk/bin/nvcc.profile",
        &String::from_utf8(std::fs::read(bin.join("nvcc.profile")).expect("a profile"))
            .expect("text"),
    );
    space.toolkit.nvcc = space.work().join("tk/bin/nvcc");
    space.agree(ONE).demand_no_fallback();
    // The host compiler is a known one.
    assert_eq!(executed(&space), 1);
    // Now they go up, and then nothing is late and done here as well.
    space.write("case.cu", &KERNEL.replace("3.5f", "4.5f"));
    space.build(ONE);
    space.write("case.cu", &KERNEL.replace("3.5f", "5.5f"));
    let before = executed(&space);
    space.agree(ONE).demand_no_fallback();
    assert_eq!(executed(&space) - before, OF_ONE);
}
