//! An enemy who can write to a shared folder: takes what an honest machine put there, and puts something else in its
//! place, in the format that warpcc reads.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as re;
use prost::Message;
use warpcc_cache::{Digest, Key, Variant, decode_record, encode_record};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::Project;
use crate::space::{Build, Program, Stats, TestSpace, finish};

const MAGIC: &[u8] = b"WCCREM01";

/// A project that one honest machine has built through a shared folder, and the enemy's hand in that folder.
pub struct Forger {
    pub project: Project,
    pub line: String,
    pub build: Build,
    shared: PathBuf,
    machines: u32,
}

impl Forger {
    /// A forger after the honest machine has built `line`.
    pub fn new(project: Project, line: &str) -> Self {
        Self::with(project, line, "")
    }

    /// The same, with settings for the shared folder.
    pub fn with(mut project: Project, line: &str, settings: &str) -> Self {
        let shared = project.space.beside("shared");
        fs::create_dir_all(&shared).expect("a folder");
        project.through(&format!("file:{}{settings}", shared.display()));
        project.on("honest");
        let build = project.first(line);
        nobody_works_on(&project.space.beside("honest"));
        // Only the enemy writes there from now on.
        project.through(&format!("file:{}|read-only{settings}", shared.display()));
        Self {
            project,
            line: line.to_owned(),
            build,
            shared,
            machines: 0,
        }
    }

    /// The keys of one level, `direct` or `steps`.
    pub fn keys(&self, level: &str) -> Vec<String> {
        let store = self.project.space.beside("honest");
        let folders = fs::read_dir(store.join(format!("{level}-v4"))).expect("records");
        let files = folders.flat_map(|folder| fs::read_dir(folder.expect("a folder").path()));
        let names = files
            .flatten()
            .map(|file| file.expect("a file").file_name());
        names
            .map(|name| name.into_string().expect("a key"))
            .collect()
    }

    /// The key of the one record of the call that the enemy leaves: it is also stored under its [content keys](../../src/content_key.rs).
    pub fn only_direct(&self) -> String {
        let mut keys = self.keys("direct");
        let only = keys.pop().expect("a record");
        for other in keys {
            fs::remove_file(self.path("ac", &other)).expect("it was there");
        }
        only
    }

    /// The variants that the honest machine stored under a key.
    pub fn honest(&self, key: &str) -> Vec<Variant> {
        let store = self.project.space.beside("honest");
        let found = ["direct", "steps"]
            .iter()
            .find_map(|level| fs::read(store.join(format!("{level}-v4/{}/{key}", &key[..2]))).ok());
        decode_record(&found.expect("a record")).expect("a sound one")
    }

    /// The path of a result or a blob.
    pub fn path(&self, kind: &str, name: &str) -> PathBuf {
        self.shared.join(kind).join(name)
    }

    /// Puts a blob into the shared folder.
    pub fn blob(&self, bytes: &[u8]) -> Digest {
        let digest = Digest::of_bytes(bytes);
        let packed = zstd::bulk::compress(bytes, 1).expect("packs");
        fs::write(self.path("cas", &digest.hex()), packed).expect("a blob");
        digest
    }

    /// Puts a record's bytes under a key.
    pub fn put(&self, key: &str, record: &[u8]) {
        fs::write(self.path("ac", key), result(record)).expect("a result");
    }

    /// Changes the variant under every key of a level.
    pub fn forge(&self, level: &str, change: impl Fn(&mut Variant)) {
        for name in self.keys(level) {
            let mut variants = self.honest(&name);
            variants.iter_mut().for_each(&change);
            let record = encode_record(&key(&name), &variants).expect("a record");
            self.put(&name, &record);
        }
    }

    /// Removes every result of a level.
    pub fn forget(&self, level: &str) {
        for key in self.keys(level) {
            fs::remove_file(self.path("ac", &key)).expect("it was there");
        }
    }

    /// Another machine builds, with this many KiB of memory at most: nvcc's object, no other file, exit code 0.
    #[track_caller]
    pub fn attack(&mut self, kib: u64) -> crate::Call {
        self.machines += 1;
        self.project.on(&format!("victim-{}", self.machines));
        let limited = format!("ulimit -v {kib}; exec \"$0\" \"$@\"");
        let nvcc = self.project.space.toolkit.nvcc.display().to_string();
        let warpcc = TestSpace::warpcc().display().to_string();
        let first = ["-c".to_owned(), limited, warpcc, nvcc];
        let shell = Program::Other(PathBuf::from("/bin/sh"), first.to_vec());
        self.project.like_as(&shell, &self.line, &self.build)
    }

