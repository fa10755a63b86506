//! The files that debug information names have the source: as debuggers read them out of the image.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use warpcc_rtc::{CallLimits, CompileRequest, Error, Found, Text};

use crate::space::{Nvrtc, cache_in, get, open_compiler, request};

const SOURCE: &str = "__global__ void k(int* x, int n) {\n  if (threadIdx.x < n)\n    x[threadIdx.x] = before(n);\n}\n";
const BEFORE: &str = "__device__ __noinline__ int before(int n) {\n  return n * 3;\n}\n";

fn debugged(option: &str) -> CompileRequest {
    let mut one = request("k<a>", SOURCE, "sm_90");
    one.preamble = vec![Text::new("before.h", BEFORE)];
    one.options = vec![option.into()];
    one
}

/// The files of an image's line table.
fn named_files(image: &[u8]) -> Vec<PathBuf> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.cubin");
    std::fs::write(&path, image).expect("written");
    let mut readelf = Command::new("readelf");
    let output = readelf.arg("--debug-dump=rawline").arg(&path).output();
    let output = output.expect("binutils has readelf");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (mut folders, mut files) = (HashMap::new(), Vec::new());
    let mut of_folders = false;
    for line in text.lines() {
        if line.contains(" Table (offset") || line.contains(" Table:") {
            of_folders = line.contains("Directory Table");
        }
        let words: Vec<&str> = line.trim_start().split('\t').collect();
        match (of_folders, words.as_slice()) {
            (true, [number, folder]) => {
                folders.insert((*number).to_owned(), (*folder).to_owned());
            }
            (false, [number, folder, _, _, name]) if number.parse::<u32>().is_ok() => {
                let folder = folders.get(*folder).map_or("", String::as_str);
                files.push(Path::new(folder).join(name));
            }
            _ => {}
        }
    }
    assert!(!files.is_empty(), "{text}");
    files
}

#[test]
fn a_debugger_finds_every_text() {
    let folder = tempfile::tempdir().expect("a folder");
    for (number, nvrtc) in Nvrtc::all().into_iter().enumerate() {
        let kept = folder.path().join(number.to_string());
        let open = || {
            warpcc_rtc::KernelCache::with(
                open_compiler(&nvrtc),
                warpcc_rtc::CacheSettings::in_folder(&kept),
                None,
            )
        };
        let image = get(&open(), &debugged("-G"));
        let mut texts: Vec<String> = named_files(&image.compiled.image)
            .iter()
            // Some versions have a header of their own there.
            .filter(|file| !file.ends_with("__nv_nvrtc_builtin_header.h"))
            .map(|file| {
                assert!(file.starts_with(&kept), "{file:?}");
                std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file:?}: {error}"))
            })
            .collect();
        texts.sort();
        assert_eq!(texts, [BEFORE, SOURCE], "NVRTC {}", nvrtc.version);
        // A file that was removed is there again after a hit.
        std::fs::remove_dir_all(kept.join("sources")).expect("removed");
        assert_eq!(get(&open(), &debugged("-G")).found, Found::Disk);
        let again = named_files(&image.compiled.image);
        let there = again.iter().filter(|file| file.is_file()).count();
        assert_eq!(there, 2, "{again:?}");
    }
}

#[test]
fn the_source_is_the_users_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("the source.cu");
    let other = folder.path().join("other.cu");
    // What is next to the file is not looked for: it would be an included file that nobody knows of.
    std::fs::write(folder.path().join("near.h"), "").expect("written");
    for nvrtc in Nvrtc::all() {
        let settings = warpcc_rtc::CacheSettings::in_folder(&folder.path().join(nvrtc.version));
        let cache = warpcc_rtc::KernelCache::with(open_compiler(&nvrtc), settings, None);
        for option in ["-G", "-lineinfo"] {
            let of = |file: &Path| {
                let mut one = debugged(option);
                one.file = file.to_str().map(Into::into);
                one
            };
            let image = get(&cache, &of(&file));
            let files = named_files(&image.compiled.image);
            assert!(files.contains(&file), "{option} {files:?}");
            // The image of another file is another one, also in memory.
            let files = named_files(&get(&cache, &of(&other)).compiled.image);
            assert!(
                files.contains(&other) && !files.contains(&file),
                "{files:?}"
            );
            let again = get(&cache, &of(&file));
            assert_eq!((again.found, again.key), (Found::Memory, image.key));
            // So it is without a cache.
            let plain = open_compiler(&nvrtc).compile(&of(&file), &CallLimits::default());
            let files = named_files(&plain.expect("compiles").image);
            assert!(files.contains(&file), "{option} {files:?}");
            let mut near = of(&file);
            near.source = "#include \"near.h\"\n".into();
            for folders in [vec![], vec![folder.path().join("nothing")]] {
                near.include_folders = folders;
                let error = cache.get(&near, &CallLimits::default());
                assert!(matches!(error, Err(Error::Compile(_))), "{error:?}");
            }
        }
    }
}

#[test]
fn errors_name_the_callers_texts_in_debug_builds_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache_in(folder.path());
    let mut one = debugged("-G");
    one.source = "\n\noops".into();
    let place = |one: &CompileRequest| {
        let error = cache.get(one, &CallLimits::default());
        let Err(Error::Compile(failure)) = error else {
            panic!("it compiles");
        };
        let place = failure.place.expect("a place");
        assert_eq!(place.shown.as_deref(), Some("oops"));
        (format!("{}:{}", place.text, place.line), failure.log)
    };
    let (text, log) = place(&one);
    assert_eq!(text, "k<a>:3");
    assert!(log.contains("k<a>(3): error"), "{log}");
    one.file = Some("src/a.cu".into());
    let (text, log) = place(&one);
    assert_eq!(text, "src/a.cu:3");
    assert!(log.contains("src/a.cu(3): error"), "{log}");
    one.source = SOURCE.into();
    one.preamble[0].text = "\noops".into();
    let (text, log) = place(&one);
    assert_eq!(text, "before.h:2");
    assert!(log.contains("before.h(2): error"), "{log}");
}
