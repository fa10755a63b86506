//! Tests a shared cache that another version of warpcc uses too: its records are misses, no faults of the server.

use std::fs;

use warpcc_cache::encode_record;
use xxhash_rust::xxh3::xxh3_64;

use crate::forger::{self, Forger};
use crate::{ONE, Project};

/// A record of another version: only its beginning is known.
fn of_version(version: &str, record: &[u8]) -> Vec<u8> {
    let mut record = record.to_vec();
    record[6..8].copy_from_slice(version.as_bytes());
    let checksum = xxh3_64(&record[..40]);
    record[40..48].copy_from_slice(&checksum.to_le_bytes());
    record
}

#[test]
fn records_of_another_version_are_misses() {
    let mut forger = Forger::new(Project::new("other-version"), ONE);
    let shared = forger.project.space.beside("shared");
    for version in ["03", "05"] {
        for level in ["direct", "steps"] {
            for name in forger.keys(level) {
                let record = encode_record(&forger::key(&name), &forger.honest(&name));
                forger.put(&name, &of_version(version, &record.expect("a record")));
            }
        }
        let call = forger.attack(4 << 20);
        // No warning, and the server is asked for every step.
        assert_eq!(call.stderr, "");
        assert_eq!(call.stats.count("direct_hits"), 0, "{:?}", call.stats);
        let json = forger.project.space.json(&["stats", "--json"]);
        let misses = json["remote"]["other_version"].as_u64().expect("a count");
        assert!(misses >= 5, "{json}");
        assert_eq!(json["remote"]["errors"], 0);
        // Who may write replaces what is older, and leaves what is newer to those who read both.
        let direct = forger.keys("direct").pop().expect("a record");
        let before = fs::read(forger.path("ac", &direct)).expect("a result");
        forger
            .project
            .through(&format!("file:{}", shared.display()));
        forger.project.on(&format!("writer-{version}"));
        forger.project.like(ONE, &forger.build);
        forger.project.upload();
        let after = fs::read(forger.path("ac", &direct)).expect("a result");
        assert_eq!(before == after, version == "05", "{version}");
    }
}
