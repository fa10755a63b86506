//! What many small blobs cost on their way to a server and back, for `cargo xtask bench --only remote-small`: together, and
//! a tenth of them one by one, which is what they would cost without batches and calls side by side.
//!
//! ```text
//! small_blobs URL COUNT BYTES
//! ```

use std::time::Instant;

use warpcc_cache::Digest;
use warpcc_remote::backend::UploadSource;
use warpcc_remote::{AnyBackend, Backend, Layer, RemoteError};

/// Prints seconds as JSON.
#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "a person who measures reads it")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, count, bytes] = words.as_slice() else {
        return Err("usage: small_blobs URL COUNT BYTES".into());
    };
    let (count, bytes) = (count.parse::<usize>()?, bytes.parse::<usize>()?);
    let server = AnyBackend::new(&Layer::at(url)?, None)?;
    let together = journey(&server, blobs(0, count, bytes)).await?;
    let mut alone = [0.0; 4];
    for blob in blobs(count, count.div_ceil(10), bytes) {
        let one = journey(&server, vec![blob]).await?;
        alone
            .iter_mut()
            .zip(one)
            .for_each(|(sum, each)| *sum += each);
    }
    let shown = |seconds: [f64; 4]| {
        let [missing, write, missing_again, read] = seconds;
        format!(
            "{{\"find missing, all\": {missing:.4}, \"upload\": {write:.4}, \
             \"find missing, none\": {missing_again:.4}, \"download\": {read:.4}}}"
        )
    };
    println!(
        "{{\"blobs\": {count}, \"bytes each\": {bytes}, \"seconds\": {}, \"a tenth of them, one by one\": {}}}",
        shown(together),
        shown(alone)
    );
    Ok(())
}

/// Blobs that no other run has given the server: those from `first` on.
fn blobs(first: usize, count: usize, bytes: usize) -> Vec<Vec<u8>> {
    let run = std::process::id();
    let blob = |number: usize| {
        let mut blob = format!("{run} {number} ").into_bytes();
        let mut word = number as u64 ^ u64::from(run) << 32;
        while blob.len() < bytes {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            blob.extend_from_slice(&word.to_le_bytes());
        }
        blob
    };
    (first..first + count).map(blob).collect()
}

/// There and back: seconds of each of the four calls.
async fn journey(server: &AnyBackend, blobs: Vec<Vec<u8>>) -> Result<[f64; 4], RemoteError> {
    let wrong = |why: &str| RemoteError::Answer {
        server: "the server".to_owned(),
        why: why.to_owned(),
    };
    let digests: Vec<Digest> = blobs.iter().map(|blob| Digest::of_bytes(blob)).collect();
    let sources = blobs.iter().cloned().map(UploadSource::Bytes);
    let sources: Vec<_> = digests.iter().copied().zip(sources).collect();
    let clock = Instant::now();
    let missing = server.missing(&digests).await?;
    let asked = clock.elapsed();
    if missing.len() != digests.len() {
        return Err(wrong("blobs that nobody has given it are there"));
    }
    let clock = Instant::now();
    server.write(&sources).await?;
    let written = clock.elapsed();
    let clock = Instant::now();
    if !server.missing(&digests).await?.is_empty() {
        return Err(wrong("blobs are missing that were uploaded"));
    }
    let asked_again = clock.elapsed();
    let clock = Instant::now();
    let read = server.read_small(&digests).await?;
    let fetched = clock.elapsed();
    if !read.iter().map(Option::as_ref).eq(blobs.iter().map(Some)) {
        return Err(wrong("other bytes came back"));
    }
    Ok([asked, written, asked_again, fetched].map(|time| time.as_secs_f64()))
}
