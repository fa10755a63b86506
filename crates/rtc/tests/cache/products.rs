//! What other compilers make, in folders, for other processes and in packs.

use std::cell::Cell;
use std::path::Path;

use warpcc_rtc::{
    CacheSettings, CallLimits, Compiled, Error, Found, Image, KernelCache, Product, write_pack,
};

use crate::space::{cache_in, cached, get, open_compiler, request};
use warpcc_testkit::Nvrtc;

fn product(parts: &[&str]) -> Product {
    let mut product = Product::new("p");
    parts
        .iter()
        .for_each(|part| product.part("part", part.as_bytes()));
    product
}

/// The result, made of `bytes` if it is not found.
fn asked(cache: &KernelCache, product: &Product, bytes: &[u8]) -> Image {
    let names = vec![("k<int>".to_owned(), "_Z1k".to_owned())];
    let make = || Ok(Compiled::of_product(bytes, names.clone(), "log".to_owned()));
    let image = cache.get_product(product, &CallLimits::default(), make);
    image.expect("made or found")
}

#[test]
fn what_another_compiler_made_is_found_by_everything_that_decides_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = asked(&cache_in(folder.path()), &product(&["a", "b"]), b"1");
    assert_eq!(one.found, Found::Made);
    let cache = cache_in(folder.path());
    for found in [Found::Disk, Found::Memory] {
        let again = asked(&cache, &product(&["a", "b"]), b"2");
        assert_eq!((again.found, &*again.compiled.image), (found, &b"1"[..]));
        assert_eq!(again.compiled.lowered_name("k<int>"), Some("_Z1k"));
        assert_eq!(again.compiled.log, "log");
    }
    assert_eq!(asked(&cache, &product(&["ab"]), b"3").found, Found::Made);
    assert_eq!(cache.stored().expect("counted"), 2);
    assert!(cache.forget_product(&product(&["ab"])));
    assert!(!cache.forget_product(&product(&["ab"])));
    assert!(cache.find_product(&product(&["ab"])).is_none());
    cache.keep_product(&product(&["c"]), b"4");
    let kept = cache_in(folder.path()).find_product(&product(&["c"]));
    assert_eq!(&*kept.expect("kept").compiled.image, b"4");
    cache.clear().expect("emptied");
    assert_eq!(cache.stored().expect("counted"), 0);
    assert!(cache.find_product(&product(&["c"])).is_none());
}

#[test]
fn an_edited_library_or_header_is_another_product() {
    let folder = tempfile::tempdir().expect("a folder");
    let (library, header) = (folder.path().join("lib"), folder.path().join("h.h"));
    std::fs::write(&library, "1").expect("written");
    std::fs::write(&header, "1").expect("written");
    let asked_now = || {
        let mut product = product(&["a"]);
        product.files.push(library.clone());
        let option = format!("-I{}", folder.path().display());
        let product = product.of_program("#include \"h.h\"", &[option], &[]);
        let cache = cache_in(&folder.path().join("cache"));
        let image = asked(&cache, &product, b"1");
        assert_eq!(cache.remarks(), [""; 0]);
        image.found
    };
    assert_eq!([asked_now(), asked_now()], [Found::Made, Found::Disk]);
    std::fs::write(&header, "2").expect("written");
    assert_eq!([asked_now(), asked_now()], [Found::Made, Found::Disk]);
    std::fs::write(&library, "22").expect("written");
    assert_eq!([asked_now(), asked_now()], [Found::Made, Found::Disk]);
}

#[test]
fn what_cannot_be_known_is_made_each_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache_in(folder.path());
    let options = ["--use-pch=x.pch".to_owned()];
    let unknown = product(&["a"]).of_program("", &options, &[]);
    let mut missing = product(&["a"]);
    missing.files.push(folder.path().join("missing"));
    for product in [unknown, missing] {
        for _ in 0..2 {
            assert_eq!(asked(&cache, &product, b"1").found, Found::Made);
        }
    }
    let remarks = cache.remarks().join("\n");
    assert!(
        remarks.contains("--use-pch") && remarks.contains("missing"),
        "{remarks}"
    );
}

#[test]
fn one_that_fails_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache_in(folder.path());
    let tried = Cell::new(0);
    let failing = || {
        tried.set(tried.get() + 1);
        Err(Error::Cancelled {
            what: "p".to_owned(),
        })
    };
    for _ in 0..2 {
        let failed = cache.get_product(&product(&["a"]), &CallLimits::default(), failing);
        assert!(matches!(failed, Err(Error::Cancelled { .. })));
    }
    assert_eq!(tried.get(), 2);
    assert_eq!(asked(&cache, &product(&["a"]), b"1").found, Found::Made);
}

fn with_pack(pack: &Path, folder: &Path) -> KernelCache {
    let settings = CacheSettings {
        packs: vec![pack.to_path_buf()],
        ..CacheSettings::in_folder(folder)
    };
    KernelCache::with(open_compiler(&Nvrtc::newest()), settings, None)
}

#[test]
fn a_pack_serves_a_machine_that_has_nothing_and_a_damaged_one_is_a_miss() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let kernel = request("k", "extern \"C\" __global__ void k() {}", "sm_90");
    let made = get(&cache_in(&at("warm")), &kernel);
    let other = request("o", "extern \"C\" __global__ void o() {}", "sm_90");
    let other_made = get(&cache_in(&at("warm")), &other);
    let images = [&made, &other_made].map(|image| (image.key.expect("a key"), &*image.compiled));
    write_pack(&at("a.pack"), &images).expect("written");
    let cache = with_pack(&at("a.pack"), &at("empty"));
    let found = cached(&cache, &kernel).expect("found");
    assert_eq!(
        (found.found, &found.compiled),
        (Found::Disk, &made.compiled)
    );
    assert_eq!(cache.stored().expect("counted"), 0, "it was copied");
    // A folder that was warmed is a pack too, and stays as it is.
    let cache = with_pack(&at("warm"), &at("empty"));
    assert!(cached(&cache, &kernel).is_some() && cache.remarks().is_empty());
    // Only root can give a folder away; other users' tests end here.
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(at("warm"), Some(12_345), None).expect("given away");
        let cache = with_pack(&at("warm"), &at("fresh"));
        let remarks = cache.remarks();
        assert!(
            remarks.len() == 1 && remarks[0].contains("belongs to user 12345"),
            "{remarks:?}"
        );
        assert!(cached(&cache, &kernel).is_none());
    }

    let mut bytes = std::fs::read(at("a.pack")).expect("bytes");
    // In the first image, and in the last.
    let index = u64::from_le_bytes(bytes[14..22].try_into().expect("a number")) as usize;
    bytes[100] ^= 1;
    bytes[index - 1] ^= 1;
    std::fs::write(at("a.pack"), &bytes).expect("written");
    let cache = with_pack(&at("a.pack"), &at("new"));
    assert_eq!(get(&cache, &kernel).compiled, made.compiled);
    assert_eq!(cache.counts().made, 1);
    for (pack, why) in [
        ("a.pack", "not those that were written"),
        ("none", "No such file"),
    ] {
        let cache = with_pack(&at(pack), &at("other"));
        for kernel in [&kernel, &other, &kernel] {
            assert!(cached(&cache, kernel).is_none());
        }
        let remarks = cache.remarks();
        assert!(
            remarks.len() == 1 && remarks[0].contains(pack) && remarks[0].contains(why),
            "{remarks:?}"
        );
    }
}
