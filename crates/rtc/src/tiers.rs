//! Images that outlive the process: folders, the nearest first, and whatever is shared behind them.
//!
//! Errors are not the caller's: what cannot be read or written is a miss and a remark.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use warpcc_cache::{DiskStore, FetchRequest, Key, Level, StoreError, Upstream, WorkDir};

use crate::compiler::Compiled;
use crate::entry::{PackedImage, closed, opened};
use crate::found::Found;
use crate::image_record::{put, stored, vetted, with_source};
use crate::pack::{Pack, trust};
use crate::settings::{NO_FOLDER, Tier};

/// The most remarks that are kept until they are read.
const MOST_REMARKS: usize = 100;

/// A pack, and whether a remark says that something in it is damaged: one is enough.
struct OpenPack {
    pack: Pack,
    is_damaged: AtomicBool,
}

pub(crate) struct Tiers {
    stores: Vec<DiskStore>,
    /// Files of images that came with the program.
    packs: Vec<OpenPack>,
    /// None without a folder that may be written to: what comes from there is put into it first, and looked up like any other.
    upstream: Option<Arc<dyn Upstream>>,
    remarks: Mutex<Vec<String>>,
}

impl std::fmt::Debug for Tiers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tiers")
            .field("stores", &self.stores)
            .finish_non_exhaustive()
    }
}

impl Tiers {
    pub(crate) fn new(
        tiers: &[Tier],
        packs: &[PathBuf],
        upstream: Option<Arc<dyn Upstream>>,
        remarks: Vec<String>,
    ) -> Self {
        let mut opened = Self {
            stores: Vec::new(),
            packs: Vec::new(),
            upstream,
            remarks: Mutex::new(remarks),
        };
        for tier in tiers {
            match tier.open() {
                Ok(store) => opened.stores.push(store),
                Err(error) => opened.remark(format!("{error}; it is not used")),
            }
        }
        for path in packs {
            opened.add_pack(path);
        }
        if opened.first_written().is_none() && opened.upstream.take().is_some() {
            opened.remark(of_shared(&format!("it is not used: {NO_FOLDER}")));
        }
        opened
    }

    /// The image under `key`; what is found far away is kept nearby.
    pub(crate) fn get(&self, key: &Key) -> Option<(Compiled, Found)> {
        let on_disk = self.stores.iter().enumerate().find_map(|(index, store)| {
            let found = self.get_from(store, key)?;
            Some((index, found))
        });
        if let Some((index, (kept, compiled))) = on_disk {
            self.put_into(&self.stores[..index], key, &kept, Duration::ZERO);
            return Some((compiled, Found::Disk));
        }
        if let Some(compiled) = self.get_from_packs(key) {
            return Some((compiled, Found::Disk));
        }
        let compiled = self.fetch(key)?;
        Some((compiled, Found::Shared))
    }

    /// The image under `key` from a shared cache, by way of the first folder that is written to.
    fn fetch(&self, key: &Key) -> Option<Compiled> {
        let upstream = self.upstream.as_ref()?;
        let (nearest, behind) = self.written()?;
        let wanted = FetchRequest {
            level: Level::Kernels,
            key,
            at: WorkDir::plain(Path::new("/")),
            vet: &vetted,
        };
        let brought = upstream.fetch(nearest, &[wanted]);
        self.take_warnings(upstream.as_ref());
        if !brought {
            return None;
        }
        let (kept, compiled) = self.get_from(nearest, key)?;
        self.trim(nearest);
        self.put_into(behind, key, &kept, Duration::ZERO);
        Some(compiled)
    }

    /// Opens a pack: a file, or a folder like those of the cache, of which nothing is ever written.
    fn add_pack(&mut self, path: &Path) {
        if let Ok(found) = std::fs::metadata(path)
            && found.is_dir()
        {
            if let Err(why) = trust::check(&found) {
                self.remark(format!("the pack {} is not used: {why}", path.display()));
                return;
            }
            let tier = Tier {
                path: path.to_path_buf(),
                max_size: 0,
                readonly: true,
            };
            match tier.open() {
                Ok(store) => self.stores.push(store),
                Err(error) => self.remark(format!("{error}; it is not used")),
            }
            return;
        }
        match Pack::open(path) {
            Ok(pack) => self.packs.push(OpenPack {
                pack,
                is_damaged: AtomicBool::new(false),
            }),
            Err(error) => self.remark(error.to_string()),
        }
    }

    fn get_from_packs(&self, key: &Key) -> Option<Compiled> {
        self.packs.iter().find_map(|opened| {
            opened.pack.get(key).unwrap_or_else(|error| {
                if !opened.is_damaged.swap(true, Ordering::Relaxed) {
                    self.remark(error.to_string());
                }
                None
            })
        })
    }

    /// Removes an image from every folder that may be written to.
    pub(crate) fn forget(&self, key: &Key) {
        for store in self.stores.iter().filter(|store| !store.options().readonly) {
            store.forget(Level::Kernels, key);
        }
    }

