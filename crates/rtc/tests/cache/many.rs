//! Many kernels at once: each once, in order, within limits.

use warpcc_rtc::{
    BoardPlace, CallLimits, Cancel, CompileRequest, Error, Found, ManyOptions, Progress,
};

use crate::space::{cache_in, request};

fn kernels(count: usize) -> Vec<CompileRequest> {
    let one = |number: usize| {
        let text = format!("extern \"C\" __global__ void k{number}(int* x) {{ *x = {number}; }}");
        request(&format!("k{number}"), &text, "sm_90")
    };
    (0..count).map(one).collect()
}

fn options(folder: &tempfile::TempDir) -> ManyOptions {
    ManyOptions {
        threads: 4,
        budget: BoardPlace::At(folder.path().join("budget")),
        workers: None,
    }
}

#[test]
fn each_is_made_once_and_in_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache_in(&folder.path().join("cache"));
    let mut requests = kernels(12);
    requests.push(request("bad", "oops", "sm_90"));
    // Twice in the list.
    requests.push(requests[3].clone());
    let mut told = Vec::new();
    let listen = |progress: &Progress<'_>| {
        assert_eq!((progress.done, progress.total), (told.len() + 1, 14));
        told.push((progress.index, progress.name.to_owned()));
        true
    };
    let images = cache.get_many(&requests, &options(&folder), &CallLimits::default(), listen);
    told.sort();
    let expected: Vec<_> = requests
        .iter()
        .map(|one| one.name.to_string())
        .enumerate()
        .collect();
    assert_eq!(told, expected);
    for (image, request) in images.iter().zip(&requests) {
        match &*request.name {
            "bad" => assert!(matches!(image, Err(Error::Compile(_)))),
            name => {
                let alone = cache.get(request, &CallLimits::default()).expect(name);
                let image = image.as_ref().expect(name);
                assert_eq!(image.compiled, alone.compiled, "{name}");
            }
        }
    }
    assert_eq!(cache.counts().made, 12);
}

#[test]
fn several_processes_share_the_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let requests = kernels(8);
    // Each cache is like a process of its own: nothing but the folder is common.
    let caches: Vec<_> = (0..3)
        .map(|_| cache_in(&folder.path().join("cache")))
        .collect();
    std::thread::scope(|scope| {
        for cache in &caches {
            scope.spawn(|| {
                let images =
                    cache.get_many(&requests, &options(&folder), &CallLimits::default(), |_| {
                        true
                    });
                assert!(images.iter().all(Result::is_ok));
            });
        }
    });
    let made: u64 = caches.iter().map(|cache| cache.counts().made).sum();
    assert_eq!(made, 8);
}

#[test]
fn a_listener_or_a_limit_ends_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache_in(&folder.path().join("cache"));
    let one = ManyOptions {
        threads: 1,
        ..options(&folder)
    };
    let images = cache.get_many(&kernels(6), &one, &CallLimits::default(), |told| {
        told.done < 2
    });
    let made = |found: &Result<_, Error>| found.is_ok();
    assert!(images[..].iter().filter(|image| made(image)).count() <= 3);
    let cancelled = images
        .iter()
        .filter(|image| matches!(image, Err(Error::Cancelled { .. })));
    assert!(cancelled.count() >= 3);
    let cancel = Cancel::new();
    cancel.cancel();
    let limits = CallLimits {
        cancel: Some(cancel),
        ..CallLimits::default()
    };
    let mut told = 0;
    let images = cache.get_many(&kernels(20)[6..], &one, &limits, |progress| {
        told += u32::from(progress.found() == Some(Found::Made));
        true
    });
    assert!(images.iter().filter(|image| image.is_ok()).count() <= 1 && told <= 1);
    assert!(
        cache
            .get_many(&[], &one, &CallLimits::default(), |_| true)
            .is_empty()
    );
}
