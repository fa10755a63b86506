//! Measures a cache of a thousand entries against one of a million: a hit, the size that `stats` shows, a count, an
//! eviction of a tenth. Takes 4 GiB of disk, some minutes, and removes it all.
//!
//! `cargo run --release -p warpcc-cache --example scale -- 1000 1000000`

use std::fs;
use std::path::Path;

use warpcc_cache::{DiskStore, Hashing, InputManifest, Key, KeySink, Level, Lookup, Options};

/// How often what takes microseconds is done: the kernel's clock of a thread moves by milliseconds.
const TIMES: u64 = 20_000;

#[expect(clippy::print_stdout, reason = "an example's report")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "entries  fill          hit  stats' size  counted  evicting a tenth, each   (µs of CPU)"
    );
    for asked in std::env::args().skip(1) {
        let entries: u64 = asked.parse()?;
        let folder = std::env::temp_dir().join(format!("warpcc-scale-{}", std::process::id()));
        let measured = measure(&folder, entries);
        fs::remove_dir_all(&folder)?;
        measured?;
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example's report")]
fn measure(folder: &Path, entries: u64) -> Result<(), Box<dyn std::error::Error>> {
    let options = Options {
        max_size: 0,
        readonly: false,
    };
    let store = DiskStore::open(folder, options)?;
    let (manifest, outcome) = (InputManifest::default(), warpcc_cache::Outcome::default());
    let start = cpu()?;
    for number in 0..entries {
        store.store(Level::Steps, &key(number), &manifest, &outcome)?;
    }
    let fill = (cpu()? - start) / entries as f64;
    let start = cpu()?;
    for number in 0..TIMES {
        let wanted = key(number * 7919 % entries);
        let found = store.look_up(Level::Steps, &wanted, Path::new("/"));
        assert!(matches!(found, Lookup::Hit(..)));
    }
    let hit = (cpu()? - start) / TIMES as f64;
    let start = cpu()?;
    for _ in 0..TIMES {
        store.estimate()?;
    }
    let estimate = (cpu()? - start) / TIMES as f64;
    let (bytes, estimated) = store.estimate()?;
    let start = cpu()?;
    let counted = store.size()?;
    let count = cpu()? - start;
    assert_eq!(counted, (bytes, estimated));
    let start = cpu()?;
    let collected = store.gc(bytes / 10 * 9)?;
    let evicted = (cpu()? - start) / collected.removed as f64;
    println!(
        "{entries:>7} {fill:>5.0} {hit:>12.1} {estimate:>12.1} {count:>8.0} {evicted:>10.1} of {}",
        collected.removed
    );
    Ok(())
}

fn key(number: u64) -> Key {
    let mut hashing = Hashing::new("scale");
    hashing.part("number", &number.to_le_bytes());
    hashing.finish()
}

/// Processor time of this thread, in microseconds (proc(5), `schedstat`).
fn cpu() -> Result<f64, Box<dyn std::error::Error>> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1000.0)
}
