//! Tests the cache of one process: what hits, what misses, and what it reports when it fails.

mod debug_sources;
mod many;
mod observed;
mod products;
mod ready_images;
mod shared_cache;
#[path = "../space/mod.rs"]
mod space;
mod tiers;

use std::collections::HashSet;
use std::sync::Barrier;

use space::{Nvrtc, cache_in, cached, get, open_compiler, request};
use warpcc_rtc::{
    CacheSettings, CallLimits, CompileRequest, Error, ErrorKind, Found, KernelCache, Target, Text,
};

const SOURCE: &str = "template<class T> __global__ void scale(T* x) { *x *= N; }\n";

fn sm_90() -> Target {
    "sm_90".parse().expect("a target")
}

#[test]
fn a_change_deep_inside_a_long_text_is_no_hit() {
    let cache = KernelCache::with(
        open_compiler(&Nvrtc::newest()),
        CacheSettings::default(),
        None,
    );
    // Of one length, and alike at both ends and at every place where a long text is sampled.
    let long = |digit: u32| {
        let padding = "// some words that nobody compiles\n".repeat(400);
        let (before, after) = padding.split_at(padding.len() / 35 / 16 * 35);
        format!("{before}\n#define N {digit}\n{after}")
    };
    let programs: Vec<_> = (0..4)
        .map(|index| {
            let source = "extern \"C\" __global__ void k(int* x) { *x = N + M; }\n";
            let mut one = request("k", &format!("{}{source}", long(index)), "compute_90");
            one.preamble
                .push(Text::new("p", long(7).replace(" N ", " M ")));
            one
        })
        .collect();
    let images: Vec<_> = programs.iter().map(|one| get(&cache, one)).collect();
    let distinct: HashSet<_> = images.iter().map(|image| &image.compiled.image).collect();
    assert_eq!(distinct.len(), programs.len());
    for (one, image) in programs.iter().zip(&images) {
        // At hand, and with texts of its own.
        let mut again = one.clone();
        again.source = (*one.source).into();
        again.preamble[0].text = (*one.preamble[0].text).into();
        for asked in [one, &again] {
            let found = get(&cache, asked);
            assert_eq!(found.found, Found::Memory);
            assert!(found.compiled.image == image.compiled.image, "a wrong hit");
        }
        let mut other = one.clone();
        other.preamble[0].text = one.preamble[0].text.replace(" M 7", " M 8").into();
        assert!(cached(&cache, &other).is_none());
    }
}

#[test]
fn memory_then_disk_then_compiling() {
    let folder = tempfile::tempdir().expect("a folder");
    for nvrtc in Nvrtc::all() {
        let new = || {
            let settings = CacheSettings::in_folder(folder.path());
            KernelCache::with(open_compiler(&nvrtc), settings, None)
        };
        let (first, second) = (new(), new());
        let image = |cache: &KernelCache| {
            cache
                .get_image(
                    "#define N 3",
                    "scale<float>",
                    SOURCE,
                    sm_90(),
                    &CallLimits::default(),
                )
                .expect("compiles")
        };
        let made = image(&first);
        assert_eq!(made.found, Found::Made, "NVRTC {}", nvrtc.version);
        assert_eq!(
            made.compiled.lowered_name("scale<float>"),
            Some("_Z5scaleIfEvPT_")
        );
        assert_eq!(image(&first).found, Found::Memory);
        let read = image(&second);
        assert_eq!((read.found, read.key), (Found::Disk, made.key));
        assert_eq!(read.compiled, made.compiled);
        assert_eq!(image(&second).found, Found::Memory);
        assert_eq!(first.remarks(), Vec::<String>::new());
        // The oracle: what NVRTC itself makes of it.
        let one = first.request("#define N 3", "scale<float>", SOURCE, sm_90());
        let plain = open_compiler(&nvrtc)
            .compile(&one, &CallLimits::default())
            .expect("compiles");
        // 12.0 writes the number of the compiling thread into names of its own.
        match nvrtc.version {
            "12.0" => assert_eq!(plain.lowered, read.compiled.lowered),
            _ => assert_eq!(plain, *read.compiled),
        }
    }
}

