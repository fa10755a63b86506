//! Included files: whatever NVRTC could read counts, and nothing that it could not.

mod space;

use std::fs;
use std::path::Path;

use space::{Nvrtc, open_compiler, request};
use tempfile::TempDir;
use warpcc_rtc::{CacheSettings, CallLimits, CompileRequest, Found, KernelCache, Text};

/// A cache, an include folder, and a kernel that has the value of `VALUE` in its PTX.
struct Place {
    folder: TempDir,
    cache: KernelCache,
    request: CompileRequest,
}

impl Place {
    fn new(source: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("include/sub")).expect("folders");
        let mut request = request("k", source, "compute_90");
        request.include_folders = vec![folder.path().join("first"), folder.path().join("include")];
        let cache = cache_in(folder.path());
        Self {
            folder,
            cache,
            request,
        }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, text).expect("written");
    }

    /// The kernel's value, and where the kernel was found by this process, and by one that has just started.
    fn value(&self) -> (u32, Found, Found) {
        let (first, value) = self.get(&self.cache);
        let (second, again) = self.get(&cache_in(self.folder.path()));
        assert_eq!(value, again);
        (value, first, second)
    }

    fn get(&self, cache: &KernelCache) -> (Found, u32) {
        let image = cache
            .get(&self.request, &CallLimits::default())
            .expect("compiles");
        // The oracle is NVRTC, asked now.
        let plain = open_compiler(&Nvrtc::newest()).compile(&self.request, &CallLimits::default());
        assert_eq!(
            plain.expect("compiles").image,
            image.compiled.image,
            "a wrong hit"
        );
        let text = String::from_utf8_lossy(&image.compiled.image).into_owned();
        let value = text
            .split_once(".b32 \t%r1, ")
            .or_else(|| text.split_once("st.global.b32"));
        let value = value.map_or("", |(_, rest)| rest).chars();
        let digits: String = value
            .skip_while(|c| !c.is_ascii_digit())
            .take_while(char::is_ascii_digit)
            .collect();
        (image.found, digits.parse().unwrap_or(0))
    }
}

fn cache_in(folder: &Path) -> KernelCache {
    let settings = CacheSettings::in_folder(&folder.join("cache"));
    KernelCache::with(open_compiler(&Nvrtc::newest()), settings, None)
}

const KERNEL: &str = "extern \"C\" __global__ void k(int* x) { *x = VALUE; }\n";

#[test]
fn an_edited_header_is_another_kernel_and_the_old_one_comes_back() {
    let place = Place::new(&format!("#include \"a.h\"\n{KERNEL}"));
    place.write("include/a.h", "#include \"sub/b.h\"\n");
    place.write("include/sub/b.h", "#define VALUE 41\n");
    let (_, first, second) = place.value();
    assert_eq!((first, second), (Found::Made, Found::Disk));
    let (_, first, _) = place.value();
    assert_eq!(first, Found::Memory);
    // Touched, but the same.
    place.write("include/sub/b.h", "#define VALUE 41\n");
    assert_eq!(place.value().1, Found::Memory);
    place.write("include/sub/b.h", "#define VALUE 42\n");
    assert_eq!(place.value().1, Found::Made);
    place.write("include/sub/b.h", "#define VALUE 41\n");
    assert_eq!(place.value().1, Found::Disk);
}

#[test]
fn a_header_that_appears_before_another_counts() {
    let place = Place::new(&format!("#include <a.h>\n{KERNEL}"));
    place.write("include/a.h", "#define VALUE 1\n");
    assert_eq!(place.value().1, Found::Made);
    place.write("first/a.h", "#define VALUE 2\n");
    assert_eq!(place.value().1, Found::Made);
    fs::remove_file(place.folder.path().join("first/a.h")).expect("removed");
    assert_eq!(place.value().1, Found::Disk);
}

#[test]
fn headers_asked_for_without_being_read_count() {
    let place = Place::new(&format!(
        "#if __has_include(<sub/later.h>)\n#define VALUE 5\n#else\n#define VALUE 6\n#endif\n{KERNEL}"
    ));
    assert_eq!(place.value().1, Found::Made);
    place.write("include/sub/later.h", "");
    assert_eq!(place.value().1, Found::Made);
    assert_eq!(place.value().1, Found::Memory);
}

