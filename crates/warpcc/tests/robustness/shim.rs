//! Tests `warpcc shim`: a toolkit folder whose nvcc is warpcc.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::space;
use crate::space::{Outcome, Program, TestSpace};

const LINE: &str = "-c case.cu -o out.o -arch=sm_80";

fn shim(space: &TestSpace, args: &[&str]) -> Outcome {
    let args: Vec<&str> = ["shim"].into_iter().chain(args.iter().copied()).collect();
    space.warpcc_with(&args)
}

/// A space in which the toolkit's nvcc is in PATH, and the shim made.
fn with_shim(name: &str) -> TestSpace {
    let mut space = space(name);
    let bin = space.toolkit.nvcc.parent().map(Path::to_owned);
    let path = format!("{}:/usr/bin:/bin", bin.expect("bin").display());
    space.set_env("PATH", &path);
    let made = shim(&space, &["tk"]);
    assert_eq!(made.code, 0, "{}", made.stderr_text());
    space
}

#[test]
fn its_nvcc_hits_and_makes_what_the_toolkits_own_makes() {
    let space = with_shim("shim-hits");
    let nvcc = Program::Other(space.work().join("tk/bin/nvcc"), Vec::new());
    let built = space.agree_as(&nvcc, LINE, crate::space::Exactness::Bytes);
    built.demand_no_fallback();
    let again = space.agree_as(&nvcc, LINE, crate::space::Exactness::Bytes);
    again.demand_direct_hit();
    // The launcher's call of the toolkit's own nvcc is the same call.
    space.agree(LINE).demand_direct_hit();
    // The files that programs look for in CUDA_HOME are there.
    for name in ["include/cuda.h", "bin/ptxas", "bin/nvcc.profile"] {
        assert!(space.work().join("tk").join(name).exists(), "{name}");
    }
}

#[test]
fn it_is_made_again_and_removed_and_nobody_elses_folder_is() {
    let space = with_shim("shim-again");
    let toolkit = space.work().join("tk");
    symlink("/nowhere", toolkit.join("stale")).expect("link");
    assert_eq!(shim(&space, &["tk"]).code, 0);
    assert!(!toolkit.join("stale").is_symlink());
    // A user's own file stays, and so does the folder around it.
    fs::write(toolkit.join("mine"), "mine").expect("write");
    let kept = shim(&space, &["tk", "--undo"]);
    assert_ne!(kept.code, 0);
    assert_eq!(space.read("tk/mine"), b"mine");
    fs::remove_file(toolkit.join("mine")).expect("remove");
    fs::write(toolkit.join(".warpcc-shim"), "").expect("write");
    assert_eq!(shim(&space, &["tk", "--undo"]).code, 0);
    assert!(!toolkit.exists());

    space.write("other/file", "mine");
    for args in [&["other"][..], &["other", "--undo"]] {
        let refused = shim(&space, args);
        assert_ne!(refused.code, 0);
        assert!(refused.stderr_text().contains("warpcc"), "{args:?}");
    }
    assert_eq!(space.read("other/file"), b"mine");
    let real = space.toolkit.nvcc.canonicalize().expect("nvcc");
    let real = real.parent().and_then(Path::parent).expect("a toolkit");
    let refused = shim(&space, &[&real.to_string_lossy()]);
    assert!(refused.stderr_text().contains("the toolkit itself"));
}

#[test]
fn one_of_another_is_one_of_its_toolkit() {
    let space = with_shim("shim-of-shim");
    let nvcc = |folder: &str| space.work().join(folder).join("bin/nvcc");
    let script = |folder: &str| fs::read(nvcc(folder)).expect("read");
    let first = script("tk");
    for (new, old) in [("second", "tk"), ("tk", "second"), ("tk", "tk")] {
        let made = shim(&space, &[new, "--nvcc", &nvcc(old).display().to_string()]);
        assert_eq!(made.code, 0, "{}", made.stderr_text());
        assert!(script(new) == first, "{new} is of {old}");
    }
    let again = Program::Other(nvcc("tk"), Vec::new());
    space.agree_as(&again, LINE, crate::space::Exactness::Bytes);
}

#[test]
fn one_that_a_link_names_is_removed() {
    let space = with_shim("shim-link");
    let (folder, link) = (space.work().join("tk"), space.work().join("link"));
    symlink("tk", &link).expect("link");
    let removed = shim(&space, &["link", "--undo"]);
    assert_eq!(removed.code, 0, "{}", removed.stderr_text());
    assert!(!folder.exists() && link.is_symlink());
}

#[test]
fn without_warpcc_it_is_the_toolkits_own() {
    let space = with_shim("shim-gone");
    let file = space.work().join("tk/bin/nvcc");
    let script = fs::read_to_string(&file).expect("the script");
    let own = TestSpace::warpcc().canonicalize().expect("warpcc");
    let gone = script.replace(&*own.to_string_lossy(), "/gone/warpcc");
    assert_ne!(script, gone);
    fs::write(&file, gone).expect("write");
    let line = space.words(LINE);
    let built = space.run(&Program::Other(file, Vec::new()), &line);
    assert_eq!(built.code, 0, "{}", built.stderr_text());
    assert!(space.exists("out.o"));
    assert_eq!(space.stats().count("total"), 0);
}
