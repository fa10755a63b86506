//! Images that outlive the process: folders, the nearest first, and whatever is shared behind them.
//!
//! Nothing here is an error of the caller: what cannot be read or written is a miss, and told as a remark.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use warpcc_cache::{
    DiskStore, InputManifest, Key, Level, Lookup, Options, Outcome, Output, Packing, foreign,
};

use crate::compiler::Compiled;
use crate::settings::Tier;
use crate::target::Target;

/// The role of the one output of a record.
const IMAGE: &str = "image";
/// Remarks kept for whoever asks.
const MOST_REMARKS: usize = 100;

/// An image and what belongs to it, as it is kept and shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The image.
    pub image: Arc<[u8]>,
    /// Target, names and log, in a form of this crate's: to be given back as it is.
    pub details: Vec<u8>,
}

/// A cache behind the folders: a server, say. Given by the program, since this crate knows no network.
///
/// Calls may come from any thread and must end: deadlines are the implementation's.
pub trait SharedLayer: Send + Sync {
    /// The entry under `key`, its bytes verified.
    ///
    /// # Errors
    /// Why it is not known whether there is one, for people.
    fn fetch(&self, key: &Key) -> Result<Option<Entry>, String>;

    /// Keeps `entry` under `key`.
    ///
    /// # Errors
    /// Why it is not kept, for people.
    fn keep(&self, key: &Key, entry: &Entry) -> Result<(), String>;
}

/// Where a found image was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Found {
    /// In this process's memory.
    Memory,
    /// In a folder.
    Disk,
    /// In the shared layer.
    Shared,
    /// Nowhere: it was made.
    Made,
    /// In what the caller gave: machine code that came ready-made.
    Given,
}

