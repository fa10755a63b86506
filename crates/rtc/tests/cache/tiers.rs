//! Tests the folders of a cache: damaged, unusable, read-only and full ones.

use std::path::Path;

use warpcc_rtc::{CacheSettings, Found, KernelCache, Tier};

use crate::space::{Nvrtc, cache_in, cached, get, open_compiler, request};

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
            assert!(cached(&cache(), &one).is_none(), "byte {at} of {kind}");
            std::fs::write(&path, &bytes[..at]).expect("written");
            assert!(cached(&cache(), &one).is_none(), "{at} bytes of {kind}");
            checked += 1;
            std::fs::write(&path, &bytes).expect("written");
        }
    }
    assert!(checked > 250, "{checked}");
    let found = cached(&cache(), &one).expect("whole again");
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
    assert!(cached(&cache(), &one).is_none());
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
        cached(&limited(1000), &kernel(0)).is_none(),
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
        .filter(|index| cached(&limited(64 << 10), &kernel(*index)).is_some())
        .collect();
    assert!(!kept.contains(&0) && kept.contains(&11), "{kept:?}");
    assert!(kept.windows(2).all(|two| two[1] == two[0] + 1), "{kept:?}");
}
