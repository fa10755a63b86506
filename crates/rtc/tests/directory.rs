//! The working directory, which a process may change: alone in its program, since it is every thread's.

mod space;

use space::{Nvrtc, open_compiler, request};
use warpcc_rtc::{CacheSettings, CallLimits, Found, KernelCache, Text};

#[test]
fn a_result_of_one_directory_is_not_used_in_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = CacheSettings::in_folder(&folder.path().join("cache"));
    let cache = KernelCache::with(open_compiler(&Nvrtc::newest()), settings, None);
    let kernel = "#include <a.h>\n#include <t.h>\n__global__ void k(int* x) { *x = A + B; }";
    let mut relative = request("k", kernel, "compute_90");
    relative.include_folders = vec!["include".into()];
    // NVRTC looks for what a text includes in the working directory.
    relative.headers = vec![Text::new("t.h", "#include \"b.h\"\n")];
    let mut lines = request("l", "__global__ void l(int* x) { *x = 1; }", "compute_90");
    lines.options = vec!["-lineinfo".into()];
    for (index, name) in ["here", "there", "here"].into_iter().enumerate() {
        let place = folder.path().join(name);
        std::fs::create_dir_all(place.join("include")).expect("folders");
        if index < 2 {
            std::fs::write(place.join("include/a.h"), format!("#define A {index}00\n"))
                .expect("written");
            std::fs::write(place.join("b.h"), format!("#define B {index}\n")).expect("written");
        }
        std::env::set_current_dir(&place).expect("entered");
        for one in [&relative, &lines] {
            let image = cache.get(one, &CallLimits::default()).expect("compiles");
            let expected = match index {
                0 | 1 => Found::Made,
                _ => Found::Disk,
            };
            assert_eq!(image.found, expected, "{name} {}", one.name);
            let plain = open_compiler(&Nvrtc::newest()).compile(one, &CallLimits::default());
            assert!(
                plain.expect("compiles").image == image.compiled.image,
                "a wrong hit"
            );
            let again = cache.get(one, &CallLimits::default()).expect("there");
            assert_eq!(again.found, Found::Memory, "{name} {}", one.name);
        }
    }
}
