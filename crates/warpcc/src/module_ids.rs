//! Remembers each source's module id and stub. In the next build, cicc need not wait for cudafe++'s module id, and the host
//! compiler need not wait for cicc's stub. Both are predictions, which the run confirms (docs/design/overlap.md).

use std::fs;

use warpcc_cache::{DiskStore, Hashing, Key, KeySink};
use warpcc_plan::{TaskGraph, prediction};

const KIND: &str = "module-ids";
const STUBS: &str = "stubs";

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
        prediction::module_id_file(graph).or_else(|| graph.assumed.first().map(|a| a.file))
    else {
        return;
    };
    // If cudafe++'s result came from the cache, the file may not have been written.
    let Ok(id) = fs::read_to_string(&graph.file(file).path) else {
        return;
    };
    if prediction::is_lasting_module_id(&id) && recall(store, subject).as_ref() != Some(&id) {
        // If the note cannot be written, cicc waits next time.
        _ = store.put_note(KIND, &key(subject), id.as_bytes());
    }
}

/// The stub that the source had last time, with the private folder of this run in it.
pub fn recall_stub(store: &DiskStore, subject: &[String], graph: &TaskGraph) -> Option<String> {
    let text = String::from_utf8(store.note(STUBS, &stub_key(subject, graph)?)?).ok()?;
    Some(text.replace(FOLDER, &graph.private))
}

/// Notes the stub that cicc has written.
pub fn remember_stub(store: &DiskStore, subject: &[String], graph: &TaskGraph) {
    let file = prediction::stub_file(graph).or_else(|| {
        graph
            .assumed
            .iter()
            .map(|assumed| assumed.file)
            .find(|&file| !graph.file(file).is_module_id())
    });
    let (Some(file), Some(key)) = (file, stub_key(subject, graph)) else {
        return;
    };
    let Ok(text) = fs::read_to_string(&graph.file(file).path) else {
        return;
    };
    let text = text.replace(&graph.private, FOLDER);
    if text.len() <= LARGEST_STUB && store.note(STUBS, &key).as_deref() != Some(text.as_bytes()) {
        _ = store.put_note(STUBS, &key, text.as_bytes());
    }
}

/// Stands for the scratch folder in a remembered stub.
const FOLDER: &str = "\u{1}warpcc\u{1}/";

/// The largest stub that is remembered. Usual stubs have tens of kilobytes.
const LARGEST_STUB: usize = 4 << 20;

/// The key of a stub's note. It contains the file's name, which names the architecture.
fn stub_key(subject: &[String], graph: &TaskGraph) -> Option<Key> {
    let file = graph
        .files
        .iter()
        .rev()
        .find(|f| f.path.ends_with(".stub.c"))?;
    let mut parts = subject.to_vec();
    parts.push(file.name().to_owned());
    Some(key(&parts))
}
