//! Remembers each source's module id, so that next time cicc need not wait for cudafe++.

use std::fs;

use warpcc_cache::{DiskStore, Hashing, Key, KeySink};
use warpcc_plan::{TaskGraph, overlap};

const KIND: &str = "module-ids";

fn key(subject: &[String]) -> Key {
    let mut sink = Hashing::new("warpcc module id 1");
    for part in subject {
        sink.part("argument", part.as_bytes());
    }
    sink.finish()
}

/// The id that the source had last time.
pub fn recall(store: &DiskStore, subject: &[String]) -> Option<String> {
    String::from_utf8(store.note(KIND, &key(subject))?).ok()
}

/// Notes the id that cudafe++ has written, if it can be the same next time.
pub fn remember(store: &DiskStore, subject: &[String], graph: &TaskGraph) {
    let Some(file) =
        overlap::module_id_file(graph).or_else(|| graph.assumed.first().map(|a| a.file))
    else {
        return;
    };
    // When cudafe++'s result came from the cache the file may never have been written.
    let Ok(id) = fs::read_to_string(&graph.file(file).path) else {
        return;
    };
    if overlap::is_lasting_module_id(&id) && recall(store, subject).as_ref() != Some(&id) {
        // Without the note cicc waits.
        _ = store.put_note(KIND, &key(subject), id.as_bytes());
    }
}
