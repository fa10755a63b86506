//! Measures the cost of a hit: makes as many headers as a Thrust file reads, stores them in a manifest, and times each
//! part of finding the result again.
//!
//! `cargo run --release -p warpcc-cache --example hit_cost`

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use warpcc_cache::{
    DiskStore, Hashing, InputManifestBuilder, KeySink, Level, Lookup, Options, Outcome, Packing,
};

const FILES: usize = 1100;
const DIRECTORIES: usize = 300;
const BYTES: usize = 15_000_000;
const ROUNDS: usize = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("warpcc-hit-cost-{}", std::process::id()));
    let result = measure(&folder);
    fs::remove_dir_all(&folder)?;
    result
}

fn measure(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let headers = write_headers(folder)?;
    std::thread::sleep(Duration::from_millis(100));

    let build = || {
        let mut builder = InputManifestBuilder::new(SystemTime::now());
        for path in &headers {
            builder.read(path);
            // Looked for in vain in the folders before.
            builder.absent(&path.with_extension("cuh"));
        }
        builder
    };
    let mut dates = 0usize;
    let building = time(5, || {
        build()
            .finish_with(&mut |_, text| dates += usize::from(text.first() == Some(&b'_')))
            .map(drop)
    })?;
    let manifest = build().finish()?;
    let checking = time(ROUNDS, || {
        manifest.check(folder);
        Ok::<_, std::convert::Infallible>(())
    })?;

    let options = Options {
        max_size: 0,
        readonly: false,
    };
    let store = DiskStore::open(&folder.join("cache"), options)?;
    let mut hashing = Hashing::new("example");
    hashing.part("source", b"example.cu");
    let key = hashing.finish();
    store.store(Level::Direct, &key, &manifest, &Outcome::default())?;
    let hex = key.hex();
    let record = folder.join(format!("cache/direct-v4/{}/{hex}", &hex[..2]));
    let length = fs::metadata(&record)?.len();
    let looking = time(ROUNDS, || {
        match store.look_up(Level::Direct, &key, folder) {
            Lookup::Hit(..) => Ok(()),
            Lookup::Miss(why) => Err(format!("missed: {why:?}")),
        }
    })?;

    let object = store.put_bytes(&vec![1; 1 << 20], Packing::Plain)?;
    let dest = folder.join("out.o");
    let placing = time(ROUNDS, || store.get_to(&object, &dest, false).map(drop))?;
    let counting = time(ROUNDS, || {
        store.count(&[("direct_hit", 1)]);
        Ok::<_, std::convert::Infallible>(())
    })?;

    for path in &headers {
        let text = fs::read(path)?;
        fs::write(path, text)?;
    }
    std::thread::sleep(Duration::from_millis(100));
    let rehashing = time(5, || {
        manifest.check(folder);
        Ok::<_, std::convert::Infallible>(())
    })?;

    let rows = [
        ("make the manifest (at a miss)", building),
        ("check it, nothing touched", checking),
        ("look up: read record, check", looking),
        ("check it, everything touched", rehashing),
        ("place a 1 MiB output", placing),
        ("count", counting),
    ];
    print(&rows, manifest.directory_count(), length);
    Ok(())
}

/// Writes the headers, and returns their paths.
fn write_headers(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let headers: Vec<PathBuf> = (0..FILES)
        .map(|i| {
            let directory = format!(
                "include/targets/x86_64-linux/include/thrust/detail/d{}",
                i % DIRECTORIES
            );
            folder.join(directory).join(format!("some_header_{i}.h"))
        })
        .collect();
    for (i, path) in headers.iter().enumerate() {
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, vec![b'a' + (i % 26) as u8; BYTES / FILES])?;
    }
    Ok(headers)
}

#[expect(clippy::print_stdout, reason = "an example's report")]
fn print(rows: &[(&str, (Duration, Duration))], directories: usize, length: u64) {
    let mut report =
        format!("{FILES} files, {directories} directories, record of {length} bytes\n");
    for &(what, (least, median)) in rows {
        report += &format!(
            "{what:32} {:>9.3} ms  (least {:.3})\n",
            millis(median),
            millis(least)
        );
    }
    print!("{report}");
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The least and the median time.
fn time<E>(
    rounds: usize,
    mut run: impl FnMut() -> Result<(), E>,
) -> Result<(Duration, Duration), E> {
    let mut times = Vec::new();
    for _ in 0..rounds {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed());
    }
    times.sort();
    Ok((times[0], times[rounds / 2]))
}
