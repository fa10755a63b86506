//! The headers that NVRTC carries with it (13.3 and newer).

mod space;

use space::{Nvrtc, open_compiler, request};
use warpcc_rtc::{CacheSettings, CallLimits, ErrorKind, Found, KernelCache};

#[test]
fn headers_of_the_newest_are_written_out_and_are_files_like_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let compiler = open_compiler(&Nvrtc::newest());
    let carried = compiler.bundled_headers().expect("13.5 has headers");
    assert_eq!(carried.version, compiler.version());
    assert!(
        carried.files > 100 && carried.bytes > 1 << 20,
        "{carried:?}"
    );
    let headers = folder.path().join("headers");
    let folders = compiler.install_bundled_headers(&headers).expect("written");
    assert!(
        folders[0].join("cuda_fp16.h").is_file()
            && folders[1].join("cuda/std/type_traits").is_file()
    );
    // Again: they are there.
    assert_eq!(
        compiler.install_bundled_headers(&headers).expect("there"),
        folders
    );
    let cache = KernelCache::with(compiler, CacheSettings::default(), None);
    let mut one = request(
        "k",
        "#include <cuda_fp16.h>\n__global__ void k(half* x) { *x = *x + *x; }",
        "compute_90",
    );
    one.include_folders = folders.clone();
    let get = || {
        cache
            .get(&one, &CallLimits::default())
            .expect("compiles")
            .found
    };
    assert_eq!((get(), get()), (Found::Made, Found::Memory));
    // One of them is another one.
    let header = folders[0].join("cuda_fp16.h");
    let text = std::fs::read_to_string(&header).expect("a header");
    std::fs::write(&header, format!("{text}\n// touched\n")).expect("written");
    assert_eq!(get(), Found::Made);
}

#[test]
fn older_ones_say_what_is_needed() {
    for nvrtc in &Nvrtc::all()[1..] {
        let compiler = open_compiler(nvrtc);
        assert_eq!(compiler.bundled_headers(), None);
        let folder = tempfile::tempdir().expect("a folder");
        let error = compiler
            .install_bundled_headers(folder.path())
            .expect_err("none");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("13.3"), "{error}");
    }
    let error = open_compiler(&Nvrtc::newest())
        .install_bundled_headers(std::path::Path::new("/proc/none"))
        .expect_err("no place for them");
    assert_eq!(error.kind(), ErrorKind::File);
    assert!(error.to_string().contains("/proc/none"), "{error}");
}
