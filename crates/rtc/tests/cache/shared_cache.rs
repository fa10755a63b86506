//! Tests a cache with a shared cache behind it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use warpcc_cache::{
    DiskStore, FetchRequest, InputManifest, Key, Level, Lookup, Outcome, Packing, Upstream,
};
use warpcc_rtc::{CacheSettings, Found, KernelCache};

use crate::space::{Nvrtc, get, open_compiler, request};

/// A shared cache in memory.
#[derive(Default)]
struct Server {
    results: Mutex<HashMap<Key, (Outcome, Vec<u8>)>>,
    /// It hands out what it should have refused.
    is_careless: AtomicBool,
}

impl Upstream for Server {
    fn fetch(&self, store: &DiskStore, wanted: &[FetchRequest<'_>]) -> bool {
        let results = self.results.lock().expect("a server");
        let [
            FetchRequest {
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
