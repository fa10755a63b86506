//! Warming the driver's cache, with a stand-in for the driver.

use std::fs;
use std::path::Path;
use std::process::Command;

use warpcc_testkit::Toolkit;

use crate::{Space, ptx};

/// A space with the stand-in for a driver.
pub fn with_driver() -> Space {
    let mut space = Space::new(Toolkit::newest());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jit/fake_driver.c");
    let made = Command::new("g++")
        .args(["-xc", "-shared", "-fPIC", "-o"])
        .arg(space.at().join("libcuda.so.1"))
        .arg(source)
        .status();
    assert!(made.expect("g++ starts").success());
    let (library, cache) = (space.at().to_owned(), space.at().join("cache"));
    space.variables.push(("LD_LIBRARY_PATH", library));
    space.variables.push(("CUDA_CACHE_PATH", cache));
    space.fatbin("a.fatbin", "80", &ptx("sm_80", "one", ""));
    space.fatbin("b.fatbin", "80", &ptx("sm_80", "two", ""));
    space
}

#[test]
fn warming_fills_the_cache_and_proves_it() {
    let mut space = with_driver();
    let warmed = space.json("warm a.fatbin b.fatbin --json", 0);
    assert_eq!(
        (&warmed["gpu"], &warmed["driver"]),
        (&"sm_90".into(), &"13.5".into())
    );
    for module in warmed["modules"].as_array().expect("a list") {
        let seconds = |name: &str| module[name].as_f64().expect("a time");
        assert!(
            seconds("first_seconds") > 2.0 * seconds("second_seconds"),
            "{module}"
        );
        assert_eq!(module["stored"], true);
        assert_eq!(module["kept"], module["stored"], "its old name");
    }
    assert_eq!(
        (&warmed["before"]["files"], &warmed["after"]["files"]),
        (&0.into(), &2.into())
    );
    let shown = space.said("warm a.fatbin", 0);
    assert!(
        shown.contains("1 of 1 load with compiling switched off"),
        "{shown}"
    );
    // The cache's contents can be listed and removed.
    fs::write(space.at().join("cache/mine"), "x").expect("written");
    assert_eq!(space.json("cache --json", 0)["held"]["files"], 2);
    let cleared = space.json("cache --clear --json", 0);
    assert_eq!(cleared["left"][0], "mine");
    assert!(space.at().join("cache/mine").exists() && !space.at().join("cache/index").exists());
    space.variables.push(("FAKE_FORGETS", "1".into()));
    let shown = space.said("warm a.fatbin", 1);
    assert!(
        shown.contains("NOT STORED") && shown.contains("0 of 1 load"),
        "{shown}"
    );
    space.variables.push(("CUDA_CACHE_DISABLE", "1".into()));
    assert!(space.said("warm a.fatbin", 2).contains("unset it"));
    space
        .variables
        .retain(|(name, _)| *name != "CUDA_CACHE_DISABLE");
    space.variables.push(("FAKE_NO_GPU", "1".into()));
    assert!(
        space
            .said("warm a.fatbin", 2)
            .contains("CUDA_ERROR_NO_DEVICE")
    );
}

#[test]
fn a_module_that_a_driver_refuses_or_dies_of_spoils_no_other() {
    let space = with_driver();
    space.fatbin("crash.fatbin", "80", &ptx("sm_80", "crash", ""));
    space.fatbin("refuse.fatbin", "80", &ptx("sm_80", "refuse", ""));
    let parts = ["a", "crash", "refuse", "b"]
        .map(|name| fs::read(space.at().join(format!("{name}.fatbin"))).expect("readable"));
    fs::write(space.at().join("lib.fatbin"), parts.concat()).expect("written");
    let warmed = space.json("warm lib.fatbin --json", 1);
    let stored: Vec<Option<bool>> = (0..4)
        .map(|n| warmed["modules"][n]["stored"].as_bool())
        .collect();
    assert_eq!(stored, [Some(true), None, None, Some(true)]);
    assert!(
        warmed["modules"][1]["trouble"]
            .to_string()
            .contains("signal")
    );
    assert!(warmed["modules"][2]["trouble"].to_string().contains("218"));
    let proof = space.json("prove lib.fatbin --load --json", 2);
    assert_eq!(proof["driver"]["compiled"], 2);
    assert!(
        proof["failures"][0]["complaints"]
            .to_string()
            .contains("line 6")
    );
    assert!(proof["unknown"].to_string().contains("signal"));
}