pub(crate) struct Tiers {
    stores: Vec<DiskStore>,
    shared: Option<Arc<dyn SharedLayer>>,
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
        shared: Option<Arc<dyn SharedLayer>>,
        remarks: Vec<String>,
    ) -> Self {
        let mut opened = Self {
            stores: Vec::new(),
            shared,
            remarks: Mutex::new(remarks),
        };
        for tier in tiers {
            let options = Options {
                max_size: tier.max_size,
                readonly: tier.readonly,
            };
            match DiskStore::open(&tier.path, options) {
                Ok(store) => opened.stores.push(store),
                Err(error) => opened.remark(format!("{error}; it is not used")),
            }
        }
        opened
    }

    /// The image under `key`; what is found far away is kept nearby.
    pub(crate) fn get(&self, key: &Key) -> Option<(Compiled, Found)> {
        let on_disk = self.stores.iter().enumerate().find_map(|(index, store)| {
            let entry = self.get_from(store, key)?;
            Some((index, entry))
        });
        if let Some((index, (entry, compiled))) = on_disk {
            self.put_into(&self.stores[..index], key, &entry, Duration::ZERO);
            return Some((compiled, Found::Disk));
        }
        let entry = match self.shared.as_ref()?.fetch(key) {
            Ok(entry) => entry?,
            Err(why) => {
                self.remark(of_shared(&why));
                return None;
            }
        };
        let compiled = opened(&entry)?;
        self.put_into(&self.stores, key, &entry, Duration::ZERO);
        Some((compiled, Found::Shared))
    }

    /// The image under `key`, on disk only: for a second look, when somebody else may just have kept it.
    pub(crate) fn get_from_disk(&self, key: &Key) -> Option<Compiled> {
        self.stores
            .iter()
            .find_map(|store| self.get_from(store, key))
            .map(|(_, compiled)| compiled)
    }

    /// Keeps an image everywhere.
    pub(crate) fn put(&self, key: &Key, compiled: &Compiled, took: Duration) {
        let entry = closed(compiled);
        self.put_into(&self.stores, key, &entry, took);
        if let Some(shared) = &self.shared
            && let Err(why) = shared.keep(key, &entry)
        {
            self.remark(of_shared(&why));
        }
    }

    /// Where locks of compilations are: in the first folder that is written to.
    pub(crate) fn lock_folder(&self) -> Option<PathBuf> {
        // What processes leave behind there is removed with time.
        self.first_written().map(|root| root.join("tmp"))
    }

    /// Where failed texts are saved.
    pub(crate) fn failure_folder(&self) -> PathBuf {
        match self.first_written() {
            Some(root) => root.join("failed"),
            // Everybody can write beside it: whoever saves there looks whether it is ours.
            None => {
                let user = rustix::process::geteuid().as_raw();
                std::env::temp_dir().join(format!("warpcc-rtc-failed-{user}"))
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

    fn first_written(&self) -> Option<&Path> {
        let written = self.stores.iter().find(|store| !store.options().readonly);
        written.map(DiskStore::root)
    }

    fn get_from(&self, store: &DiskStore, key: &Key) -> Option<(Entry, Compiled)> {
        let entry = stored_entry(store, key).unwrap_or_else(|why| {
            self.remark(why);
            None
        })?;
        let compiled = opened(&entry)?;
        Some((entry, compiled))
    }

    fn put_into(&self, stores: &[DiskStore], key: &Key, entry: &Entry, took: Duration) {
        for store in stores.iter().filter(|store| !store.options().readonly) {
            let limit = store.options().max_size;
            if limit > 0 && (entry.image.len() + entry.details.len()) as u64 > limit {
                // It would push everything else out and then itself.
                continue;
            }
            let kept = store
                .put_bytes(&entry.image, Packing::Plain)
                .and_then(|digest| {
                    let output = Output {
                        role: IMAGE.to_owned(),
                        digest,
                        executable: false,
                    };
                    let outcome = Outcome {
                        outputs: vec![output],
                        extra: entry.details.clone(),
                        micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
                        ..Outcome::default()
                    };
                    store.store(Level::Kernels, key, &InputManifest::default(), &outcome)?;
                    match store.needs_gc() {
                        true => store.gc(store.gc_target()).map(|_| ()),
                        false => Ok(()),
                    }
                });
            if let Err(error) = kept {
                self.remark(with_source(&error));
            }
        }
    }
}

fn of_shared(why: &str) -> String {
    match why.starts_with("the shared cache") {
        true => why.to_owned(),
        false => format!("the shared cache: {why}"),
    }
}

/// The entry under `key` in a folder of compiled kernels: for a shared layer that works through one.
///
/// # Errors
/// What is there cannot be read, for people.
pub fn stored_entry(store: &DiskStore, key: &Key) -> Result<Option<Entry>, String> {
    let outcome = match store.look_up(Level::Kernels, key, Path::new("/")) {
        Lookup::Hit(outcome, _) => outcome,
        Lookup::Miss(warpcc_cache::Why::Unreadable(error)) => return Err(with_source(&error)),
        Lookup::Miss(_) => return Ok(None),
    };
    let Some(output) = outcome.outputs.iter().find(|output| output.role == IMAGE) else {
        return Ok(None);
    };
    let image = store
        .get_bytes(&output.digest)
        .map_err(|error| with_source(&error))?;
    Ok(image.map(|image| Entry {
        image: image.into(),
        details: outcome.extra,
    }))
}

/// Whether a result from elsewhere is one kernel and nothing else; its log is made fit to be shown. For a shared layer that
/// works through a folder.
pub fn vetted(outcome: &mut Outcome) -> bool {
    let [output] = &outcome.outputs[..] else {
        return false;
    };
    let is_image =
        output.role == IMAGE && !output.executable && output.digest.size <= foreign::LARGEST_PART;
    let read = postcard::take_from_bytes::<Details>(&outcome.extra);
    let Ok(((version @ DETAILS, target, lowered, log), [])) = read else {
        return false;
    };
    let shown = foreign::shown(log.as_bytes());
    // What was changed is ASCII.
    let log = String::from_utf8(shown).unwrap_or_default();
    let details: Details = (version, target, lowered, log);
    outcome.extra = postcard::to_allocvec(&details).unwrap_or_default();
    outcome.stdout.clear();
    outcome.stderr.clear();
    is_image
}

fn with_source(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Target, names, log: postcard's encoding of a tuple, behind the version of that.
type Details = (u32, String, Vec<(String, String)>, String);
const DETAILS: u32 = 1;

fn closed(compiled: &Compiled) -> Entry {
    let details: Details = (
        DETAILS,
        compiled.target.to_string(),
        compiled.lowered.clone(),
        compiled.log.clone(),
    );
    Entry {
        image: compiled.image.clone(),
        // Numbers and texts can always be written.
        details: postcard::to_allocvec(&details).unwrap_or_default(),
    }
}

/// What an entry says; none for one that makes no sense, which is then as good as none.
fn opened(entry: &Entry) -> Option<Compiled> {
    let read = postcard::take_from_bytes::<Details>(&entry.details);
    let Ok(((DETAILS, target, lowered, log), [])) = read else {
        return None;
    };
    let target: Target = target.parse().ok()?;
    if entry.image.is_empty() {
        return None;
    }
    Some(Compiled {
        target,
        image: entry.image.clone(),
        lowered,
        log,
    })
}

/// Reads what another process or machine kept. For fuzzing: whatever the bytes, it answers.
pub fn read_entry(image: &[u8], details: &[u8]) -> Option<Compiled> {
    opened(&Entry {
        image: image.into(),
        details: details.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(roles: &[(&str, u64, bool)], log: &str) -> Outcome {
        let output = |(role, size, executable): &(&str, u64, bool)| Output {
            role: (*role).to_owned(),
            digest: warpcc_cache::Digest {
                hash: [7; 32],
                size: *size,
            },
            executable: *executable,
        };
        let details: Details = (DETAILS, "sm_80".to_owned(), Vec::new(), log.to_owned());
        Outcome {
            outputs: roles.iter().map(output).collect(),
            extra: postcard::to_allocvec(&details).expect("details"),
            ..Outcome::default()
        }
    }

    #[test]
    fn from_elsewhere_comes_one_kernel_and_text() {
        let mut good = outcome(&[(IMAGE, 9, false)], "warning \u{1b}[2J\n");
        assert!(vetted(&mut good));
        let (details, _) = postcard::take_from_bytes::<Details>(&good.extra).expect("details");
        assert_eq!(details.3, "warning \\x1b[2J\n");
        for wrong in [
            &[][..],
            &[("other", 9, false)],
            &[(IMAGE, 9, true)],
            &[(IMAGE, u64::MAX, false)],
            &[(IMAGE, 9, false), (IMAGE, 9, false)],
            &[(IMAGE, 9, false), ("at x", 9, false)],
        ] {
            assert!(!vetted(&mut outcome(wrong, "")), "{wrong:?}");
        }
    }
}