#[test]
fn a_name_that_a_macro_makes_is_followed_into_every_file() {
    let place = Place::new(&format!("#define H <sub/b.h>\n#include H\n{KERNEL}"));
    place.write("include/sub/b.h", "#define VALUE 8\n");
    assert_eq!(place.value().1, Found::Made);
    place.write("include/sub/b.h", "#define VALUE 9\n");
    assert_eq!(place.value().1, Found::Made);
    place.write("first/sub/b.h", "#define VALUE 10\n");
    assert_eq!(place.value().1, Found::Made);
    assert_eq!(place.value().1, Found::Disk);
    // A name that leads out of the folders is not stored at all.
    let place = Place::new(&format!("#define H \"../outside.h\"\n#include H\n{KERNEL}"));
    place.write("outside.h", "#define VALUE 8\n");
    assert_eq!(place.value().1, Found::Made);
    assert_eq!(place.value().1, Found::Made);
    assert!(
        place
            .cache
            .remarks()
            .iter()
            .any(|remark| remark.contains("is not stored"))
    );
}

#[test]
fn an_absolute_name_that_a_macro_makes_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let header = folder.path().join("outside.h");
    let place = Place::new(&format!(
        "#define H \"{}\"\n#include H\n{KERNEL}",
        header.display()
    ));
    fs::write(&header, "#define VALUE 8\n").expect("written");
    assert_eq!(place.value().1, Found::Made);
    fs::write(&header, "#define VALUE 9\n").expect("written");
    assert_eq!(place.value().1, Found::Made);
    assert_eq!(place.value().1, Found::Disk);
    assert_eq!(place.cache.remarks(), [] as [String; 0]);
}

#[test]
fn the_place_of_the_folders_counts_only_where_it_shows() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache_in(folder.path());
    for (header, options, same) in [
        ("#define VALUE 3\n", &[][..], true),
        ("#define VALUE sizeof(__FILE__)\n", &[][..], false),
        ("#define VALUE 3\n", &["-lineinfo"][..], false),
    ] {
        let mut keys = Vec::new();
        for name in ["here", "there"] {
            let include = folder.path().join(name);
            fs::create_dir_all(&include).expect("a folder");
            fs::write(include.join("a.h"), header).expect("written");
            let mut one = request("k", &format!("#include <a.h>\n{KERNEL}"), "compute_90");
            one.include_folders = vec![include];
            one.options = options.iter().map(|option| (*option).into()).collect();
            keys.push(
                cache
                    .get(&one, &CallLimits::default())
                    .expect("compiles")
                    .key,
            );
        }
        assert_eq!(keys[0] == keys[1], same, "{header} {options:?}");
    }
}

#[test]
fn a_text_goes_before_a_file_of_its_name() {
    let mut place = Place::new(&format!("#include \"a.h\"\n{KERNEL}"));
    place.write("include/a.h", "#define VALUE 1\n");
    place.request.headers = vec![Text::new("a.h", "#define VALUE 2\n")];
    place.value();
    place.request.headers = vec![Text::new("a.h", "#define VALUE 3\n")];
    assert_eq!(place.value().1, Found::Made);
}

#[test]
fn the_other_name_that_nvrtc_looks_for_counts() {
    let place = Place::new(&format!("#include <a>\n{KERNEL}"));
    place.write("include/a", "#define VALUE 1\n");
    assert_eq!(place.value().1, Found::Made);
    // The oracle in `get` says whether NVRTC takes it.
    place.write("include/a.stdh", "#define VALUE 2\n");
    assert_eq!(place.value().1, Found::Made);
}

/// With a toolkit's own headers, hundreds of files. That NVRTC opens none that was not found, and misses none that was
/// not noted, is seen with `strace -f -e trace=%file` on this test: NVRTC has a thread of its own.
#[test]
fn headers_of_a_toolkit_are_all_found() {
    let nvrtc = Nvrtc::newest();
    let include = nvrtc.folder.parent().expect("a toolkit").join("include");
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache_in(folder.path());
    let mut one = request(
        "k",
        "#include <cuda_fp16.h>\n#include <cuda/std/type_traits>\n\
         extern \"C\" __global__ void k(__half* x) { *x = __hadd(*x, *x); }\n",
        "compute_90",
    );
    one.include_folders = vec![include.clone(), include.join("cccl")];
    one.options = vec!["--std=c++17".into()];
    let made = cache
        .get(&one, &CallLimits::default())
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(made.key.is_some(), "{:?}", cache.remarks());
    assert_eq!(
        cache_in(folder.path())
            .get(&one, &CallLimits::default())
            .expect("found")
            .found,
        Found::Disk
    );
}
