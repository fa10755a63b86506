//! The cache of one process: what hits, what must not, and what is reported when it fails.

mod space;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Mutex};

use space::{Nvrtc, open_compiler, request};
use warpcc_cache::{
    DiskStore, InputManifest, Key, Level, Lookup, Outcome, Packing, Upstream, Wanted,
};
use warpcc_rtc::{
    CacheSettings, CallLimits, Cancel, CompileRequest, Compiler, Error, ErrorKind, Found, Image,
    KernelCache, Target, Text, Tier,
};

const SOURCE: &str = "template<class T> __global__ void scale(T* x) { *x *= N; }\n";

fn cache_in(folder: &Path) -> KernelCache {
    KernelCache::with(
        open_compiler(&Nvrtc::newest()),
        CacheSettings::in_folder(folder),
        None,
    )
}

fn sm_90() -> Target {
    "sm_90".parse().expect("a target")
}

fn get(cache: &KernelCache, one: &CompileRequest) -> Image {
    cache
        .get(one, &CallLimits::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Looks without compiling: a miss is cancelled.
fn look(cache: &KernelCache, one: &CompileRequest) -> Option<Image> {
    let cancel = Cancel::new();
    cancel.cancel();
    let limits = CallLimits {
        cancel: Some(cancel),
        ..CallLimits::default()
    };
    match cache.get(one, &limits) {
        Ok(image) => Some(image),
        Err(Error::Cancelled { .. }) => None,
        Err(error) => panic!("{error}"),
    }
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
        assert!(look(&cache, &other).is_none());
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
        assert!(look(&first, one).is_none(), "{one:?}");
        assert!(look(&cache_in(folder.path()), one).is_none(), "{one:?}");
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
        look(
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

#[test]
fn spoiled_bytes_are_a_miss() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = request(
        "k",
        "extern \"C\" __global__ void k(int* x) { *x = 5; }",
        "compute_90",
    );
    let compiler = open_compiler(&Nvrtc::newest());
    let cache = || {
        KernelCache::with(
            compiler.clone(),
            CacheSettings::in_folder(folder.path()),
            None,
        )
    };
    let good = get(&cache(), &one);
    let mut checked = 0;
    for kind in ["kernels-v4", "blobs-v1"] {
        let path = only_file(&folder.path().join(kind));
        let bytes = std::fs::read(&path).expect("readable");
        let positions: Vec<usize> = match kind {
            // Every byte of the record, and of the end of the blob, which says what it is.
            "kernels-v4" => (0..bytes.len()).collect(),
            _ => (0..40).chain(bytes.len() - 120..bytes.len()).collect(),
        };
        for at in positions {
            let mut spoiled = bytes.clone();
            spoiled[at] ^= 0x41;
            std::fs::write(&path, &spoiled).expect("written");
            assert!(look(&cache(), &one).is_none(), "byte {at} of {kind}");
            std::fs::write(&path, &bytes[..at]).expect("written");
            assert!(look(&cache(), &one).is_none(), "{at} bytes of {kind}");
            checked += 1;
            std::fs::write(&path, &bytes).expect("written");
        }
    }
    assert!(checked > 250, "{checked}");
    let found = look(&cache(), &one).expect("whole again");
    assert_eq!((found.found, found.compiled), (Found::Disk, good.compiled));
    // A foreign entry: another kernel's, under this one's name.
    let record = only_file(&folder.path().join("kernels-v4"));
    let other = tempfile::tempdir().expect("a folder");
    let second = request("l", "extern \"C\" __global__ void l() {}", "compute_90");
    get(
        &KernelCache::with(
            compiler.clone(),
            CacheSettings::in_folder(other.path()),
            None,
        ),
        &second,
    );
    std::fs::copy(only_file(&other.path().join("kernels-v4")), &record).expect("copied");
    assert!(look(&cache(), &one).is_none());
    assert_eq!(get(&cache(), &one).found, Found::Made);
}

fn only_file(folder: &Path) -> std::path::PathBuf {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn folders_that_cannot_be_used_cost_no_kernel() {
    let one = request("k", "__global__ void k() {}", "sm_90");
    let compiler = open_compiler(&Nvrtc::newest());
    let file = tempfile::NamedTempFile::new().expect("a file");
    let blocked = tempfile::tempdir().expect("a folder");
    // A full or broken disk gives an error at some step; here it is the blob's folder.
    std::fs::write(blocked.path().join("blobs-v1"), "in the way").expect("written");
    for path in [file.path(), Path::new("/proc/warpcc"), blocked.path()] {
        let settings = CacheSettings::in_folder(path);
        let cache = KernelCache::with(compiler.clone(), settings, None);
        assert_eq!(get(&cache, &one).found, Found::Made);
        assert_eq!(get(&cache, &one).found, Found::Memory);
        assert!(!cache.remarks().is_empty(), "{}", path.display());
    }
}

#[test]
fn a_read_only_folder_is_read_and_a_near_one_filled_from_it() {
    let (far, near) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let one = request("k", "__global__ void k() {}", "sm_90");
    get(&cache_in(far.path()), &one);
    let tier = |path: &Path, readonly| Tier {
        path: path.to_path_buf(),
        max_size: 0,
        readonly,
    };
    let readonly = CacheSettings {
        tiers: vec![tier(far.path(), true)],
        ..CacheSettings::default()
    };
    let compiler = open_compiler(&Nvrtc::newest());
    let before = tree(far.path());
    let cache = KernelCache::with(compiler.clone(), readonly, None);
    assert_eq!(get(&cache, &one).found, Found::Disk);
    get(&cache, &request("l", "__global__ void l() {}", "sm_90"));
    assert_eq!(tree(far.path()), before);
    let both = CacheSettings {
        tiers: vec![tier(near.path(), false), tier(far.path(), true)],
        ..CacheSettings::default()
    };
    assert_eq!(
        get(&KernelCache::with(compiler, both, None), &one).found,
        Found::Disk
    );
    assert_eq!(tree(far.path()), before);
    assert_eq!(get(&cache_in(near.path()), &one).found, Found::Disk);
}

fn tree(folder: &Path) -> Vec<(std::path::PathBuf, u64)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => all.extend(tree(&path)),
            false => all.push((path.clone(), path.metadata().expect("there").len())),
        }
    }
    all.sort();
    all
}

/// A shared cache in memory.
#[derive(Default)]
struct Server {
    results: Mutex<HashMap<Key, (Outcome, Vec<u8>)>>,
    /// It hands out what it should have refused.
    is_careless: AtomicBool,
}

impl Upstream for Server {
    fn fetch(&self, store: &DiskStore, wanted: &[Wanted<'_>]) -> bool {
        let results = self.results.lock().expect("a server");
        let [
            Wanted {
                level, key, vet, ..
            },
        ] = *wanted
        else {
            panic!("a kernel has one key");
        };
        let Some((outcome, image)) = results.get(key) else {
            return false;
        };
        let mut outcome = outcome.clone();
        if !vet(&mut outcome) && !self.is_careless.load(Relaxed) {
            return false;
        }
        store.put_bytes(image, Packing::Plain).expect("room");
        let manifest = InputManifest::default();
        store.store(level, key, &manifest, &outcome).expect("room");
        true
    }

    fn offer(&self, store: &DiskStore, level: Level, key: &Key) {
        let Lookup::Hit(outcome, _) = store.look_up(level, key, Path::new("/")) else {
            panic!("{key:?} is offered, and not in the folder");
        };
        let image = store.get_bytes(&outcome.outputs[0].digest);
        let image = image.expect("readable").expect("there");
        let mut results = self.results.lock().expect("a server");
        results.insert(*key, (outcome, image));
    }

    fn take_warnings(&self) -> Vec<String> {
        vec!["it is slow today".to_owned()]
    }
}

#[test]
fn two_machines_share_what_one_compiled() {
    let server = Arc::new(Server::default());
    let (here, there) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let machine = |folder: &Path| {
        let upstream: Arc<dyn Upstream> = server.clone();
        let settings = CacheSettings::in_folder(&folder.join("cache"));
        KernelCache::with(open_compiler(&Nvrtc::newest()), settings, Some(upstream))
    };
    // Their headers are in different places.
    let asked = |folder: &Path| {
        std::fs::create_dir_all(folder.join("include")).expect("a folder");
        std::fs::write(folder.join("include/n.h"), "#define N 7\n").expect("written");
        let mut one = request(
            "k",
            "#include <n.h>\n__global__ void k(int* x) { *x = N; }",
            "sm_90",
        );
        one.include_folders = vec![folder.join("include")];
        one
    };
    assert_eq!(
        get(&machine(here.path()), &asked(here.path())).found,
        Found::Made
    );
    let second = machine(there.path());
    assert_eq!(get(&second, &asked(there.path())).found, Found::Shared);
    assert_eq!(
        get(&machine(there.path()), &asked(there.path())).found,
        Found::Disk
    );
    assert_eq!(second.remarks(), ["the shared cache: it is slow today"]);
    // Answers of a server are not trusted, whether the server checks them or not.
    for is_careless in [false, true] {
        for (outcome, _) in server.results.lock().expect("a server").values_mut() {
            outcome.extra.truncate(3);
        }
        server.is_careless.store(is_careless, Relaxed);
        let third = tempfile::tempdir().expect("a folder");
        assert_eq!(
            get(&machine(third.path()), &asked(third.path())).found,
            Found::Made
        );
    }
}

#[test]
fn without_a_folder_that_is_written_to_nobody_is_asked() {
    let server = Arc::new(Server::default());
    let far = tempfile::tempdir().expect("a folder");
    let one = request("k", "__global__ void k() {}", "sm_90");
    let with = |settings: CacheSettings, server: Arc<Server>| {
        KernelCache::with(open_compiler(&Nvrtc::newest()), settings, Some(server))
    };
    get(
        &with(CacheSettings::in_folder(far.path()), server.clone()),
        &one,
    );
    assert_eq!(server.results.lock().expect("a server").len(), 1);
    let mut readonly = CacheSettings::in_folder(&far.path().join("other"));
    readonly.tiers[0].readonly = true;
    for settings in [CacheSettings::default(), readonly] {
        let cache = with(settings, server.clone());
        assert_eq!(get(&cache, &one).found, Found::Made);
        assert_eq!(
            cache.remarks(),
            ["the shared cache: it is not used: there is no folder to put results into"]
        );
    }
}

#[test]
fn the_oldest_leave_and_the_largest_do_not_come() {
    let folder = tempfile::tempdir().expect("a folder");
    let limited = |max_size| {
        let tier = Tier {
            path: folder.path().to_path_buf(),
            max_size,
            readonly: false,
        };
        let settings = CacheSettings {
            tiers: vec![tier],
            ..CacheSettings::default()
        };
        KernelCache::with(open_compiler(&Nvrtc::newest()), settings, None)
    };
    let kernel = |index: usize| request("k", &format!("__global__ void k{index}() {{}}"), "sm_90");
    assert_eq!(get(&limited(1000), &kernel(0)).found, Found::Made);
    assert!(
        look(&limited(1000), &kernel(0)).is_none(),
        "larger than all there may be"
    );
    // Each takes some 12 KiB with its record.
    let cache = limited(64 << 10);
    for index in 0..12 {
        get(&cache, &kernel(index));
        // Times of use are told apart by the clock of the file system.
        std::thread::sleep(std::time::Duration::from_millis(15));
    }
    let kept: Vec<_> = (0..12)
        .filter(|index| look(&limited(64 << 10), &kernel(*index)).is_some())
        .collect();
    assert!(!kept.contains(&0) && kept.contains(&11), "{kept:?}");
    assert!(kept.windows(2).all(|two| two[1] == two[0] + 1), "{kept:?}");
}

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
    let nvcc = Nvrtc::newest().folder.join("../bin/nvcc");
    std::fs::write(
        folder.path().join("k.cu"),
        "extern \"C\" __global__ void k(int* x) { *x = 1; }",
    )
    .expect("written");
    let status = std::process::Command::new(nvcc)
        .current_dir(folder.path())
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
