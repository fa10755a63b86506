//! Gets nvcc's result for a case: from nvcc now, or kept since an earlier run of the tests.
//!
//! Kept results are keyed by everything that nvcc's result depends on, as far as we know. To verify this, nvcc compiles one
//! case in eight again, others each day, and the results are compared. No test fails by a kept result alone (`verdict`).

use std::hash::Hash;
use std::os::unix::fs::symlink;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use warpcc_testkit::stored_results::Store;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::case::{Case, Line};
use crate::machine;
use crate::space::{Outcome, Program, Snapshot, TestSpace};

/// The sources that decide how nvcc runs and what is compared. A change to one of them makes all kept results unused.
const HARNESS: [&str; 6] = [
    include_str!("case.rs"),
    include_str!("machine.rs"),
    include_str!("reference.rs"),
    include_str!("../space/mod.rs"),
    include_str!("../space/process.rs"),
    include_str!("../space/snapshot.rs"),
];

/// The number of days in which nvcc compiles each case again.
pub const SHARES: u64 = 8;

/// The size limit of the store, in bytes: room for about ten generations of all cases.
const LIMIT: u64 = 256 << 20;

/// nvcc's result for a case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reference {
    /// How each command ended.
    pub outcomes: Vec<Outcome>,
    /// The files that all of them left in the folder.
    pub outputs: Snapshot,
}

impl Reference {
    /// Runs nvcc.
    pub fn ask(case: &Case, space: &TestSpace, lines: &[&Line]) -> Self {
        lay_out(case, space);
        let given = Snapshot::take(&space.work());
        let run = |line: &&Line| space.run(&program(case, space), &space.words(&line.args));
        Self {
            outcomes: lines.iter().map(run).collect(),
            outputs: Snapshot::take(&space.work()).since(&given),
        }
    }
}

/// The results that earlier runs kept, and which of them are verified today.
pub struct References {
    /// The store of the results.
    pub store: Store,
    /// The days since 1970.
    pub day: u64,
}

impl References {
    /// The store beside the toolkits.
    pub fn beside_toolkits() -> Self {
        Self {
            store: Store {
                folder: warpcc_testkit::places::references(),
                limit: LIMIT,
            },
            day: SystemTime::UNIX_EPOCH
                .elapsed()
                .map_or(0, |since| since.as_secs() / (24 * 60 * 60)),
        }
    }

    /// The result that an earlier run kept; `None` where there is none, or it cannot be decoded.
    pub fn read(&self, key: u128) -> Option<Reference> {
        postcard::from_bytes(&self.store.read(key)?).ok()
    }

    /// Keeps a result for the next run. Where that fails, the next run takes longer.
    pub fn keep(&self, key: u128, reference: &Reference) {
        if let Ok(bytes) = postcard::to_allocvec(reference) {
            _ = self.store.write(key, &bytes);
        }
    }

    /// Whether nvcc compiles this case again today.
    pub fn is_due(&self, case: &Case, release: &str) -> bool {
        let lot = xxh3_64(format!("{}@{release}", case.name).as_bytes());
        lot % SHARES == self.day % SHARES
    }
}

/// The key of the result. `None` where something that it depends on is not known.
pub fn key(case: &Case, space: &TestSpace, lines: &[&Line]) -> Option<u128> {
    let mut key = Xxh3::new();
    (HARNESS, case).hash(&mut key);
    let mut words = Vec::new();
    for line in lines {
        let command = space.command(&program(case, space), &space.words(&line.args));
        (command.get_program(), command.get_current_dir()).hash(&mut key);
        for word in command.get_args() {
            word.hash(&mut key);
            words.push(word.to_owned());
        }
        // The commands' environment is empty but for these.
        for (name, value) in command.get_envs() {
            (name, value).hash(&mut key);
            words.extend(value.map(ToOwned::to_owned));
        }
    }
    machine::identify(&space.toolkit, &words, &mut key)?;
    Some(key.digest128())
}

/// Puts the case's files into an empty folder.
pub fn lay_out(case: &Case, space: &TestSpace) {
    space.clear_work();
    for (name, bytes) in &case.files {
        // Through `write` for its folders; the bytes may be no UTF-8.
        space.write(name, "");
        std::fs::write(space.work().join(name), bytes)
            .unwrap_or_else(|e| panic!("writing {name}: {e}"));
        space.set_old(name);
    }
    for (name, target) in &case.links {
        symlink(target, space.work().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

fn program(case: &Case, space: &TestSpace) -> Program {
    if case.plain || case.keeps_itself() {
        Program::Nvcc
    } else {
        space.reference()
    }
}
