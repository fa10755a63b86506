//! Tests images that a program brings: PTX is compiled once, and the right image of a fat binary is chosen.

use warpcc_rtc::{CacheSettings, CallLimits, Compiler, Found, KernelCache};
use warpcc_testkit::Toolkit;

use crate::space::{Nvrtc, cache_in, get, open_compiler, request};

#[test]
fn ptx_is_compiled_once_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache_in(folder.path());
    let ptx = get(
        &cache,
        &request("k", "extern \"C\" __global__ void k() {}", "compute_80"),
    );
    let load = |cache: &KernelCache, ptx: &[u8], arch: &str| {
        cache
            .load_ptx("k", ptx, arch.parse().expect("sm"), &CallLimits::default())
            .expect("compiles")
    };
    let made = load(&cache, &ptx.compiled.image, "sm_90");
    assert_eq!(made.found, Found::Made);
    assert!(made.compiled.image.starts_with(b"\x7fELF"));
    assert_eq!(
        load(&cache, &ptx.compiled.image, "sm_90").found,
        Found::Memory
    );
    assert_eq!(
        load(&cache_in(folder.path()), &ptx.compiled.image, "sm_90").found,
        Found::Disk
    );
    assert_eq!(
        load(&cache, &ptx.compiled.image, "sm_80").found,
        Found::Made
    );
    let mut other = ptx.compiled.image.to_vec();
    other.extend_from_slice(b"// a comment\n");
    assert_eq!(load(&cache, &other, "sm_90").found, Found::Made);
    let disabled = CacheSettings {
        disable_ptx_jit: true,
        ..CacheSettings::default()
    };
    let cache = KernelCache::with(open_compiler(&Nvrtc::newest()), disabled, None);
    let refused = cache.load_ptx(
        "k",
        &other,
        "sm_90".parse().expect("sm"),
        &CallLimits::default(),
    );
    assert!(
        refused
            .expect_err("switched off")
            .to_string()
            .contains("CUDA_DISABLE_PTX_JIT")
    );
    assert!(cache.target_for(999).is_err() && cache.target_for(90).is_ok());
    let forced = CacheSettings {
        force_ptx_jit: true,
        ..CacheSettings::default()
    };
    let cache = KernelCache::with(
        Compiler::open(&Nvrtc::newest().folder).expect("NVRTC"),
        forced,
        None,
    );
    assert_eq!(
        cache.target_for(90).expect("a target").to_string(),
        "compute_90"
    );
}

#[test]
fn of_a_fat_binary_comes_what_a_driver_would_take() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(
        folder.path().join("k.cu"),
        "extern \"C\" __global__ void k(int* x) { *x = 1; }",
    )
    .expect("written");
    let status = Toolkit::newest()
        .nvcc_with_small_headers(folder.path())
        .args(["-fatbin", "k.cu", "-o", "k.fatbin"])
        .args(["-gencode", "arch=compute_80,code=[sm_80,compute_80]"])
        .args(["-gencode", "arch=compute_90a,code=sm_90a"])
        .status();
    assert!(status.expect("nvcc").success());
    let bytes = std::fs::read(folder.path().join("k.fatbin")).expect("readable");
    let cache = cache_in(&folder.path().join("cache"));
    let image = |cache: &KernelCache, device| {
        cache.get_fatbin("k", &bytes, device, None, &CallLimits::default())
    };
    // Ready-made, of the very GPU and of an older one of its kind.
    for (device, arch) in [(80, "sm_80"), (86, "sm_80"), (90, "sm_90a")] {
        let image = image(&cache, device).expect("an image");
        assert_eq!(
            (image.found, image.compiled.target.to_string()),
            (Found::Given, arch.to_owned())
        );
        assert!(image.compiled.image.starts_with(b"\x7fELF"));
    }
    // From PTX, kept.
    let made = image(&cache, 100).expect("compiled");
    assert_eq!(
        (made.found, made.compiled.target.to_string()),
        (Found::Made, "sm_100".to_owned())
    );
    let second = cache_in(&folder.path().join("cache"));
    assert_eq!(image(&second, 100).expect("an image").found, Found::Disk);
    // Nothing in it is for an older one: the driver's own error, and what to do.
    let error = image(&cache, 75).expect_err("too old").to_string();
    assert!(
        error.contains("209") && error.contains("compile for this one"),
        "{error}"
    );
    let disabled = CacheSettings {
        disable_ptx_jit: true,
        ..CacheSettings::default()
    };
    let disabled = KernelCache::with(open_compiler(&Nvrtc::newest()), disabled, None);
    assert_eq!(
        image(&disabled, 80).expect("ready-made").found,
        Found::Given
    );
    let error = image(&disabled, 100).expect_err("switched off").to_string();
    assert!(error.contains("223"), "{error}");
    let forced = CacheSettings {
        force_ptx_jit: true,
        ..CacheSettings::default()
    };
    let forced = KernelCache::with(open_compiler(&Nvrtc::newest()), forced, None);
    assert_eq!(image(&forced, 80).expect("compiled").found, Found::Made);
    // Cut short, or something else.
    for bad in [&bytes[..20], b"hello", b""] {
        assert!(
            cache
                .get_fatbin("k", bad, 80, None, &CallLimits::default())
                .is_err()
        );
    }
}