/// A request in which everything is said, and each way to change one thing of it.
fn every_change() -> (CompileRequest, Vec<CompileRequest>) {
    let mut base = request("k", "__global__ void k(int* x) { *x = 1; }\n", "sm_90");
    base.preamble = vec![Text::new("a", "  // bc\n")];
    base.headers = vec![Text::new("h.h", "// h\n")];
    base.options = vec!["-DA".into(), "-DBC=1".into()];
    base.name_expressions = vec!["k".into()];
    let mut changed = Vec::new();
    let mut change = |edit: &dyn Fn(&mut CompileRequest)| {
        let mut one = base.clone();
        edit(&mut one);
        changed.push(one);
    };
    change(&|one| one.source = "__global__ void k(int* x) { *x = 2; }\n".into());
    change(&|one| one.preamble = vec![Text::new("a", "  // bd\n")]);
    change(&|one| one.preamble = vec![Text::new("b", "  // bc\n")]);
    change(&|one| one.preamble = vec![]);
    // The same bytes with the border elsewhere.
    change(&|one| one.preamble = vec![Text::new("a ", " // bc\n")]);
    change(&|one| one.preamble = vec![Text::new("a", "  // b"), Text::new("", "//c\n")]);
    change(&|one| {
        one.preamble = vec![];
        one.source = "  // bc\n__global__ void k(int* x) { *x = 1; }\n".into();
    });
    change(&|one| one.headers = vec![Text::new("h.h", "// i\n")]);
    change(&|one| one.headers = vec![Text::new("i.h", "// h\n")]);
    change(&|one| one.headers.push(Text::new("i.h", "")));
    change(&|one| one.options = vec!["-DBC=1".into(), "-DA".into()]);
    change(&|one| one.options = vec!["-DAB".into(), "-DC=1".into()]);
    change(&|one| one.options.push("-lineinfo".into()));
    change(&|one| one.name_expressions = vec![]);
    change(&|one| one.name = "l".into());
    change(&|one| one.target = "sm_80".parse().expect("a target"));
    change(&|one| one.target = "sm_90a".parse().expect("a target"));
    change(&|one| one.target = "compute_90".parse().expect("a target"));
    change(&|one| one.target = "lto_90".parse().expect("a target"));
    (base, changed)
}

#[test]
fn whatever_changes_it_is_another_kernel() {
    let folder = tempfile::tempdir().expect("a folder");
    let (base, changed) = every_change();
    let first = cache_in(folder.path());
    let mut keys = HashSet::from([get(&first, &base).key]);
    for one in &changed {
        // Neither the memory of one cache nor the folder of another has it.
        assert!(cached(&first, one).is_none(), "{one:?}");
        assert!(cached(&cache_in(folder.path()), one).is_none(), "{one:?}");
        assert!(keys.insert(get(&first, one).key), "{one:?}");
    }
    let second = cache_in(folder.path());
    assert_eq!(get(&second, &base).found, Found::Disk);
    for one in &changed {
        assert_eq!(get(&second, one).found, Found::Disk);
    }
    // Another NVRTC is another compiler.
    let other = &Nvrtc::all()[1];
    let settings = CacheSettings::in_folder(folder.path());
    assert!(
        cached(
            &KernelCache::with(open_compiler(other), settings, None),
            &base
        )
        .is_none()
    );
}

#[test]
fn many_threads_compile_it_once() {
    // Without a folder too: nothing but the process itself remembers.
    let folder = tempfile::tempdir().expect("a folder");
    for settings in [
        CacheSettings::default(),
        CacheSettings::in_folder(folder.path()),
    ] {
        let cache = KernelCache::with(open_compiler(&Nvrtc::newest()), settings, None);
        let barrier = Barrier::new(32);
        std::thread::scope(|scope| {
            for _ in 0..32 {
                scope.spawn(|| {
                    barrier.wait();
                    get(&cache, &request("k", "__global__ void k() {}", "sm_90"));
                });
            }
        });
        let counts = cache.counts();
        assert_eq!((counts.made, counts.memory + counts.disk), (1, 31));
    }
}

#[test]
fn a_failure_is_told_saved_and_not_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache_in(folder.path());
    for _ in 0..2 {
        let error = cache
            .get_image(
                "#define N 1",
                "bad<int>",
                "void oops(\n",
                sm_90(),
                &CallLimits::default(),
            )
            .expect_err("fails");
        let Error::Compile(failure) = &error else {
            panic!("{error}")
        };
        let saved = failure.saved.as_ref().expect("a file");
        let name = saved
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        assert!(
            name.starts_with("bad_int_-") && name.ends_with(".cu"),
            "{name}"
        );
        let text = std::fs::read_to_string(saved).expect("readable");
        for part in [
            "#define N 1\n",
            "void oops(\n",
            "--gpu-architecture=sm_90",
            "error",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        // The very text that NVRTC saw is its end: it fails in the same way.
        let again = request("again", &text, "sm_90");
        let again = open_compiler(&Nvrtc::newest()).compile(&again, &CallLimits::default());
        let Err(Error::Compile(again)) = again else {
            panic!("it compiles")
        };
        assert_eq!(
            again.place.expect("a place").message,
            failure.place.clone().expect("a place").message
        );
    }
    assert_eq!(cache.counts().made, 0);
    let fixed = cache.get_image(
        "#define N 1",
        "bad<int>",
        "template<class T> __global__ void bad() {}",
        sm_90(),
        &CallLimits::default(),
    );
    assert_eq!(fixed.expect("compiles").found, Found::Made);
}

#[test]
fn bad_input_is_refused_before_anything_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache_in(folder.path());
    let get = |parameters: &str, name: &str, source: &str| {
        cache.get_image(parameters, name, source, sm_90(), &CallLimits::default())
    };
    for (parameters, name, source) in [
        ("a\0", "k", ""),
        ("", "k\0", ""),
        ("", "k", "\0"),
        ("", "", ""),
    ] {
        let error = get(parameters, name, source).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    let mut one = request("k", "", "sm_90");
    one.options = vec!["--time=/tmp/x".into()];
    assert_eq!(
        cache
            .get(&one, &CallLimits::default())
            .expect_err("refused")
            .kind(),
        ErrorKind::Invalid
    );
    assert!(!folder.path().join("kernels-v4").exists());
}
