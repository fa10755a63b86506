//! NVRTC that is not loaded before something is compiled.

mod space;

use std::ffi::OsString;
use std::path::Path;

use space::{Nvrtc, get, request};
use warpcc_rtc::{CacheSettings, Compiler, Environment, Found, KernelCache};

fn is_loaded() -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the kernel says so");
    maps.contains("libnvrtc")
}

/// As a program starts: with NVRTC in this folder.
fn start(libraries: &Path, cache: &Path) -> KernelCache {
    let named = (
        OsString::from("WARPCC_NVRTC"),
        libraries.as_os_str().to_owned(),
    );
    let environment = Environment::from_variables([named]);
    let settings = CacheSettings::in_folder(cache);
    let compiler = Compiler::find_for(&settings, &environment).expect("NVRTC");
    KernelCache::with(compiler, settings, None)
}

#[test]
fn a_process_whose_kernels_are_found_does_not_load_nvrtc() {
    let folder = tempfile::tempdir().expect("a folder");
    let newest = Nvrtc::newest();
    let one = request("k", "__global__ void k() {}", "sm_90");
    // As another process, since a library stays loaded.
    let inside = std::env::var_os("WARPCC_TEST_INSIDE");
    if let Some(cache) = inside {
        let cache = start(&newest.folder, Path::new(&cache));
        let before = is_loaded();
        let found = get(&cache, &one).found;
        let version = cache.compiler().version();
        let targets = cache.target_for(90).expect("a target");
        let other = request("other", "__global__ void other() {}", "sm_90");
        let after = is_loaded();
        let made = get(&cache, &other).found;
        println!(
            "said {before} {found:?} {version} {targets} {after} {made:?} {}",
            is_loaded()
        );
        return;
    }
    let run = || {
        let test = "a_process_whose_kernels_are_found_does_not_load_nvrtc";
        let mut command = std::process::Command::new(std::env::current_exe().expect("this"));
        let command = command.args(["--exact", test, "--nocapture"]);
        let output = command.env("WARPCC_TEST_INSIDE", folder.path()).output();
        let said = String::from_utf8(output.expect("it starts").stdout).expect("text");
        let line = said.lines().find_map(|line| line.strip_prefix("said "));
        line.unwrap_or_else(|| panic!("{said}")).to_owned()
    };
    assert_eq!(run(), "true Made 13.5 sm_90 true Made true");
    let cache = start(&newest.folder, folder.path());
    let other = request("other", "__global__ void other() {}", "sm_90");
    assert_eq!(get(&cache, &other).found, Found::Disk);
    assert!(!is_loaded());
    cache.clear().expect("emptied");
    // The note is still there, or was removed with the images: NVRTC is loaded for a miss at the latest.
    assert!(run().ends_with("sm_90 true Made true"));
}

#[test]
fn another_nvrtc_in_the_same_place_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let libraries = folder.path().join("lib");
    std::fs::create_dir(&libraries).expect("a folder");
    let cache = folder.path().join("cache");
    let link = libraries.join("libnvrtc.so.13");
    let one = request("k", "__global__ void k() {}", "sm_90");
    let versions = Nvrtc::all()
        .into_iter()
        .filter(|nvrtc| nvrtc.version.starts_with("13."));
    let mut places: Vec<Nvrtc> = versions.collect();
    places.push(Nvrtc::newest());
    for (round, nvrtc) in places.iter().enumerate() {
        drop(std::fs::remove_file(&link));
        std::os::unix::fs::symlink(nvrtc.folder.join("libnvrtc.so.13"), &link).expect("a link");
        for _ in 0..2 {
            let started = start(&libraries, &cache);
            assert_eq!(started.compiler().version().to_string(), nvrtc.version);
            assert_eq!(started.compiler().library().parent(), Some(&*nvrtc.folder));
            let image = get(&started, &one);
            let is_new = image.found == Found::Made;
            assert!(!is_new || round < 2, "round {round}");
        }
    }
}

#[test]
fn what_is_no_nvrtc_is_an_error_as_ever() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("libnvrtc.so.13"), "no library").expect("written");
    let named = (
        OsString::from("WARPCC_NVRTC"),
        folder.path().as_os_str().to_owned(),
    );
    let environment = Environment::from_variables([named]);
    let settings = CacheSettings::in_folder(&folder.path().join("cache"));
    let error = Compiler::find_for(&settings, &environment).expect_err("no library");
    let expected = Compiler::find_with(None, &environment).expect_err("no library");
    assert_eq!(error.to_string(), expected.to_string());
}