    /// Removes everything from every folder that may be written to.
    pub(crate) fn clear(&self) -> Result<(), StoreError> {
        let mut written = self.stores.iter().filter(|store| !store.options().readonly);
        written.try_for_each(DiskStore::clear)
    }

    /// The number of images in the first folder that may be written to.
    pub(crate) fn stored(&self) -> Result<u64, StoreError> {
        match self.first_written() {
            Some(store) => store.count_records(Level::Kernels),
            None => Ok(0),
        }
    }

    /// The image under `key`, on disk only: for a second look, when another process may just have stored it.
    pub(crate) fn get_from_disk(&self, key: &Key) -> Option<Compiled> {
        self.stores
            .iter()
            .find_map(|store| self.get_from(store, key))
            .map(|(_, compiled)| compiled)
    }

    /// Whether a folder or a pack has an image under `key`.
    pub(crate) fn has(&self, key: &Key) -> bool {
        self.get_from_disk(key).is_some() || self.get_from_packs(key).is_some()
    }

    /// Keeps an image everywhere.
    pub(crate) fn put(&self, key: &Key, compiled: &Compiled, took: Duration) {
        let kept = closed(compiled);
        self.put_into(&self.stores, key, &kept, took);
        if let (Some(upstream), Some(store)) = (&self.upstream, self.first_written()) {
            upstream.offer(store, Level::Kernels, key);
            self.take_warnings(upstream.as_ref());
        }
    }

    fn take_warnings(&self, upstream: &dyn Upstream) {
        for warning in upstream.take_warnings() {
            self.remark(of_shared(&warning));
        }
    }

    /// The folder for locks of compilations: in the first folder that is written to.
    pub(crate) fn lock_folder(&self) -> Option<PathBuf> {
        // Files that processes leave behind there are removed in time.
        self.first_written().map(|store| store.root().join("tmp"))
    }

    /// The folder for failed texts.
    pub(crate) fn failure_folder(&self) -> PathBuf {
        self.folder_for_people("failed")
    }

    /// The folder for texts that debug information names.
    pub(crate) fn source_folder(&self) -> PathBuf {
        self.folder_for_people("sources")
    }

    /// A folder for files that people look at.
    fn folder_for_people(&self, name: &str) -> PathBuf {
        match self.first_written() {
            Some(store) => store.root().join(name),
            // Other users can write to this parent folder. A save checks first that the folder is ours.
            None => {
                let user = rustix::process::geteuid().as_raw();
                std::env::temp_dir().join(format!("warpcc-rtc-{name}-{user}"))
            }
        }
    }

    /// The first store, which remembers the hashes of libraries.
    pub(crate) fn nearest(&self) -> Option<&DiskStore> {
        self.stores.first()
    }

    pub(crate) fn remark(&self, remark: String) {
        let mut remarks = self.remarks.lock().unwrap_or_else(|held| held.into_inner());
        if remarks.len() < MOST_REMARKS && !remarks.contains(&remark) {
            remarks.push(remark);
        }
    }

    pub(crate) fn remarks(&self) -> Vec<String> {
        self.remarks
            .lock()
            .unwrap_or_else(|held| held.into_inner())
            .clone()
    }

    pub(crate) fn first_written(&self) -> Option<&DiskStore> {
        self.written().map(|(first, _)| first)
    }

    /// The first store that is written to, and those behind it.
    fn written(&self) -> Option<(&DiskStore, &[DiskStore])> {
        let is_written = |store: &DiskStore| !store.options().readonly;
        let first = self.stores.iter().position(is_written)?;
        self.stores[first..].split_first()
    }

    fn get_from(&self, store: &DiskStore, key: &Key) -> Option<(PackedImage, Compiled)> {
        let kept = stored(store, key).unwrap_or_else(|why| {
            self.remark(why);
            None
        })?;
        let compiled = opened(&kept)?;
        Some((kept, compiled))
    }

    fn put_into(&self, stores: &[DiskStore], key: &Key, kept: &PackedImage, took: Duration) {
        for store in stores.iter().filter(|store| !store.options().readonly) {
            let limit = store.options().max_size;
            if limit > 0 && (kept.image.len() + kept.details.len()) as u64 > limit {
                // It would push everything else out and then itself.
                continue;
            }
            match put(store, key, kept, took) {
                Ok(()) => self.trim(store),
                Err(error) => self.remark(with_source(&error)),
            }
        }
    }

    /// Removes what was used longest ago, where a folder holds too much.
    fn trim(&self, store: &DiskStore) {
        if store.needs_gc()
            && let Err(error) = store.gc(store.gc_target())
        {
            self.remark(with_source(&error));
        }
    }
}

fn of_shared(why: &str) -> String {
    match why.starts_with("the shared cache") {
        true => why.to_owned(),
        false => format!("the shared cache: {why}"),
    }
}
