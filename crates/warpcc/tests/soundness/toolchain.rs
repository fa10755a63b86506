//! Changes to the compilers themselves, at the same path and at another.

use crate::space::{Program, TestSpace, Toolkit, make_dir, small};
use crate::{KERNEL, ONE, TWO, rebuilt, warm};
use std::fs;
use std::os::unix::fs::symlink;

fn space(name: &str) -> TestSpace {
    space_of(name, small(Toolkit::newest()))
}

fn space_of(name: &str, toolkit: Toolkit) -> TestSpace {
    let space = TestSpace::with_toolkit(name, toolkit);
    space.write(
        "case.cu",
        &format!("#ifndef VALUE\n#define VALUE 1\n#endif\n{KERNEL}"),
    );
    space
}

fn wrapper(value: u32) -> String {
    format!("#!/bin/sh\nexec /usr/bin/g++ -DVALUE={value} \"$@\"\n")
}

#[test]
fn another_host_compiler_at_the_same_path() {
    let space = space("host-compiler");
    space.script("bin/g++", &wrapper(1));
    let line = &format!("{ONE} -ccbin {{work}}/bin/g++");
    space.build(line);
    space.script("bin/g++", &wrapper(2));
    space.agree(line).demand_no_direct_hit();
    // As a folder, where nvcc picks the name.
    let line = &format!("{ONE} -ccbin {{work}}/bin");
    space.script("bin/gcc", &wrapper(3));
    space.agree(line);
    space.script("bin/g++", &wrapper(4));
    space.script("bin/gcc", &wrapper(4));
    space.agree(line).demand_no_direct_hit();
}

#[test]
fn link_to_the_host_compiler_is_retargeted() {
    let space = space("host-compiler-link");
    space.script("one", &wrapper(1));
    space.script("two", &wrapper(2));
    space.link("g++", "{work}/one");
    let line = &format!("{ONE} -ccbin {{work}}/g++");
    space.build(line);
    space.link("g++", "{work}/two");
    space.agree(line).demand_no_direct_hit();
}

#[test]
fn another_toolkit() {
    let mut space = space("toolkit");
    warm(&space, ONE);
    space.toolkit = small(Toolkit::older());
    rebuilt(&space, ONE);
    space.toolkit = small(Toolkit::newest());
    space.agree(ONE).demand_direct_hit();
}

#[test]
fn another_toolkit_at_the_same_path() {
    let mut space = space("toolkit-link");
    let (newest, older) = (small(Toolkit::newest()), small(Toolkit::older()));
    space.link("cuda", &newest.top().to_string_lossy());
    space.toolkit.nvcc = space.work().join("cuda/bin/nvcc");
    space.build(ONE);
    space.link("cuda", &older.top().to_string_lossy());
    space.agree(ONE).demand_no_direct_hit();
}

/// A toolkit of links whose tools can be replaced one by one.
/// Makes a toolkit of links to the space's own, beside its working folder.
pub fn linked_toolkit(space: &TestSpace) {
    let (from, to) = (space.toolkit.top(), space.beside("toolkit"));
    make_dir(&to.join("bin"));
    for (source, target) in [
        (from.clone(), to.clone()),
        (from.join("bin"), to.join("bin")),
    ] {
        let listing = fs::read_dir(&source).expect("the toolkit's folder");
        for item in listing.flatten().filter(|item| item.file_name() != "bin") {
            let link = target.join(item.file_name());
            symlink(item.path(), &link).expect("linking the toolkit");
        }
    }
    // nvcc finds its folder through its own path, and reads its profile there.
    for name in ["nvcc", "nvcc.profile"] {
        let path = to.join("bin").join(name);
        fs::remove_file(&path).expect("the link");
        fs::copy(from.join("bin").join(name), &path).expect("copying nvcc");
    }
}

#[test]
fn a_tool_of_the_toolkit_is_replaced() {
    let mut space = space_of("tool-replaced", Toolkit::newest());
    linked_toolkit(&space);
    let real = space.toolkit.top().join("bin/ptxas");
    space.toolkit.nvcc = space.beside("toolkit/bin/nvcc");
    warm(&space, ONE);
    let ptxas = space.beside("toolkit/bin/ptxas");
    fs::remove_file(&ptxas).expect("the link");
    space.script(
        "ptxas",
        &format!("#!/bin/sh\nexec {} -O0 \"$@\"\n", real.display()),
    );
    fs::rename(space.work().join("ptxas"), &ptxas).expect("the new ptxas");
    space.agree(ONE).demand_no_direct_hit();
}

#[test]
fn the_profile_of_the_toolkit_changes() {
    let mut space = space_of("profile", Toolkit::newest());
    linked_toolkit(&space);
    space.toolkit.nvcc = space.beside("toolkit/bin/nvcc");
    warm(&space, ONE);
    let profile = space.beside("toolkit/bin/nvcc.profile");
    let text = fs::read_to_string(&profile).expect("nvcc.profile");
    fs::write(
        &profile,
        format!("{text}\nINCLUDES += \"-DVALUE=7\" $(_SPACE_)\n"),
    )
    .expect("nvcc.profile");
    space.agree(ONE).demand_no_direct_hit();
}

#[test]
fn a_script_that_picks_the_toolkit() {
    let mut space = space("nvcc-script");
    let script = |toolkit: &Toolkit| format!("#!/bin/sh\nexec {} \"$@\"\n", toolkit.nvcc.display());
    space.script("bin/nvcc", &script(&small(Toolkit::newest())));
    space.toolkit.nvcc = space.work().join("bin/nvcc");
    space.build(ONE);
    space.script("bin/nvcc", &script(&small(Toolkit::older())));
    space.agree(ONE).demand_no_direct_hit();
}

#[test]
fn launcher_and_run_share_results() {
    let space = space("launcher-run");
    warm(&space, TWO);
    let nvcc = space.toolkit.nvcc.to_string_lossy().into_owned();
    let run = Program::Other(
        TestSpace::warpcc(),
        ["run", "--nvcc", &nvcc, "--"].map(str::to_owned).to_vec(),
    );
    space
        .agree_as(&run, TWO, crate::space::Exactness::Bytes)
        .demand_direct_hit();
}
