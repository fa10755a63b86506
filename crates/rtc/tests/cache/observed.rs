//! What a cache tells its program about each request, and the trace of it.

use std::path::Path;
use std::sync::{Arc, Mutex};

use warpcc_rtc::{
    CacheSettings, CallLimits, Found, KernelCache, LinkRequest, ManyOptions, Observer, Product,
};

use crate::space::{Nvrtc, get, open_compiler, request};

type Told = Arc<Mutex<Vec<(String, Option<String>, String)>>>;

fn observed(folder: &Path) -> (KernelCache, Told) {
    let told = Told::default();
    let kept = told.clone();
    let settings = CacheSettings {
        observer: Some(Observer::new(move |event| {
            let outcome = match event.outcome {
                Ok(found) => found.word().to_owned(),
                Err(error) => error.to_string(),
            };
            assert!(event.started.elapsed().is_ok_and(|ago| ago >= event.took));
            let key = event.key.map(|key| key.hex());
            kept.lock()
                .expect("told")
                .push((event.name.to_owned(), key, outcome));
        })),
        ..CacheSettings::in_folder(folder)
    };
    let cache = KernelCache::with(open_compiler(&Nvrtc::newest()), settings, None);
    (cache, told)
}

#[test]
fn each_request_is_told_once_with_its_key_and_outcome() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = request("k", "__global__ void k() {}", "compute_90");
    let (cache, told) = observed(folder.path());
    let image = get(&cache, &one);
    get(&cache, &one);
    let bad = request("bad", "oops", "compute_90");
    cache
        .get(&bad, &CallLimits::default())
        .expect_err("it does not compile");
    // A list is told image by image.
    let results = cache.get_many(
        &[one.clone(), request("other", "", "compute_90")],
        &ManyOptions::default(),
        &CallLimits::default(),
        |_| true,
    );
    assert!(results.iter().all(Result::is_ok));
    let (again, told_again) = observed(folder.path());
    get(&again, &one);
    let link = LinkRequest::of_ptx(
        "p",
        image.compiled.image.clone(),
        "sm_90".parse().expect("sm"),
    );
    again
        .get_linked(&link, &CallLimits::default())
        .expect("linked");
    let product = Product::new("product");
    assert!(again.find_product(&product).is_none());
    again.keep_product(&product, b"bytes");
    assert!(again.find_product(&product).is_some());

    let words = |told: &Told| -> Vec<(String, String)> {
        let all = told.lock().expect("told");
        all.iter()
            .map(|(name, _, outcome)| (name.clone(), outcome.lines().next().unwrap_or("").into()))
            .collect()
    };
    let first = words(&told);
    let [made, memory, failed, many @ ..] = first.as_slice() else {
        panic!("{first:?}");
    };
    let is = |name: &str, outcome: &str| (name.to_owned(), outcome.to_owned());
    assert_eq!(
        (made, memory),
        (&is("k", "made"), &is("k", "memory")),
        "{first:?}"
    );
    assert!(
        failed.0 == "bad" && failed.1.contains("does not compile"),
        "{failed:?}"
    );
    let mut many = many.to_vec();
    many.sort();
    assert_eq!(many, [is("k", "memory"), is("other", "made")]);
    let keys: Vec<_> = told.lock().expect("told").clone();
    assert_eq!(keys[0].1, image.key.map(|key| key.hex()));
    // One that does not compile has a key too.
    assert!(keys[2].1.is_some() && keys[2].1 != keys[0].1);
    assert_eq!(
        words(&told_again),
        [
            is("k", "disk"),
            is("p", "made"),
            is("product", "made"),
            is("product", "memory")
        ]
    );
}

#[test]
fn a_trace_has_what_was_compiled_and_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    let open = || {
        let settings = CacheSettings::in_folder(&folder.path().join("cache"));
        let cache = KernelCache::with(open_compiler(&Nvrtc::newest()), settings, None);
        cache.traced_in(&path)
    };
    let one = request("k", "__global__ void k() {}", "compute_90");
    let image = get(&open(), &one);
    let cache = open();
    assert_eq!(get(&cache, &one).found, Found::Disk);
    cache
        .get(
            &request("bad", "oops", "compute_90"),
            &CallLimits::default(),
        )
        .expect_err("it does not compile");
    assert!(cache.remarks().is_empty());
    let text = std::fs::read_to_string(&path).expect("a trace");
    let events: Vec<&str> = text.lines().filter(|line| line.contains("\"X\"")).collect();
    let key = image.key.expect("a key").hex();
    let outcomes = [("k", "made"), ("k", "disk"), ("bad", "failed")];
    assert_eq!(events.len(), outcomes.len(), "{text}");
    for (event, (name, outcome)) in events.iter().zip(outcomes) {
        assert!(
            event.contains(&format!("\"name\":\"{name}\""))
                && event.contains(&format!("\"cat\":\"{outcome}\"")),
            "{event}"
        );
        assert_eq!(event.contains(&key), name == "k", "{event}");
    }
    // A file that cannot be written to is a remark.
    let cache = open().traced_in(Path::new("/dev/null"));
    get(&cache, &one);
    let remarks = cache.remarks();
    assert!(
        remarks.len() == 1 && remarks[0].contains("not a regular file"),
        "{remarks:?}"
    );
}
