//! GitHub's cache against a stand-in that enforces the limits of the real one: few requests, nothing lost between jobs, and
//! nothing worse than a miss whatever fails.

mod faults;
mod jobs;
mod matrix;
mod odd_entries;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use warpcc_cache::{
    Digest, DiskStore, FetchRequest, InputManifest, InputManifestBuilder, Key, Level, Options,
    Outcome, Packing, ProducedFile, Upstream, WorkDir,
};
use warpcc_remote::auth::{Origin, Secret};
use warpcc_remote::upload::{self, UploadMode, UploadReport};
use warpcc_remote::upload_queue::UploadQueue;
use warpcc_remote::{CacheLayers, Layer};
use warpcc_testkit::github_cache::GithubCache;

/// A repository with a cache, and the sources that its jobs compile.
struct Repository {
    service: GithubCache,
    folder: tempfile::TempDir,
    manifest: InputManifest,
}

/// One job on a machine of its own.
struct Job {
    store: DiskStore,
    layer: Layer,
    root: PathBuf,
    warnings: Mutex<Vec<String>>,
}

impl Repository {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("source.cu");
        fs::write(&source, "text").expect("a source");
        // It must be older than the run that reads it.
        std::thread::sleep(Duration::from_millis(40));
        let mut manifest = InputManifestBuilder::new(SystemTime::now());
        manifest.read(&source);
        Self {
            service: GithubCache::start(),
            folder,
            manifest: manifest.finish().expect("settled"),
        }
    }

    fn job(&self, name: &str) -> Job {
        self.job_with(name, "")
    }

    /// A job of a branch, whose entries hide those of the main branch that have the same names.
    fn job_of_branch(&self, name: &str) -> Job {
        let mut job = self.job(name);
        job.layer.auth.token = Some(Origin::Given(Secret::new("branch-token")));
        job
    }

    fn job_with(&self, name: &str, options: &str) -> Job {
        let root = self.folder.path().join(name);
        let unlimited = Options {
            max_size: 0,
            readonly: false,
        };
        let variables = self.service.variables();
        let variable = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| value.clone())
        };
        let text = format!("ghac|timeout=60|retry-after=0.01{options}");
        Job {
            store: DiskStore::open(&root, unlimited).expect("a store"),
            layer: Layer::parse(&text, &variable).expect("a layer"),
            root,
            warnings: Mutex::default(),
        }
    }

    /// What the job `number` compiled. Some outputs are large, and two in three are alike.
    fn build(&self, job: &Job, results: std::ops::Range<u32>) {
        for number in results {
            let bytes = output(number);
            let digest = job.store.put_bytes(&bytes, Packing::Zstd).expect("a blob");
            let outcome = Outcome {
                outputs: vec![ProducedFile {
                    role: "object".to_owned(),
                    digest,
                    executable: false,
                }],
                ..Outcome::default()
            };
            let stored = job
                .store
                .store(Level::Direct, &key(number), &self.manifest, &outcome);
            stored.expect("stored");
            let queue = UploadQueue::in_cache(&job.root);
            queue
                .add(&job.layer, Level::Direct, &key(number))
                .expect("noted");
        }
    }
}

impl Job {
    fn finds(&self, number: u32) -> bool {
        !self.found(number..number + 1).is_empty()
    }

    /// Those results that are there, as processes find out that begin one after the other, and ask for some each.
    fn found(&self, results: std::ops::Range<u32>) -> Vec<u32> {
        let numbers: Vec<u32> = results.collect();
        for some in numbers.chunks(40) {
            let warn = |text: &str| {
                self.warnings
                    .lock()
                    .expect("no panics")
                    .push(text.to_owned())
            };
            let layers = CacheLayers::new(std::slice::from_ref(&self.layer), &self.root, warn);
            let keys: Vec<Key> = some.iter().map(|number| key(*number)).collect();
            let wanted = keys.iter().map(|key| FetchRequest {
                level: Level::Direct,
                key,
                at: WorkDir::plain(Path::new("/")),
                vet: &|_| true,
            });
            layers.fetch(&self.store, &wanted.collect::<Vec<_>>());
        }
        let is_there = |number: &u32| {
            !self
                .store
                .remembered(Level::Direct, &key(*number))
                .is_empty()
        };
        let found: Vec<u32> = numbers.into_iter().filter(is_there).collect();
        for number in &found {
            let bytes = self.store.get_bytes(&Digest::of_bytes(&output(*number)));
            assert_eq!(bytes.expect("readable"), Some(output(*number)), "{number}");
        }
        found
    }

    /// The job's last step.
    fn upload(&self) -> UploadReport {
        let limit = Duration::from_secs(300);
        let layers = std::slice::from_ref(&self.layer);
        let reports = upload::drain(layers, &self.store, limit, UploadMode::Asked);
        reports.expect("a runtime").pop().expect("a report")
    }

    fn count(&self, counter: &str) -> u64 {
        self.store.counters().get(counter).copied().unwrap_or(0)
    }
}

fn key(number: u32) -> Key {
    Key(Digest::of_bytes(&number.to_le_bytes()).hash)
}

fn output(number: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut last = Digest::of_bytes(&(number / 3).to_le_bytes()).hash;
    let length = if number % 100 == 50 { 3 << 20 } else { 4 << 10 };
    while bytes.len() < length {
        bytes.extend_from_slice(&last);
        last = Digest::of_bytes(&last).hash;
    }
    bytes
}