    /// Another machine builds twice, the second time without the shared folder: some object each time, exit code 0. Gives
    /// the counters of the first build.
    #[track_caller]
    pub fn attack_for_any_object(&mut self) -> Stats {
        self.machines += 1;
        self.project.on(&format!("victim-{}", self.machines));
        let space = &self.project.space;
        let words = space.words(&self.line);
        space.remove("out.o");
        let said = space.run(&Program::Launcher, &words);
        let stats = space.stats();
        assert_eq!(said.code, 0, "{}", said.stderr_text());
        assert!(space.exists("out.o"), "no object");
        space.remove("out.o");
        let mut command = space.command(&Program::Launcher, &words);
        command.env("WARPCC_REMOTE", "none");
        let said = finish(command);
        assert_eq!(said.code, 0, "{}", said.stderr_text());
        assert!(space.exists("out.o"), "no object the second time");
        space.remove("out.o");
        stats
    }

    /// Whether the last victim refused the call's records, each of them once.
    #[track_caller]
    pub fn demand_refusal(&self, what: &str) {
        let records = self.keys("direct").len() as u64;
        assert_eq!(self.refused(), records, "{what} was not refused");
    }

    /// How often the last victim refused a result.
    pub fn refused(&self) -> u64 {
        let json = self.project.space.json(&["stats", "--json"]);
        json["remote"]["refused"].as_u64().unwrap_or(0)
    }
}

/// Waits for the uploader that a build leaves behind: it checks once more that its uploads are there, and would upload
/// them again.
fn nobody_works_on(store: &Path) {
    let wanted = format!("WARPCC_DIR={}", store.display());
    let works = |process: fs::DirEntry| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        environment
            .split(|b| *b == 0)
            .any(|variable| variable == wanted.as_bytes())
    };
    for _ in 0..600 {
        let processes = fs::read_dir("/proc").expect("processes");
        if !processes.flatten().any(works) {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("an uploader does not end");
}

/// A record as servers keep it.
pub fn result(record: &[u8]) -> Vec<u8> {
    let packed = [MAGIC, &zstd::bulk::compress(record, 3).expect("packs")].concat();
    let result = re::ActionResult {
        stdout_raw: packed,
        ..re::ActionResult::default()
    };
    result.encode_to_vec()
}

/// A key's bytes.
pub fn key(hex: &str) -> Key {
    let bytes = (0..32).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16));
    let bytes: Vec<u8> = bytes.collect::<Result<_, _>>().expect("a key");
    Key(bytes.try_into().expect("32 bytes"))
}

/// A record with one variant whose manifest and outcome are these bytes.
pub fn record(name: &str, manifest: &[u8], outcome: &[u8], times: usize) -> Vec<u8> {
    let mut record = b"WCCREC04".to_vec();
    record.extend_from_slice(&key(name).0);
    record.extend_from_slice(&xxh3_64(&record).to_le_bytes());
    let mut body = varint(manifest.len() as u64);
    body.extend_from_slice(manifest);
    body.extend_from_slice(outcome);
    for identity in 0..times as u64 {
        let mut checksum = Xxh3::new();
        checksum.update(&identity.to_le_bytes());
        checksum.update(&body);
        record.extend_from_slice(&u32::try_from(body.len()).expect("short").to_le_bytes());
        record.extend_from_slice(&identity.to_le_bytes());
        record.extend_from_slice(&checksum.digest().to_le_bytes());
        record.extend_from_slice(&body);
    }
    record
}

/// The entry of a file in an input manifest. It shares no prefix with the path before.
pub fn file(path: &str, size: u64, content: &[u8; 32]) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend(varint(path.len() as u64));
    bytes.extend_from_slice(path.as_bytes());
    bytes.extend([0, 0]);
    bytes.extend(varint(size));
    bytes.extend([0, 0, 0]);
    bytes.extend_from_slice(content);
    bytes
}

/// A manifest of this many files, without the targets of links, and of nothing else. It claims more text than it can
/// have.
pub fn files(count: usize, files: &[u8]) -> Vec<u8> {
    let mut bytes = varint(u64::MAX >> 1);
    bytes.extend(varint(count as u64));
    bytes.extend_from_slice(files);
    bytes.resize(bytes.len() + count, 0);
    // No directories, no facts.
    bytes.extend([0, 0]);
    bytes
}

/// A number as a varint: seven bits a byte, the least significant first.
pub fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// An outcome with one output, as a record has it.
pub fn outcome(role: &str, digest: &Digest) -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.extend(varint(role.len() as u64));
    bytes.extend_from_slice(role.as_bytes());
    bytes.extend_from_slice(&digest.hash);
    bytes.extend(varint(digest.size));
    // Not executable; no text.
    bytes.extend([0, 0, 0]);
    // Conditions that always hold.
    let conditions = warpcc_engine::conditions::Conditions::default().encode();
    bytes.extend(varint(conditions.len() as u64));
    bytes.extend(conditions);
    // No time.
    bytes.push(0);
    bytes
}
